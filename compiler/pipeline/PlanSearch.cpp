//===- PlanSearch.cpp - The fastest plan that fits ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What a plan needs is known once memory is planned, and how long it takes once it is simulated. So
// choices that depend on either are made by compiling the candidates: from the local view on, which
// they share.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/export/ExportPlan.h"
#include "compiler/pipeline/MemoryReport.h"
#include "compiler/pipeline/Pipeline.h"
#include "dialects/dist/Dist.h"
#include "runtime/plan/PlanValidator.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/report/PlanSimulation.h"
#include "runtime/support/Format.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>
#include <map>
#include <optional>

using namespace mlir;
using namespace dtc;

namespace {

/// A program that was taken the whole road.
struct Candidate {
  CompileOptions options;
  OwningOpRef<ModuleOp> module;
  plan::Plan plan;
  std::vector<int64_t> arenas; ///< of each program, bytes
  double seconds = 0;          ///< of a step, by simulation
  std::vector<Diagnostic> diagnostics;

  int64_t peak() const { return *llvm::max_element(arenas); }
};

class PlanSearch {
public:
  PlanSearch(ModuleOp model, StringRef name) : model(model), name(name) {}
  /// The best candidate; nullopt, with `closest` set where something compiled, where none fits.
  std::optional<Candidate> run(const CompileOptions &options);

  std::optional<Candidate> closest; ///< of those that do not fit, the one that needs least
  std::vector<Diagnostic> failure;  ///< of what did not compile
  /// What was said of a program before it was lowered.
  std::vector<Diagnostic> &partitionDiagnostics(const CompileOptions &options) {
    return frontOf(options).diagnostics;
  }

private:
  /// The local view, shared by what differs in what follows; null where it did not compile.
  ModuleOp partitioned(const CompileOptions &options);
  std::optional<Candidate> lower(const CompileOptions &options, ArrayRef<int64_t> keepBytes = {});
  std::optional<Candidate> fit(const CompileOptions &options);
  std::optional<Candidate> recomputeLeast(const CompileOptions &options);
  std::optional<Candidate> keepIfFits(std::optional<Candidate> candidate);

  ModuleOp model;
  StringRef name;
  struct Front {
    bool isMade = false;
    OwningOpRef<ModuleOp> module;
    std::vector<Diagnostic> diagnostics;
  };
  Front &frontOf(const CompileOptions &options) {
    return fronts[{chunksOf(options), options.recompute != "none"}];
  }
  /// Keeps what was said of the first candidate that did not compile.
  void noteFailure(std::vector<Diagnostic> &diagnostics) {
    if (failure.empty())
      failure = std::move(diagnostics);
  }
  std::map<std::pair<int64_t, bool>, Front>
      fronts; ///< by chunks, and whether something is recomputed
};

/// Collects the diagnostics of a scope.
class Collector {
public:
  Collector(MLIRContext *context, std::vector<Diagnostic> &into)
      : handler(context, [&into](Diagnostic &diagnostic) {
          into.push_back(std::move(diagnostic));
          return success();
        }) {}

private:
  ScopedDiagnosticHandler handler;
};

} // namespace

static void emitAll(MLIRContext *context, std::vector<Diagnostic> &diagnostics) {
  for (Diagnostic &diagnostic : diagnostics)
    context->getDiagEngine().emit(std::move(diagnostic));
  diagnostics.clear();
}

static LogicalResult runPasses(ModuleOp module,
                               llvm::function_ref<void(OpPassManager &)> addPasses) {
  PassManager manager(module.getContext(), module.getOperationName());
  addPasses(manager);
  return manager.run(module);
}

ModuleOp PlanSearch::partitioned(const CompileOptions &options) {
  Front &front = frontOf(options);
  if (front.isMade)
    return front.module.get();
  front.isMade = true;
  front.module = model.clone();
  Collector collector(model.getContext(), front.diagnostics);
  if (failed(declareMesh(*front.module, options)) ||
      failed(runPasses(*front.module,
                       [&](OpPassManager &manager) { buildPartitioning(manager, options); })))
    front.module = nullptr;
  return front.module.get();
}

std::optional<Candidate> PlanSearch::lower(const CompileOptions &options,
                                           ArrayRef<int64_t> keepBytes) {
  ModuleOp front = partitioned(options);
  if (!front) {
    noteFailure(frontOf(options).diagnostics);
    return std::nullopt;
  }
  Candidate candidate;
  candidate.options = options;
  candidate.module = front.clone();
  Collector collector(model.getContext(), candidate.diagnostics);
  if (failed(
          runPasses(*candidate.module,
                    [&](OpPassManager &manager) { buildLowering(manager, options, keepBytes); })) ||
      failed(exportPlan(*candidate.module, name, candidate.plan))) {
    noteFailure(candidate.diagnostics);
    return std::nullopt;
  }
  // No schedule is chosen that no runtime would take.
  if (auto problem = runtime::validatePlan(candidate.plan)) {
    emitError(model.getLoc()) << "the plan cannot be run: " << problem->message;
    noteFailure(candidate.diagnostics);
    return std::nullopt;
  }
  for (const plan::Program &program : candidate.plan.programs())
    candidate.arenas.push_back(int64_t(program.arena_bytes()));
  if (auto timeline = runtime::simulatePlan(candidate.plan))
    candidate.seconds = timeline->step().seconds();
  return candidate;
}

std::optional<Candidate> PlanSearch::keepIfFits(std::optional<Candidate> candidate) {
  if (!candidate || candidate->options.memoryLimit == 0 ||
      candidate->peak() <= candidate->options.memoryLimit)
    return candidate;
  if (!closest || candidate->peak() < closest->peak())
    closest = std::move(candidate);
  return std::nullopt;
}

std::optional<Candidate> PlanSearch::fit(const CompileOptions &options) {
  if (options.recompute == "auto")
    return recomputeLeast(options);
  return keepIfFits(lower(options));
}

/// For each device the largest bound on what it keeps for the backward pass with which it fits.
/// What a device needs does not only grow with the bound: what is computed again is there for a
/// while, too. So bounds all the way are tried, for all devices at once, and then halves of the
/// step behind the largest that fits.
std::optional<Candidate> PlanSearch::recomputeLeast(const CompileOptions &options) {
  std::optional<Candidate> all = lower(options);
  if (!all || options.memoryLimit == 0 || all->peak() <= options.memoryLimit)
    return all;
  size_t devices = all->arenas.size();
  std::vector<int64_t> most; // what a device keeps at most, about
  for (const plan::Program &program : all->plan.programs()) {
    auto it = program.memory_by_kind().find("activation");
    most.push_back(it == program.memory_by_kind().end() ? 0 : int64_t(it->second));
  }
  constexpr int64_t kSteps = 8;
  constexpr int kHalvings = 4;
  std::vector<std::optional<int64_t>> fits(devices);
  auto fitsLimit = [&](int64_t arena) { return arena <= options.memoryLimit; };
  for (size_t device = 0; device < devices; ++device)
    if (fitsLimit(all->arenas[device]))
      fits[device] = std::numeric_limits<int64_t>::max();
  std::optional<Candidate> best;
  auto attempt = [&](ArrayRef<int64_t> bounds) {
    std::optional<Candidate> candidate = lower(options, bounds);
    if (!candidate)
      return false;
    for (size_t device = 0; device < devices; ++device)
      if (fitsLimit(candidate->arenas[device]) && bounds[device] > fits[device].value_or(-1))
        fits[device] = bounds[device];
    candidate = keepIfFits(std::move(candidate));
    if (candidate && (!best || candidate->seconds < best->seconds))
      best = std::move(candidate);
    return true;
  };
  auto boundsOf = [&](auto boundOf) {
    std::vector<int64_t> bounds;
    for (size_t device = 0; device < devices; ++device)
      bounds.push_back(fitsLimit(all->arenas[device]) ? std::numeric_limits<int64_t>::max()
                                                      : boundOf(device));
    return bounds;
  };
  for (int64_t step = 0; step < kSteps; ++step)
    if (!attempt(boundsOf([&](size_t device) { return most[device] / kSteps * step; })))
      return std::nullopt;
  if (!llvm::all_of(fits, [](auto &bound) { return bound.has_value(); }))
    return std::nullopt;
  for (int halving = 1; halving <= kHalvings; ++halving)
    if (!attempt(boundsOf(
            [&](size_t device) { return *fits[device] + (most[device] / kSteps >> halving); })))
      return std::nullopt;
  // Each device's bound was found beside others of the others'.
  attempt(boundsOf([&](size_t device) { return *fits[device]; }));
  return best;
}

std::optional<Candidate> PlanSearch::run(const CompileOptions &options) {
  if (options.schedule != "auto")
    return fit(options);
  std::optional<Candidate> best;
  for (const ScheduleRule &rule : getScheduleRules()) {
    CompileOptions tried = options;
    tried.schedule = rule.name.str();
    if (options.chunks > 0 && (options.chunks < rule.minChunks || options.chunks > rule.maxChunks))
      continue;
    std::optional<Candidate> candidate = fit(tried);
    if (candidate && (!best || candidate->seconds < best->seconds))
      best = std::move(candidate);
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Where nothing fits
//===----------------------------------------------------------------------===//

namespace {
struct Change {
  std::string what;
  CompileOptions options;
};
} // namespace

/// What the user could change, the cheapest first.
static std::vector<Change> changesOf(const CompileOptions &options) {
  std::vector<Change> changes;
  auto add = [&](const std::string &what, auto change) {
    CompileOptions changed = options;
    change(changed);
    changes.push_back({what, changed});
  };
  auto hasAxis = [&](StringRef axis) {
    return llvm::any_of(options.mesh, [&](auto &entry) { return entry.first == axis; });
  };
  if (options.recompute != "auto")
    add("--recompute auto", [](CompileOptions &o) { o.recompute = "auto"; });
  if (options.recompute == "auto")
    add("--recompute selective", [](CompileOptions &o) { o.recompute = "selective"; });
  if (hasAxis("dp") || hasAxis("fsdp") || !options.zeroAxes.empty())
    for (int64_t stage = options.zero + 1; stage <= 3; ++stage)
      add(llvm::formatv("--zero {0}", stage), [&](CompileOptions &o) { o.zero = stage; });
  if (options.recompute != "auto" && options.zero < 3 && (hasAxis("dp") || hasAxis("fsdp")))
    add("--zero 3 --recompute auto", [](CompileOptions &o) {
      o.zero = 3;
      o.recompute = "auto";
    });
  for (int64_t factor : {2, 4})
    add(llvm::formatv("--microbatches {0}", options.microbatches * factor),
        [&](CompileOptions &o) { o.microbatches *= factor; });
  for (int64_t factor : {2, 4}) {
    CompileOptions changed = options;
    auto axis =
        llvm::find_if(changed.mesh, [](auto &entry) { return entry.first == kPipelineAxis; });
    if (axis == changed.mesh.end())
      axis = changed.mesh.insert(changed.mesh.end(), {kPipelineAxis, 1});
    axis->second *= factor;
    changes.push_back({llvm::formatv("--mesh with pp={0}", axis->second).str(), changed});
  }
  return changes;
}

static void explainMemory(ModuleOp model, StringRef name, const CompileOptions &options,
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
    if (found)
      break;
  }
  if (!fits)
    error.attachNote(model.getLoc())
        << "no single change of these is enough; combine them, or use more or larger devices";
}

//===----------------------------------------------------------------------===//
// The whole road
//===----------------------------------------------------------------------===//

LogicalResult dtc::compile(ModuleOp module, const CompileOptions &options, StringRef modelName,
                           plan::Plan &plan) {
  auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
  if (functions.size() != 1)
    return module.emitError() << "the model has " << functions.size()
                              << " functions, expected one, func.func @loss";
  if (functions.front().isExternal())
    return functions.front().emitOpError() << "has no body, expected one that computes the loss";
  CompileOptions effective = options;
  if (options.mode == CompileOptions::Mode::Forward)
    effective.recompute = "none"; // nothing is kept
  // The model's own mesh decides where the options have none.
  effective.modelHasMesh = !module.getOps<dist::MeshOp>().empty();
  for (auto mesh : module.getOps<dist::MeshOp>())
    for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>()) {
      effective.modelHasPipeline |= axis.getPipeline();
      if (effective.zero > 0 && effective.zeroAxes.empty() && options.mesh.empty() &&
          axis.getName() == "fsdp")
        effective.zeroAxes = {"fsdp"};
    }
  if (options.schedule != "auto" && options.memoryLimit == 0) {
    if (failed(declareMesh(module, effective)) ||
        failed(runPasses(module, [&](OpPassManager &manager) {
          buildPartitioning(manager, effective);
          buildLowering(manager, effective);
        })))
      return failure();
    return exportPlan(module, modelName, plan);
  }
  PlanSearch search(module, modelName);
  std::optional<Candidate> best = search.run(effective);
  if (!best && search.closest)
    return explainMemory(module, modelName, effective, *search.closest), failure();
  if (!best)
    return emitAll(module.getContext(), search.failure), failure();
  emitAll(module.getContext(), search.partitionDiagnostics(best->options));
  emitAll(module.getContext(), best->diagnostics);
  if (options.schedule == "auto")
    emitRemark(module.getLoc()) << "the schedule is " << best->options.schedule << ": "
                                << llvm::formatv("{0:f1}", best->seconds * 1e6).str()
                                << " us a step by estimate, " << runtime::formatBytes(best->peak());
  module.getBodyRegion().takeBody(best->module->getBodyRegion());
  plan = std::move(best->plan);
  return success();
}
