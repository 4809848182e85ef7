//===- CompileCommand.cpp - The command dtc-compile -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-compile/CompileCommand.h"

#include "compiler/driver/PassPipeline.h"
#include "compiler/driver/ReadModel.h"
#include "compiler/planner/ClusterSpeeds.h"
#include "compiler/planner/PlannerReport.h"
#include "compiler/planner/Strategy.h"
#include "plan/PlanReader.h"
#include "plan/PlanVerifier.h"
#include "report/ExplanationReport.h"
#include "report/SimulationReport.h"
#include "simulator/cluster/ClusterReader.h"
#include "support/AtomicFile.h"
#include "support/CommandFiles.h"
#include "support/Format.h"
#include "support/Printable.h"
#include "support/Quantity.h"
#include "support/ReadText.h"
#include "tools/dtc-compile/AlsoFor.h"
#include "tools/dtc-compile/DiagnosticPrinter.h"
#include "tools/dtc-compile/OptionFlags.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <chrono>
#include <fmt/format.h>

using namespace dtc;

//===----------------------------------------------------------------------===//
// Flags and files
//===----------------------------------------------------------------------===//

CompileCommand::CompileCommand(CLI::App &app) : app(app) {
  app.add_option("model", input,
                 "Model IR, as dtc-import writes it or by hand; - is the standard input")
      ->required();
  app.add_option("-o,--output", output, "The plan to write (default: the model's name with .plan)");
  addOptionFlags(app, options);
  app.add_option("--comm-budget", budgetText,
                 "Fail where a device would send more bytes in a step, such as 64MiB");
  app.add_flag("--remarks", printsRemarks, "Print what the compiler chose between, and why");
  app.add_flag("--print-ir", printsIr, "Print the exec IR of the plan on the standard output");
  app.add_flag("--timing", printsTiming, "Print the seconds that compiling took on standard error");
  addPlannerOptions(app, planning);
  app.add_option("--also-for", alsoForText,
                 "Compile for fewer devices too, such as devices=6,4: with a smaller dp or fsdp of "
                 "the mesh, or by a search of its own; for dtc-run --elastic. The plans go to a "
                 "folder with the plan's name and .plans");
}

/// Reads the strategy and the cluster.
MaybeError CompileCommand::readFiles() {
  if (!planning.strategy.empty())
    if (MaybeError error = readStrategy(planning.strategy, options))
      return error->inContext("--strategy");
  if (planning.cluster.empty())
    return std::nullopt;
  Expected<cluster::Cluster> read = readCluster(planning.cluster);
  if (!read)
    return read.error().inContext("--cluster");
  cluster = std::move(*read);
  searches = planning.searches(options);
  return fitCluster(*cluster, planning.request, searches ? options.memoryLimit : 0);
}

/// Gives names to the files that are written without a flag of theirs, and checks that nothing is
/// written over.
MaybeError CompileCommand::nameOutputs() {
  auto complete = [](std::string &path, llvm::StringRef of, const char *extension) {
    if (!path.empty())
      return;
    llvm::SmallString<128> name(of);
    llvm::sys::path::replace_extension(name, extension);
    path = name.str().str();
  };
  complete(output, input == "-" ? "model" : input, "plan");
  if (searches)
    complete(planning.strategyOutput, output, "strategy.textproto");
  if (isGiven("--also-for"))
    complete(elasticFolder, output, "plans");
  auto nameOf = [&](const std::string &flag) {
    return isGiven(flag) ? flag : "the default of " + flag;
  };
  CommandFiles files;
  files.reads("the model", input == "-" ? "/dev/stdin" : input);
  files.reads("--cluster", planning.cluster);
  files.reads("--strategy", planning.strategy);
  files.writes(nameOf("-o"), output);
  files.writes(nameOf("--strategy-output"), planning.strategyOutput);
  files.writesInto("--report", planning.report, kPageFileName);
  if (MaybeError error = files.check())
    return error;
  return checkWritable(output);
}

//===----------------------------------------------------------------------===//
// Checks against the model and the cluster
//===----------------------------------------------------------------------===//

MaybeError CompileCommand::checkOptions(mlir::ModuleOp module) const {
  bool ownMesh = hasOwnMesh(module);
  if (MaybeError error = findConflict(options, OptionSpelling::Flag,
                                      searches  ? MeshSource::Search
                                      : ownMesh ? MeshSource::Model
                                                : MeshSource::Options))
    return error;
  if (!planning.strategy.empty() && hasOneBody(module))
    if (MaybeError error = checkStrategy(options, module, cluster ? &*cluster : nullptr))
      return error->inContext("--strategy: " + planning.strategy);
  if (planning.request.devices > 0 && !searches && !ownMesh)
    if (MaybeError error = checkDevices(options.mesh, planning.request))
      return error;
  if (searches && ownMesh)
    return Error{"--cluster: the model declares a mesh of its own; a search chooses one"};
  if (isGiven("--schedule") && !searches && !ownMesh && !options.hasAxis(kPipelineAxis))
    return Error{fmt::format("--schedule is given, but the mesh has no axis \"{}\" to lay stages "
                             "over; add one",
                             kPipelineAxis)};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

/// Shows on a terminal how far a search is, which goes on.
static bool showProgress(const PlannerProgress &progress) {
  static int64_t shown = -1;
  int64_t count = progress.estimated / 1000 + progress.probes + 100 * progress.simulated;
  if (count == shown || !llvm::sys::Process::StandardErrIsDisplayed())
    return true;
  shown = count;
  llvm::errs() << llvm::formatv("\r{0} strategies estimated from {1} of {2} probes, {3} simulated",
                                progress.estimated, progress.probes,
                                progress.probes + progress.probesToCome, progress.simulated);
  if (progress.bestSeconds > 0)
    llvm::errs() << ", best " << formatDuration(progress.bestSeconds);
  llvm::errs() << "\x1b[K";
  return true;
}

/// Chooses the parallel strategy, and writes it.
Expected<PlannerResult> CompileCommand::search(mlir::ModuleOp module) {
  planning.request.given = findGivenOptions(app);
  Expected<StrategyChoice> choice = searchStrategy(module, llvm::sys::path::stem(input), options,
                                                   planning.request, *cluster, showProgress);
  if (llvm::sys::Process::StandardErrIsDisplayed())
    llvm::errs() << "\r\x1b[K";
  // The lines after the first are details.
  if (!choice)
    return Error{
        llvm::join(llvm::split(llvm::StringRef(choice.error().message).rtrim(), '\n'), "\n  ")};
  llvm::outs() << printableLines(choice->report);
  page = pageOptions(choice->result, choice->asked, planning.request.alternatives);
  if (MaybeError error =
          writeTextFile(planning.strategyOutput, formatStrategy(choice->result.options)))
    return error->inContext("--strategy-output");
  llvm::outs() << "strategy written to " << printable(planning.strategyOutput) << "\n";
  return std::move(choice->result);
}

MaybeError CompileCommand::compileModule(mlir::ModuleOp module, plan::Plan &plan) {
  llvm::StringRef name = llvm::sys::path::stem(input);
  auto result = [&](llvm::LogicalResult compiled) {
    return succeeded(compiled) ? MaybeError() : Error{"cannot compile " + input + " (see above)"};
  };
  // compile() reports the error of a model of more or fewer functions.
  if (searches && hasOneBody(module)) {
    Expected<PlannerResult> choice = search(module);
    if (!choice)
      return choice.error();
    return result(finishCompile(module, *choice->search, *choice->compiled, name, plan));
  }
  // Of a chosen strategy the speeds are in its options.
  if (cluster && !searches && !hasOwnMesh(module))
    useClusterSpeeds(*cluster, options);
  return result(compile(module, options, name, plan, cluster ? &*cluster : nullptr));
}

MaybeError CompileCommand::checkBudget(const plan::Plan &plan) const {
  if (!isGiven("--comm-budget"))
    return std::nullopt;
  Expected<uint64_t> budget = parseByteSize(budgetText);
  if (!budget)
    return budget.error().inContext("--comm-budget");
  PlanExplanation explanation = explainPlan(plan);
  MaybeError error = checkCommunicationBudget(explanation, *budget);
  if (!error)
    return std::nullopt;
  llvm::errs() << formatExplanation(explanation);
  return error->inContext("--comm-budget");
}

/// Prints the simulation of the plan on the cluster, where nothing was searched, and writes the
/// report.
MaybeError CompileCommand::reportOnCluster(const plan::Plan &plan) const {
  if (!cluster || (searches && planning.report.empty()))
    return std::nullopt;
  SimulationOptions settings;
  settings.keepCollectives = !planning.report.empty();
  auto simulation = simulateOnCluster(plan, *cluster, settings);
  if (!simulation)
    return simulation.error().inContext("--cluster");
  if (!searches)
    llvm::outs() << formatSimulation(*simulation);
  if (planning.report.empty())
    return std::nullopt;
  auto text = simulationToHtml(plan, *cluster, *simulation, page);
  if (!text)
    return text.error().inContext("--report");
  if (MaybeError error = writePage(planning.report, *text))
    return error->inContext("--report");
  return std::nullopt;
}

/// Compiles for fewer devices too, into `plans`.
MaybeError CompileCommand::compileForFewer(mlir::ModuleOp model, std::vector<ElasticPlan> &plans) {
  if (!isGiven("--also-for"))
    return std::nullopt;
  if (hasOwnMesh(model))
    return Error{"the model declares a mesh of its own, which stays as it is"};
  Expected<std::vector<int64_t>> numbers = parseAlsoFor(alsoForText);
  if (!numbers)
    return numbers.error();
  if (std::error_code error = llvm::sys::fs::create_directories(elasticFolder))
    return Error{fmt::format("{}: cannot be made: {}", elasticFolder, error.message())};
  CompileCommand fewer = *this;
  fewer.planning.report.clear();
  for (int64_t devices : *numbers) {
    fewer.options = options;
    std::string stem = fmt::format("{}/devices-{}", elasticFolder, devices);
    if (searches) {
      fewer.planning.request.devices = devices;
      fewer.planning.strategyOutput = stem + ".strategy.textproto";
    } else {
      Expected<MeshSizes> mesh = meshForFewer(options.mesh, devices);
      if (!mesh)
        return mesh.error();
      fewer.options.mesh = *mesh;
      fewer.planning.request.devices = 0;
    }
    mlir::OwningOpRef<mlir::ModuleOp> module = model.clone();
    plan::Plan &plan = plans.emplace_back(ElasticPlan{stem + ".plan", {}}).plan;
    if (MaybeError error = fewer.checkOptions(*module))
      return error->inContext(fmt::format("{} devices", devices));
    if (MaybeError error = fewer.compileModule(*module, plan))
      return error->inContext(fmt::format("{} devices", devices));
    if (MaybeError error = findPlanError(plan))
      return error->inContext(fmt::format("{} devices: the plan cannot be run", devices));
  }
  return std::nullopt;
}

MaybeError CompileCommand::run() {
  if (MaybeError error = checkPlannerFlags(app, planning, options))
    return error;
  if (MaybeError error = readFiles())
    return error;
  if (MaybeError error = nameOutputs())
    return error;

  auto begin = std::chrono::steady_clock::now();
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false); // the op may be the whole model
  llvm::SourceMgr sources;
  DiagnosticPrinter printer(sources, context, printsRemarks);
  Expected<std::string> text = readText(input);
  if (!text)
    return text.error();
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(*text, input == "-" ? "<stdin>" : input), llvm::SMLoc());
  auto module = readModel(sources, &context);
  if (!module)
    return Error{input + " is not valid model IR (see above)"};
  if (MaybeError error = checkOptions(*module))
    return error;

  mlir::OwningOpRef<mlir::ModuleOp> model = module->clone();
  const CompileOptions given = options;
  plan::Plan plan;
  if (MaybeError error = compileModule(*module, plan))
    return error;
  if (printsIr)
    module->print(llvm::outs(), mlir::OpPrintingFlags().enableDebugInfo().printNameLocAsPrefix());
  // A plan that no runtime would take, such as one with an arena of exabytes, is not written.
  if (MaybeError error = findPlanError(plan))
    return error->inContext("the plan of " + input + " cannot be run");
  if (MaybeError error = checkBudget(plan))
    return error;
  if (MaybeError error = reportOnCluster(plan))
    return error;
  options = given;
  std::vector<ElasticPlan> fewer;
  if (MaybeError error = compileForFewer(*model, fewer))
    return error->inContext("--also-for");
  if (MaybeError error = writePlan(plan, output))
    return error;
  for (const ElasticPlan &each : fewer) {
    if (MaybeError error = writePlan(each.plan, each.path))
      return error->inContext("--also-for");
    llvm::outs() << "wrote " << printable(each.path) << "\n";
  }
  if (printsTiming) {
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    llvm::errs() << llvm::formatv("compiled in {0:f3} s\n", seconds.count());
  }
  return std::nullopt;
}
