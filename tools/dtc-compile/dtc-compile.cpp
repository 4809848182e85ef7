//===- dtc-compile.cpp - From model IR to a plan --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/Pipeline.h"
#include "runtime/plan/PlanReader.h"
#include "runtime/support/AtomicFile.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

#include <chrono>
#include <map>

using namespace dtc;

static int fail(const llvm::Twine &message) {
  llvm::errs() << "error: " << message << "\n";
  return 1;
}

/// "dp=2" -> ("dp", 2).
static std::string parseAxis(const std::string &text, std::pair<std::string, int64_t> &axis) {
  auto [name, size] = llvm::StringRef(text).split('=');
  if (name.empty() || size.getAsInteger(10, axis.second) || axis.second < 1)
    return "--mesh: '" + text + "' is not of the form axis=size with a size of at least 1, such as dp=2";
  axis.first = name.str();
  if (axis.first == kMicrobatchAxis)
    return "--mesh: '" + text + "' uses the name of the microbatch axis; use --microbatches";
  return "";
}

namespace {
struct Arguments {
  std::string input, output;
  std::vector<std::string> mesh;
  bool printIr = false, timing = false;
  CompileOptions compile;
};
} // namespace

static void addOptions(CLI::App &app, Arguments &args) {
  static const std::map<std::string, CompileOptions::Mode> modes = {
      {"train", CompileOptions::Mode::Train},
      {"gradients", CompileOptions::Mode::Gradients},
      {"forward", CompileOptions::Mode::Forward}};
  CompileOptions &options = args.compile;
  app.add_option("model", args.input, "Model IR, as dtc-import writes it or by hand; - is the standard input")
      ->required();
  app.add_option("-o,--output", args.output, "The plan to write (default: the model's name with .plan)");
  app.add_option("--mesh", args.mesh, "The devices as named axes, such as dp=2,tp=2 (default: one device)")
      ->delimiter(',');
  app.add_option("--shard", options.shard,
                 "Logical to mesh axes, such as batch=dp,heads=tp; several as batch=dp+tp, none as vocab= "
                 "(default: batch over dp; heads, kv_heads, mlp and vocab over tp)")
      ->delimiter(',');
  app.add_option("--microbatches", options.microbatches, "Parts of the batch that each device works through")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 20))
      ->capture_default_str();
  app.add_option("--mode", options.mode, "train (default), gradients, or forward: the function as it is")
      ->transform(CLI::CheckedTransformer(modes));
  app.add_option("--optimizer", options.optimizer, "adamw or sgd")
      ->check(CLI::IsMember({"adamw", "sgd"}))
      ->capture_default_str();
  app.add_option("--clip", options.clip, "Largest norm of the gradient; 0 does not clip")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--weight-decay", options.weightDecay, "Of parameters with two or more dimensions")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--beta1", options.beta1, "AdamW: decay of the first moment")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--beta2", options.beta2, "AdamW: decay of the second moment")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--eps", options.eps, "AdamW: added to the root of the second moment")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--momentum", options.momentum, "SGD: decay of the momentum")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--print-ir", args.printIr, "Print the exec IR of the plan on the standard output");
  app.add_flag("--timing", args.timing, "Print the seconds that compiling took on standard error");
}

int main(int argc, char **argv) {
  CLI::App app("Compiles model IR for a mesh of devices and writes a plan for dtc-run.", "dtc-compile");
  app.set_version_flag("--version", std::string("dtc-compile ") + DTC_VERSION);
  Arguments args;
  addOptions(app, args);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) // --help, --version
      return app.exit(error);
    return fail(llvm::Twine(error.what()) + "; see dtc-compile --help");
  }
  for (const std::string &text : args.mesh) {
    std::string problem = parseAxis(text, args.compile.mesh.emplace_back());
    if (!problem.empty())
      return fail(problem);
  }
  if (args.output.empty()) {
    llvm::SmallString<128> path(args.input == "-" ? "model" : args.input);
    llvm::sys::path::replace_extension(path, "plan");
    args.output = path.str().str();
  }
  if (auto problem = runtime::checkWritable(args.output))
    return fail(problem->message);

  auto begin = std::chrono::steady_clock::now();
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler(sources, &context, llvm::errs());
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(args.input, /*IsText=*/true);
  if (!buffer)
    return fail("cannot read " + args.input + ": " + buffer.getError().message());
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module)
    return fail(args.input + " is not valid model IR (see above)");

  plan::Plan plan;
  if (failed(compile(*module, args.compile, llvm::sys::path::stem(args.input), plan)))
    return fail("cannot compile " + args.input + " (see above)");
  if (args.printIr)
    module->print(llvm::outs(), mlir::OpPrintingFlags().enableDebugInfo().printNameLocAsPrefix());
  if (auto problem = runtime::writePlan(plan, args.output))
    return fail(problem->message);
  if (args.timing) {
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    llvm::errs() << llvm::formatv("compiled in {0:f3} s\n", seconds.count());
  }
  return 0;
}
