//===- CompileModel.cpp - From the text of a model to a plan --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "python/native/CompileModel.h"

#include "compiler/driver/OptionTable.h"
#include "compiler/driver/PassPipeline.h"
#include "compiler/driver/ReadModel.h"
#include "compiler/import/torch/ImportTorch.h"
#include "dialects/dist/Dist.h"
#include "plan/PlanVerifier.h"
#include "support/MeshAxes.h"
#include "support/NearestName.h"
#include "tools/dtc-compile/DiagnosticPrinter.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <fmt/format.h>

using namespace dtc;
using namespace dtc::python;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static Error unknownOption(const std::string &name) {
  std::vector<std::string> names;
  for (const Option &option : getOptions())
    names.push_back(option.name.str());
  std::string meant = didYouMean(name, names);
  return Error{fmt::format("there is no option \"{}\"{} the options are those of dtc-compile "
                           "(docs/reference.md), with _ for -",
                           name, meant.empty() ? ";" : meant + " All of")};
}

/// Sets the options in their order.
static Expected<CompileOptions> readOptions(const CompileRequest &request) {
  CompileOptions options;
  for (const auto &[name, text] : request.options) {
    const Option *option = findOption(name);
    if (!option)
      return unknownOption(name);
    llvm::SmallVector<llvm::StringRef> values{text};
    if (option->isList() && !option->hasCommas) {
      values.clear();
      llvm::StringRef(text).split(values, ',');
    }
    for (llvm::StringRef value : values)
      if (MaybeError error = setOption(*option, value, options))
        return *error;
  }
  return options;
}

static MaybeError checkOptions(const CompileRequest &request, const CompileOptions &options,
                               mlir::ModuleOp module) {
  bool ownMesh = !module.getOps<dist::MeshOp>().empty();
  if (MaybeError error = findConflict(options, OptionSpelling::Field,
                                      ownMesh ? MeshSource::Model : MeshSource::Options))
    return error;
  for (const auto &[name, text] : request.options)
    if (name == "schedule" && !ownMesh && !options.hasAxis(kPipelineAxis))
      return Error{fmt::format("schedule is given, but the mesh has no axis \"{}\" to lay stages "
                               "over; add one",
                               kPipelineAxis)};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

static bool isCapture(llvm::StringRef text) { return text.contains("torch.capture"); }

/// Imports or reads the model.
static Expected<mlir::OwningOpRef<mlir::ModuleOp>>
readText(const CompileRequest &request, mlir::MLIRContext &context, llvm::SourceMgr &sources,
         const std::string &diagnostics, CompiledModel &result) {
  if (!isCapture(request.text)) {
    sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(request.text, request.fileName),
                               llvm::SMLoc());
    auto module = readModel(sources, &context);
    if (!module)
      return Error{diagnostics + request.fileName + " is not valid model IR"};
    return module;
  }
  ImportLog log;
  auto module = importTorch(context, request.text, request.fileName, log);
  result.remarks = std::move(log.remarks);
  result.warnings = std::move(log.warnings);
  if (!module)
    return Error{llvm::join(log.errors, "\n")};
  return module;
}

Expected<CompiledModel> dtc::python::compileModel(const CompileRequest &request) {
  Expected<CompileOptions> options = readOptions(request);
  if (!options)
    return options.error();
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false); // the op may be the whole model
  std::string diagnostics;
  llvm::raw_string_ostream stream(diagnostics);
  llvm::SourceMgr sources;
  DiagnosticPrinter printer(sources, context, /*printsRemarks=*/false, stream);
  CompiledModel result;
  auto module = readText(request, context, sources, diagnostics, result);
  if (!module)
    return module.error();
  if (MaybeError error = checkOptions(request, *options, **module))
    return *error;
  auto plan = std::make_shared<plan::Plan>();
  if (failed(compile(**module, *options, request.modelName, *plan)))
    return Error{diagnostics + "cannot compile " + request.fileName};
  if (MaybeError error = findPlanError(*plan))
    return error->inContext("the plan of " + request.fileName + " cannot be run");
  result.plan = std::move(plan);
  if (llvm::StringRef text = llvm::StringRef(diagnostics).rtrim(); !text.empty())
    result.warnings.push_back(text.str());
  return result;
}
