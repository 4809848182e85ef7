//===- Compile.cpp - A model to a plan, or why there is none --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/MemoryReport.h"
#include "compiler/driver/Pipeline.h"
#include "compiler/driver/PlanSearch.h"
#include "compiler/export/ExportPlan.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "dialects/dist/Dist.h"
#include "dialects/exec/Exec.h"
#include "plan/PlanValidator.h"
#include "plan/plan.pb.h"
#include "support/Format.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace dtc;

static_assert(kMaxRank == runtime::maxTensorRank);

static void emitAll(MLIRContext *context, std::vector<Diagnostic> &diagnostics) {
  for (Diagnostic &diagnostic : diagnostics)
    context->getDiagEngine().emit(std::move(diagnostic));
  diagnostics.clear();
}

namespace {
struct Change {
  std::string what;
  ResolvedOptions options;
  bool isOneOfTwo = false; ///< the next is said as well where this fits
};
} // namespace

/// What the user could change, the cheapest first.
static std::vector<Change> changesOf(const ResolvedOptions &options) {
  std::vector<Change> changes;
  auto add = [&](const std::string &what, auto change) {
    ResolvedOptions changed = options;
    change(changed);
    changes.push_back({what, changed});
    return &changes.back();
  };
  if (options.recompute != Recompute::Selective) {
    auto *change =
        add("--recompute selective", [](auto &o) { o.recompute = Recompute::Selective; });
    change->isOneOfTwo = options.recompute != Recompute::Auto;
  }
  if (options.recompute != Recompute::Auto)
    add("--recompute auto", [](CompileOptions &o) { o.recompute = Recompute::Auto; });
  if (options.hasAxis("dp") || options.hasAxis("fsdp") || !options.zeroAxes.empty())
    for (int64_t stage = options.zero + 1; stage <= 3; ++stage)
      add(llvm::formatv("--zero {0}", stage), [&](CompileOptions &o) { o.zero = stage; });
  if (options.recompute != Recompute::Auto && options.zero < 3 &&
      (options.hasAxis("dp") || options.hasAxis("fsdp")))
    add("--zero 3 --recompute auto", [](CompileOptions &o) {
      o.zero = 3;
      o.recompute = Recompute::Auto;
    });
  for (int64_t factor : {2, 4})
    add(llvm::formatv("--microbatches {0}", options.microbatches * factor),
        [&](CompileOptions &o) { o.microbatches *= factor; });
  for (int64_t factor : {2, 4}) {
    ResolvedOptions changed = options;
    auto axis =
        llvm::find_if(changed.mesh, [](auto &entry) { return entry.first == kPipelineAxis; });
    if (axis == changed.mesh.end())
      axis = changed.mesh.insert(changed.mesh.end(), {kPipelineAxis, 1});
    axis->second *= factor;
    changes.push_back({llvm::formatv("--mesh with pp={0}", axis->second).str(), changed});
  }
  return changes;
}

static void explainMemory(ModuleOp model, StringRef name, const ResolvedOptions &options,
                          Candidate &closest) {
  MemoryPeak peak = findPeak(*closest.module);
  InFlightDiagnostic error = emitError(peak.where)
                             << "the plan needs " << runtime::formatBytes(peak.bytes) << " on "
                             << peak.device << ", more than the limit of "
                             << runtime::formatBytes(options.memoryLimit)
                             << "; the most is in use at " << peak.moment;
  for (const MemoryPeak::Tensor &tensor : peak.largest)
    error.attachNote(tensor.where)
        << runtime::formatBytes(tensor.bytes) << " of that: " << tensor.what;
  bool fits = false;
  for (const Change &change : changesOf(options)) {
    PlanSearch search(model, name);
    std::optional<Candidate> found = search.run(change.options);
    const Candidate *candidate = found ? &*found : search.closest ? &*search.closest : nullptr;
    if (!candidate || (!found && candidate->peak() >= closest.peak()))
      continue;
    error.attachNote(model.getLoc()) << (found ? "fits: " : "does not fit: ") << change.what
                                     << " needs " << runtime::formatBytes(candidate->peak());
    fits |= found.has_value();
    if (found && !change.isOneOfTwo)
      break;
  }
  if (!fits)
    error.attachNote(model.getLoc())
        << "no single change of these is enough; combine them, or use more or larger devices";
}

/// Moves the programs of one module to the end of another, as those of an entry point.
static void addEntryPoint(ModuleOp module, ModuleOp from, StringRef name) {
  auto entry = StringAttr::get(module.getContext(), name);
  for (auto program : llvm::make_early_inc_range(from.getOps<exec::ProgramOp>())) {
    program.setEntryAttr(entry);
    program->moveBefore(module.getBody(), module.getBody()->end());
  }
}

/// Why the evaluation's programs cannot share the states of a train step's; empty if they can. A
/// state that the step updates on some devices of a pipeline would be stale where only the
/// evaluation, which may place what runs once a step elsewhere, has it.
static std::string findStaleState(ModuleOp train, ModuleOp evaluation) {
  llvm::StringSet<> updated;
  SmallVector<llvm::StringSet<>> held; // by coordinate
  for (auto program : train.getOps<exec::ProgramOp>()) {
    for (auto update : program.getOps<exec::UpdateOp>())
      updated.insert(update.getStateName());
    llvm::StringSet<> &names = held.emplace_back();
    for (auto state : program.getOps<exec::StateOp>())
      names.insert(state.getStateName());
  }
  for (auto [coordinate, program] : llvm::enumerate(evaluation.getOps<exec::ProgramOp>()))
    for (auto state : program.getOps<exec::StateOp>())
      if (StringRef name = state.getStateName();
          coordinate < held.size() && updated.contains(name) && !held[coordinate].contains(name))
        return ("the loss alone needs '" + name + "' on device " + Twine(coordinate) +
                " of the pipeline, where the train step neither has nor updates it")
            .str();
  return "";
}

/// Adds to the exec IR of a train step an entry point that computes the loss alone, from the local
/// view of the same step.
static LogicalResult addEvaluation(ModuleOp module, OwningOpRef<ModuleOp> partitioned,
                                   const ResolvedOptions &options) {
  if (options.mode != CompileMode::Train)
    return success();
  ResolvedOptions forward = options;
  forward.recompute = Recompute::None; // nothing is kept
  // What there is to remark upon was said of the train step.
  std::string problem;
  {
    ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && problem.empty())
        problem = diagnostic.str();
      return success();
    });
    if (failed(runPasses(*partitioned,
                         [&](OpPassManager &manager) {
                           manager.addPass(createBuildEvaluationPass());
                           buildLowering(manager, forward);
                         })) &&
        problem.empty())
      problem = "a pass failed";
  }
  if (problem.empty())
    problem = findStaleState(module, *partitioned);
  // Training does not need it: a stage of ops that the loss alone does not need has no forward
  // pass, for example.
  if (!problem.empty()) {
    emitWarning(module.getLoc()) << "the plan cannot evaluate: " << problem;
    return success();
  }
  addEntryPoint(module, *partitioned, "evaluate");
  return runPasses(module, [](OpPassManager &manager) { manager.addPass(createPlanMemoryPass()); });
}

/// Takes a model to the programs of both phases of generation.
static LogicalResult compileGeneration(ModuleOp module, ResolvedOptions options) {
  OwningOpRef<ModuleOp> decode = module.clone();
  auto partition = [&](ModuleOp program) -> LogicalResult {
    return success(succeeded(declareMesh(program, options)) &&
                   succeeded(runPasses(program, [&](OpPassManager &manager) {
                     buildPartitioning(manager, options);
                   })));
  };
  auto lower = [&](ModuleOp program) {
    return runPasses(program, [&](OpPassManager &manager) { buildLowering(manager, options); });
  };
  if (failed(partition(module)))
    return failure();
  for (auto function : module.getOps<func::FuncOp>())
    if (auto starts = function->getAttrOfType<DenseI64ArrayAttr>(dist::kStageStartsAttrName))
      options.stageStarts = starts.asArrayRef().vec();
  options.decodes = true;
  if (failed(lower(module)))
    return failure();
  {
    // What there is to remark upon was said of the first program.
    ScopedDiagnosticHandler errorsOnly(module.getContext(), [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
    });
    if (failed(partition(*decode)) || failed(lower(*decode)))
      return failure();
  }
  addEntryPoint(module, *decode, "decode");
  if (failed(runPasses(module,
                       [](OpPassManager &manager) { manager.addPass(createPlanMemoryPass()); })))
    return failure();
  MemoryPeak peak = findPeak(module);
  if (options.memoryLimit == 0 || peak.bytes <= options.memoryLimit)
    return success();
  InFlightDiagnostic error = emitError(peak.where)
                             << "the plan needs " << runtime::formatBytes(peak.bytes) << " on "
                             << peak.device << ", more than the limit of "
                             << runtime::formatBytes(options.memoryLimit)
                             << "; use more devices, a smaller batch or shorter sequences";
  for (const MemoryPeak::Tensor &tensor : peak.largest)
    error.attachNote(tensor.where)
        << runtime::formatBytes(tensor.bytes) << " of that: " << tensor.what;
  return error;
}

/// finishCompile() without what describes the plan.
static LogicalResult finishPrograms(ModuleOp module, PlanSearch &search, Candidate &candidate,
                                    StringRef modelName, plan::Plan &plan) {
  emitAll(module.getContext(), search.partitionDiagnostics(candidate.options));
  emitAll(module.getContext(), candidate.diagnostics);
  module.getBodyRegion().takeBody(candidate.module->getBodyRegion());
  if (failed(addEvaluation(module, search.takePartitioned(candidate.options), candidate.options)))
    return failure();
  return exportPlan(module, modelName, plan);
}

/// compile() without what describes the plan.
static LogicalResult compilePrograms(ModuleOp module, const CompileOptions &options,
                                     StringRef modelName, plan::Plan &plan,
                                     const cluster::Cluster *cluster) {
  auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
  if (functions.size() != 1)
    return module.emitError() << "the model has " << functions.size()
                              << " functions, expected one, func.func @loss";
  if (functions.front().isExternal())
    return functions.front().emitOpError() << "has no body, expected one that computes the loss";
  ResolvedOptions effective = options;
  if (options.mode == CompileMode::Forward)
    effective.recompute = Recompute::None; // nothing is kept
  // The model's own mesh decides where the options have none.
  effective.modelHasMesh = !module.getOps<dist::MeshOp>().empty();
  for (auto mesh : module.getOps<dist::MeshOp>())
    for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>()) {
      effective.modelHasPipeline |= axis.getPipeline();
      if (axis.getTemporal() && axis.getSize() == 1)
        effective.modelMicrobatchAxis = axis.getName().str();
      if (effective.zero > 0 && effective.zeroAxes.empty() && options.mesh.empty() &&
          axis.getName() == "fsdp")
        effective.zeroAxes = {"fsdp"};
    }
  if (options.mode == CompileMode::Generate) {
    // There is one microbatch, which goes through the stages in any schedule alike.
    if (effective.schedule == "auto")
      effective.schedule = "1f1b";
    effective.recompute = Recompute::None;
    if (failed(compileGeneration(module, effective)))
      return failure();
    return exportPlan(module, modelName, plan);
  }
  if (options.schedule != "auto" && options.memoryLimit == 0) {
    if (failed(declareMesh(module, effective)) ||
        failed(runPasses(module,
                         [&](OpPassManager &manager) { buildPartitioning(manager, effective); })))
      return failure();
    OwningOpRef<ModuleOp> partitioned = module.clone();
    if (failed(runPasses(module,
                         [&](OpPassManager &manager) { buildLowering(manager, effective); })) ||
        failed(addEvaluation(module, std::move(partitioned), effective)))
      return failure();
    return exportPlan(module, modelName, plan);
  }
  PlanSearch search(module, modelName, cluster);
  std::optional<Candidate> best = search.run(effective);
  if (!best && search.closest)
    return explainMemory(module, modelName, effective, *search.closest), failure();
  if (!best)
    return emitAll(module.getContext(), search.failure), failure();
  if (options.schedule == "auto")
    emitRemark(module.getLoc()) << "the schedule is " << best->options.schedule << ": "
                                << llvm::formatv("{0:f1}", best->seconds * 1e6).str()
                                << " us a step " << (cluster ? "on the cluster, " : "by estimate, ")
                                << runtime::formatBytes(best->peak());
  return finishPrograms(module, search, *best, modelName, plan);
}

/// Adds to the plan what is known of the model before it is compiled.
static LogicalResult describing(ModuleOp module, const CompileOptions &options, plan::Plan &plan,
                                llvm::function_ref<LogicalResult()> compileIt) {
  plan::Plan described;
  describeModel(module, options, described);
  if (failed(compileIt()))
    return failure();
  plan.set_model_flops(described.model_flops());
  plan.set_masked_flops(described.masked_flops());
  return success();
}

LogicalResult dtc::compile(ModuleOp module, const CompileOptions &options, StringRef modelName,
                           plan::Plan &plan, const cluster::Cluster *cluster) {
  return describing(module, options, plan,
                    [&] { return compilePrograms(module, options, modelName, plan, cluster); });
}

LogicalResult dtc::finishCompile(ModuleOp module, PlanSearch &search, Candidate &candidate,
                                 StringRef modelName, plan::Plan &plan) {
  return describing(module, candidate.options, plan,
                    [&] { return finishPrograms(module, search, candidate, modelName, plan); });
}
