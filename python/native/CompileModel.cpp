//===- CompileModel.cpp - From the text of a model to a plan --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "python/native/CompileModel.h"

#include "compiler/driver/PassPipeline.h"
#include "compiler/driver/ReadModel.h"
#include "compiler/import/torch/ImportTorch.h"
#include "compiler/planner/ClusterSpeeds.h"
#include "compiler/planner/Strategy.h"
#include "plan/PlanVerifier.h"
#include "python/native/SearchArguments.h"
#include "report/SimulationReport.h"
#include "simulator/Simulation.h"
#include "tools/dtc-compile/DiagnosticPrinter.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace dtc;
using namespace dtc::python;

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

/// Compiles a module, searches its mesh if that is asked for, and reports the time and the memory
/// of the plan on the cluster. The error of a model that does not compile is in the diagnostics.
static MaybeError compileModule(const CompileRequest &request, CompileArguments &arguments,
                                mlir::ModuleOp module, const ProgressCallback &report,
                                plan::Plan &plan, CompiledModel &result) {
  auto asError = [&](llvm::LogicalResult compiled) {
    return succeeded(compiled) ? MaybeError() : Error{"cannot compile " + request.fileName};
  };
  const cluster::Cluster *cluster = arguments.cluster ? &*arguments.cluster : nullptr;
  // compile() reports the error of a model of more or fewer functions.
  if (arguments.searches && hasOneBody(module)) {
    Expected<StrategyChoice> choice = searchStrategy(module, request.modelName, arguments.options,
                                                     arguments.search, *cluster, report);
    if (!choice)
      return choice.error();
    result.search = choice->report;
    result.strategy = formatStrategy(choice->result.options);
    result.onCluster = describeChoice(*choice, request.cluster);
    return asError(finishCompile(module, *choice->result.search, *choice->result.compiled,
                                 request.modelName, plan));
  }
  if (cluster && !hasOwnMesh(module))
    useClusterSpeeds(*cluster, arguments.options);
  if (MaybeError error =
          asError(compile(module, arguments.options, request.modelName, plan, cluster));
      error || !cluster)
    return error;
  Expected<Simulation> simulation = simulateOnCluster(plan, *cluster);
  if (!simulation)
    return simulation.error().inContext("cluster");
  result.onCluster = formatSimulation(*simulation);
  return std::nullopt;
}

Expected<CompiledModel> dtc::python::compileModel(const CompileRequest &request,
                                                  const ProgressCallback &report) {
  Expected<CompileArguments> arguments = readArguments(request);
  if (!arguments)
    return arguments.error();
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
  if (MaybeError error = checkArguments(*arguments, **module))
    return *error;
  auto plan = std::make_shared<plan::Plan>();
  if (MaybeError error = compileModule(request, *arguments, **module, report, *plan, result)) {
    // What the import warned of may be the cause.
    for (const std::string &warning : result.warnings)
      stream << "warning: " << warning << "\n";
    return Error{diagnostics + error->message};
  }
  if (MaybeError error = findPlanError(*plan))
    return error->inContext("the plan of " + request.fileName + " cannot be run");
  result.plan = std::move(plan);
  if (llvm::StringRef text = llvm::StringRef(diagnostics).rtrim(); !text.empty())
    result.warnings.push_back(text.str());
  return result;
}
