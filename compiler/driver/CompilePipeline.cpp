//===- CompilePipeline.cpp - The registered pass pipeline dtc-compile -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/OptionTable.h"
#include "compiler/driver/PassPipeline.h"
#include "dialects/dist/Dist.h"
#include "support/NearestName.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"

#include <deque>
#include <fmt/format.h>

using namespace mlir;
using namespace dtc;

static constexpr StringRef kPipelineName = "dtc-compile";

namespace {

/// The options of the table, by the names of their fields. A list can be given several times.
class PipelineOptions : public mlir::detail::PassOptions {
public:
  PipelineOptions() {
    for (const dtc::Option &option : getOptions())
      texts.emplace_back(*this, option);
  }

  /// Sets those that were given.
  MaybeError set(CompileOptions &options) const {
    for (const Texts &each : texts)
      for (const std::string &text : each.given)
        if (MaybeError error = setOption(each.option, text, options))
          return error;
    return std::nullopt;
  }

private:
  struct Texts : Option<std::string> {
    Texts(PipelineOptions &parent, const dtc::Option &option)
        : Option(parent, option.name, llvm::cl::desc(option.help), llvm::cl::ValueOptional),
          option(option) {
      setCallback([this](const std::string &text) { add(text); });
    }

    void add(StringRef text) {
      optHasValue = true;
      if (std::holds_alternative<bool CompileOptions::*>(option.member) && text.empty())
        text = "true";
      if (!option.isList() || option.hasCommas)
        return given.push_back(text.str());
      for (StringRef element : llvm::split(text, ','))
        given.push_back(element.str());
    }

    const dtc::Option &option;
    std::vector<std::string> given;
  };

  std::deque<Texts> texts;
};

/// Takes a model to exec IR as dtc-compile does.
struct CompilePass : PassWrapper<CompilePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CompilePass)

  CompilePass(const CompileOptions &options, StringRef text)
      : options(options), argument(fmt::format("{}{{{}}}", kPipelineName.str(), text.str())) {}

  /// The name with the options, so that a pipeline that is printed can be run.
  StringRef getArgument() const override { return argument; }
  StringRef getName() const override { return "CompilePass"; }

  void getDependentDialects(DialectRegistry &registry) const override {
    registerDialects(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    bool ownMesh = !module.getOps<dist::MeshOp>().empty();
    if (MaybeError error = findConflict(options, OptionSpelling::Field,
                                        ownMesh ? MeshSource::Model : MeshSource::Options)) {
      emitError(module.getLoc()) << error->message;
      return signalPassFailure();
    }
    if (failed(compileToExec(module, options, module.getName().value_or("model"))))
      signalPassFailure();
  }

  CompileOptions options;
  std::string argument;
};

} // namespace

/// The error of options that could not be read, with a list of all options. `problem` is what MLIR
/// says of them.
static std::string explainUnread(StringRef problem) {
  std::vector<std::string> names;
  for (const dtc::Option &option : getOptions())
    names.push_back(option.name.str());
  StringRef name = problem.split("no such option ").second;
  std::string what = name.empty() ? problem.str()
                                  : fmt::format("there is no option \"{}\"{}", name.str(),
                                                didYouMean(name.str(), names));
  return fmt::format("{}; the options are {}", what, llvm::join(names, ", "));
}

/// Adds the pass with the options that the text gives.
static LogicalResult addCompilePass(OpPassManager &manager, StringRef text,
                                    llvm::function_ref<LogicalResult(const Twine &)> fail) {
  PipelineOptions given;
  std::string unread;
  llvm::raw_string_ostream stream(unread);
  if (failed(given.parseFromString(text, stream)))
    return fail(Twine(kPipelineName) + ": " + explainUnread(StringRef(unread).rtrim()));
  CompileOptions options;
  if (MaybeError error = given.set(options))
    return fail(Twine(kPipelineName) + ": " + error->message);
  manager.addPass(std::make_unique<CompilePass>(options, text));
  return success();
}

void dtc::registerCompilePipeline() {
  registerPassPipeline(
      kPipelineName,
      "A model to exec IR: what dtc-compile does, with its options, such as 'mesh=dp=2,tp=2 "
      "microbatches=4 zero=1'",
      addCompilePass, [](llvm::function_ref<void(const mlir::detail::PassOptions &)> handle) {
        handle(PipelineOptions());
      });
}
