//===- CandidateSearch.cpp - Search for the fastest candidate that fits --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/CandidateSearch.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/analysis/SavedBytesSearch.h"
#include "compiler/driver/KnownTrials.h"
#include "compiler/driver/ModelFingerprint.h"
#include "compiler/driver/OffloadOption.h"
#include "compiler/export/ExportPlan.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/outer/OuterPasses.h"
#include "compiler/passes/pipeline/SchedulePipeline.h"
#include "compiler/passes/train/ModelFlops.h"
#include "plan/PlanVerifier.h"
#include "simulator/PlanSimulation.h"
#include "support/Format.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

using namespace mlir;
using namespace dtc;

namespace {
/// Collects the diagnostics of a scope.
class Collector {
public:
  Collector(MLIRContext *context, std::vector<Diagnostic> &into, bool errorsOnly = false)
      : handler(context, [&into, errorsOnly](Diagnostic &diagnostic) {
          if (!errorsOnly || diagnostic.getSeverity() == DiagnosticSeverity::Error)
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

/// Runs passes over a module. The result is verified only in builds with assertions.
static LogicalResult runUnverified(ModuleOp module,
                                   llvm::function_ref<void(OpPassManager &)> addPasses) {
  PassManager manager(module.getContext(), module.getOperationName());
  // After each pass it takes a quarter of the time. dtc-opt does it, and builds with assertions.
#ifdef NDEBUG
  manager.enableVerifier(false);
#endif
  // These are flags of dtc-opt, which print IR between passes; other tools have none of them.
  (void)applyPassManagerCLOptions(manager);
  addPasses(manager);
  return manager.run(module);
}

static LogicalResult runPasses(ModuleOp module, bool verifies,
                               llvm::function_ref<void(OpPassManager &)> addPasses) {
  return success(succeeded(runUnverified(module, addPasses)) &&
                 (!verifies || succeeded(verify(module))));
}

LogicalResult dtc::runPasses(ModuleOp module, llvm::function_ref<void(OpPassManager &)> addPasses) {
  return ::runPasses(module, /*verifies=*/true, addPasses);
}

std::string dtc::firstErrorOf(ArrayRef<Diagnostic> diagnostics) {
  for (const Diagnostic &diagnostic : diagnostics) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      continue;
    std::string text = diagnostic.str(), place;
    StringRef message = StringRef(text).split('\n').first;
    Location location = diagnostic.getLocation();
    if (auto file = location->findInstanceOf<FileLineColLoc>())
      place = fmt::format("{}:{}:{}", file.getFilename().str(), file.getLine(), file.getColumn());
    else if (auto name = location->findInstanceOf<NameLoc>();
             name && !message.contains(name.getName().getValue()))
      place = name.getName().str();
    return place.empty() ? message.str() : fmt::format("{}: {}", place, message.str());
  }
  return "a pass failed";
}

void dtc::describeModel(ModuleOp model, const CompileOptions &options, plan::Plan &plan) {
  auto functions = llvm::to_vector(model.getOps<func::FuncOp>());
  if (functions.size() != 1 || functions.front().isExternal() ||
      options.mode == CompileMode::Generate)
    return;
  ModelFlops flops =
      countModelFlops(functions.front(), options.mode != CompileMode::Forward, options.freeze);
  plan.set_model_flops(flops.all);
  plan.set_masked_flops(flops.masked);
  plan.set_model_fingerprint(fingerprintOf(functions.front()));
  if (options.mode == CompileMode::Train)
    plan.set_update_settings(describeUpdates(options));
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

/// Plans the memory of all entry points together, which share their states.
static LogicalResult planMemory(ModuleOp module) {
  return runPasses(module, [](OpPassManager &manager) { manager.addPass(createPlanMemoryPass()); });
}

static std::vector<int64_t> arenasOf(ModuleOp module) {
  std::vector<int64_t> arenas;
  for (auto program : module.getOps<exec::ProgramOp>())
    arenas.push_back(int64_t(*program.getArenaBytes()));
  return arenas;
}

LogicalResult dtc::partitionModel(ModuleOp model, const ResolvedOptions &options, bool verifies) {
  if (failed(declareMesh(model, options)))
    return mlir::failure();
  return ::runPasses(model, verifies,
                     [&](OpPassManager &manager) { buildPartitioning(manager, options); });
}

/// The gradients of `module` do not add up over several batches. Replaces it by a module
/// partitioned so that they do, or leaves the reason why there is none in its attribute.
static void accumulateIfPossible(OwningOpRef<ModuleOp> &module, ModuleOp model,
                                 ResolvedOptions options, bool verifies) {
  options.accumulates = true;
  OwningOpRef<ModuleOp> several = model.clone();
  std::vector<Diagnostic> errors;
  Collector collector(model.getContext(), errors, /*errorsOnly=*/true);
  if (succeeded(partitionModel(*several, options, verifies)))
    module = std::move(several);
  else
    (*module)->setAttr(dist::kOneBatchAttrName,
                       StringAttr::get(model.getContext(), firstErrorOf(errors)));
}

ModuleOp CandidateSearch::partitioned(const ResolvedOptions &options) {
  PartitionedModel &partitionedModel = partitionedModelOf(options);
  if (partitionedModel.isMade)
    return partitionedModel.module.get();
  partitionedModel.isMade = true;
  ResolvedOptions all = options;
  if (options.decodes) {
    ResolvedOptions first = options;
    first.decodes = false;
    all.stageStarts = stageStartsOf(partitioned(first));
  }
  partitionedModel.module = model.clone();
  // The first entry point has printed all remarks already.
  Collector collector(model.getContext(), partitionedModel.diagnostics,
                      /*errorsOnly=*/options.decodes);
  if (failed(partitionModel(*partitionedModel.module, all, verifies)))
    partitionedModel.module = nullptr;
  else if ((*partitionedModel.module)->hasAttr(dist::kOneBatchAttrName))
    accumulateIfPossible(partitionedModel.module, model, all, verifies);
  return partitionedModel.module.get();
}

/// Recomputes what is not kept, and appends to `keeps` what each device keeps.
static LogicalResult recompute(ModuleOp module, ResolvedOptions &options,
                               ArrayRef<int64_t> keepBytes, std::vector<DeviceSavedBytes> &keeps,
                               KnownRecomputeChoices *known = nullptr) {
  auto kept = recomputeActivations(module, recomputeOptions(options, keepBytes), known);
  if (failed(kept))
    return mlir::failure();
  llvm::append_range(keeps, *kept);
  options.recompute = Recompute::None; // it is done
  return success();
}

OwningOpRef<ModuleOp> dtc::lowerEntryPoint(const EntryPoint &entry, OwningOpRef<ModuleOp> module,
                                           bool plansMemory, ArrayRef<int64_t> keepBytes,
                                           std::vector<DeviceSavedBytes> &keeps, bool verifies) {
  ResolvedOptions rest = entry.options;
  if (entry.isEvaluation || rest.isOfOuterStep())
    rest.recompute = Recompute::None; // nothing is kept
  if (rest.recompute != Recompute::None && failed(recompute(*module, rest, keepBytes, keeps)))
    return nullptr;
  auto addPasses = [&](OpPassManager &manager) {
    if (entry.isEvaluation)
      manager.addPass(createBuildEvaluationPass());
    // The train step had the loss of each replica.
    if (entry.isEvaluation && !rest.outer.empty() && !rest.clients)
      manager.addPass(createSeparateReplicasPass({rest.outer}));
    buildLowering(manager, rest);
    if (plansMemory)
      manager.addPass(createPlanMemoryPass());
  };
  if (failed(::runPasses(*module, verifies, addPasses)))
    return nullptr;
  return module;
}

std::optional<Candidate> CandidateSearch::lower(const ResolvedOptions &options,
                                                ArrayRef<int64_t> keepBytes) {
  Candidate candidate;
  candidate.options = options;
  candidate.keepBytes = keepBytes.vec();
  auto fail = [&]() -> std::optional<Candidate> {
    recordFailure(candidate);
    return std::nullopt;
  };
  std::vector<EntryPoint> entries = entryPointsOf(options);
  llvm::erase_if(entries, [](const EntryPoint &entry) { return entry.isOptional; });
  for (const EntryPoint &entry : entries) {
    bool isFirst = entry.name.empty();
    Collector collector(model.getContext(), candidate.diagnostics, /*errorsOnly=*/!isFirst);
    ModuleOp partitionedModel = partitioned(entry.options);
    if (!partitionedModel) {
      emitAll(model.getContext(), partitionedModelOf(entry.options).diagnostics);
      return fail();
    }
    OwningOpRef<ModuleOp> module =
        lowerEntryPoint(entry, partitionedModel.clone(), /*plansMemory=*/entries.size() == 1,
                        keepBytes, candidate.keeps, verifies);
    if (!module)
      return fail();
    if (isFirst)
      candidate.module = std::move(module);
    else
      addPrograms(*candidate.module, *module, entry.name);
  }
  Collector collector(model.getContext(), candidate.diagnostics);
  if (entries.size() > 1 && failed(planMemory(*candidate.module)))
    return fail();
  candidate.arenas = arenasOf(*candidate.module);
  return candidate;
}

/// Builds the functions of the devices, after recomputation: of a pipeline, those that no earlier
/// trial has lowered. With ZeRO-3 all, as parameters are gathered for the stages of several devices
/// at a time.
static LogicalResult buildNewFunctions(ModuleOp module, const ResolvedOptions &options,
                                       ArrayRef<int64_t> keepBytes, KnownTrials &knownTrials) {
  if (!hasPipeline(options) || options.zero == 3)
    return runUnverified(module,
                         [&](OpPassManager &manager) { buildDeviceFunctions(manager, options); });
  if (failed(runUnverified(
          module, [&](OpPassManager &manager) { buildOffloadedActivations(manager, options); })))
    return mlir::failure();
  SchedulePipelinePassOptions schedule;
  schedule.schedule = options.schedule;
  schedule.chunks = chunksOf(options);
  return schedulePipeline(module, schedule, [&](int64_t device, ArrayRef<int64_t> order) {
    return knownTrials.isNew(int(device), keepBytes[device], order);
  });
}

std::optional<Candidate> CandidateSearch::tryKeeping(const ResolvedOptions &options,
                                                     ArrayRef<int64_t> keepBytes,
                                                     KnownTrials &knownTrials) {
  // States that several entry points share decide about the arenas of all of them.
  if (llvm::count_if(entryPointsOf(options),
                     [](const EntryPoint &entry) { return !entry.isOptional; }) > 1)
    return lower(options, keepBytes);
  Candidate candidate;
  candidate.options = options;
  candidate.keepBytes = keepBytes.vec();
  Collector collector(model.getContext(), candidate.diagnostics);
  OwningOpRef<ModuleOp> module = partitioned(options).clone();
  ResolvedOptions rest = options;
  auto fail = [&]() -> std::optional<Candidate> {
    recordFailure(candidate);
    return std::nullopt;
  };
  // Only the candidate that is taken is verified: it is lowered as a whole.
  if (failed(recompute(*module, rest, keepBytes, candidate.keeps, &knownTrials.choices)) ||
      failed(buildNewFunctions(*module, rest, keepBytes, knownTrials)))
    return fail();
  std::vector<std::optional<int64_t>> known = knownTrials.eraseKnown(*module);
  if (failed(runUnverified(*module, [&](OpPassManager &manager) {
        buildPrograms(manager, rest);
        manager.addPass(createPlanMemoryPass());
      })))
    return fail();
  candidate.arenas = knownTrials.complete(known, arenasOf(*module));
  return candidate;
}

FailureOr<MaybeError> CandidateSearch::addOptional(Candidate &candidate, const EntryPoint &entry) {
  std::vector<Diagnostic> errors;
  OwningOpRef<ModuleOp> module;
  {
    Collector collector(model.getContext(), errors, /*errorsOnly=*/true);
    // No more candidates need the local view.
    partitioned(entry.options);
    module = std::move(partitionedModelOf(entry.options).module);
    if (module)
      module =
          lowerEntryPoint(entry, std::move(module), /*plansMemory=*/false, {}, candidate.keeps);
  }
  if (!module)
    return MaybeError(Error{errors.empty() ? "a pass failed" : errors.front().str()});
  if (MaybeError error = findStaleState(*candidate.module, *module))
    return error;
  int64_t limit = candidate.options.memoryLimit;
  OwningOpRef<ModuleOp> without = limit > 0 ? candidate.module->clone() : nullptr;
  addPrograms(*candidate.module, *module, entry.name);
  if (failed(planMemory(*candidate.module)))
    return mlir::failure();
  std::vector<int64_t> arenas = arenasOf(*candidate.module);
  int64_t needed = *llvm::max_element(arenas);
  if (limit == 0 || needed <= limit) {
    candidate.arenas = std::move(arenas);
    return MaybeError();
  }
  candidate.module = std::move(without);
  return MaybeError(Error{fmt::format("with \"{}\" a device needs {}, more than the limit of {}",
                                      entry.name, formatBytes(needed), formatBytes(limit))});
}

LogicalResult CandidateSearch::complete(Candidate &candidate) {
  emitAll(model.getContext(), partitionedModelOf(candidate.options).diagnostics);
  emitAll(model.getContext(), candidate.diagnostics);
  for (const EntryPoint &entry : entryPointsOf(candidate.options)) {
    if (!entry.isOptional)
      continue;
    FailureOr<MaybeError> error = addOptional(candidate, entry);
    if (failed(error))
      return mlir::failure();
    if (*error)
      emitWarning(model.getLoc()) << "the plan cannot " << entry.name << ": " << (*error)->message;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

void CandidateSearch::recordFailure(Candidate &candidate) {
  if (!failure.empty())
    return;
  failure = std::move(candidate.diagnostics);
  failedModel = &partitionedModelOf(candidate.options);
}

void CandidateSearch::emitFailure() {
  if (failedModel)
    emitAll(model.getContext(), failedModel->diagnostics);
  emitAll(model.getContext(), failure);
}

bool CandidateSearch::addPlan(Candidate &candidate) {
  if (succeeded(exportPlan(*candidate.module, name, candidate.plan)))
    return true;
  recordFailure(candidate);
  return false;
}

void CandidateSearch::addSeconds(Candidate &candidate) {
  if (cluster) {
    // A plan has more devices than the cluster where all candidates have: then none is better.
    if (auto simulation = simulateOnCluster(candidate.plan, *cluster)) {
      candidate.seconds = simulation->stepSeconds;
      candidate.simulation = std::move(*simulation);
    }
  } else if (auto timeline = simulatePlan(candidate.plan)) {
    candidate.seconds = timeline->step().seconds();
  }
}

bool CandidateSearch::isTooSlow(Candidate &candidate) {
  if (std::isinf(slowest))
    return false;
  Collector collector(model.getContext(), candidate.diagnostics);
  if (!addPlan(candidate))
    return false;
  addSeconds(candidate);
  boundSeconds = candidate.seconds;
  if (*boundSeconds < slowest)
    return false;
  leastSeconds = boundSeconds;
  return true;
}

bool CandidateSearch::measure(Candidate &candidate) {
  Collector collector(model.getContext(), candidate.diagnostics);
  if (!addPlan(candidate))
    return false;
  describeModel(model, candidate.options, candidate.plan);
  // No schedule is chosen that no runtime would take.
  if (auto problem = provesPlan ? findPlanError(candidate.plan) : std::nullopt) {
    emitError(model.getLoc()) << "the plan cannot be run: " << problem->message;
    recordFailure(candidate);
    return false;
  }
  addSeconds(candidate);
  return true;
}

std::optional<Candidate> CandidateSearch::keepIfFits(std::optional<Candidate> candidate) {
  if (!candidate || candidate->options.memoryLimit == 0 ||
      candidate->peak() <= candidate->options.memoryLimit)
    return candidate;
  if (!closest || candidate->peak() < closest->peak())
    closest = std::move(candidate);
  return std::nullopt;
}

std::optional<Candidate> CandidateSearch::fit(const ResolvedOptions &options) {
  return options.recompute == Recompute::Auto ? recomputeLeast(options)
                                              : keepIfFits(lower(options));
}

/// The number of plans that a search may compile. A model of few ops has few choices, each choice
/// makes a difference, and a plan takes little time.
static constexpr int kFewestPlans = 16, kMostPlans = 64;
static int mostPlans(ModuleOp module) {
  int64_t ops = 0;
  module.walk([&](Operation *) { ++ops; });
  return int(std::clamp<int64_t>(80'000 / std::max<int64_t>(ops, 1), kFewestPlans, kMostPlans));
}

static double recomputeSeconds(const Candidate &candidate) {
  double sum = 0;
  for (const DeviceSavedBytes &device : candidate.keeps)
    sum += device.seconds;
  return sum;
}

std::optional<Candidate> CandidateSearch::withModule(Candidate candidate) {
  if (candidate.module)
    return candidate;
  return lower(candidate.options, candidate.keepBytes);
}

/// For each device the bound on its saved bytes for the backward pass with which it fits and
/// computes least again. Devices are searched side by side: each plan has a bound for all of them.
std::optional<Candidate> CandidateSearch::recomputeLeast(const ResolvedOptions &options) {
  constexpr double kWorthwhile = 0.01; // of the forward pass
  std::optional<Candidate> best = lower(options);
  if (!best || options.memoryLimit == 0 || best->peak() <= options.memoryLimit)
    return best;
  if (isTooSlow(*best))
    return std::nullopt;
  std::vector<SavedBytesSearch> searches;
  for (const DeviceSavedBytes &device : best->keeps)
    searches.emplace_back(options.memoryLimit, kWorthwhile * device.forwardSeconds);
  auto note = [&](const Candidate &candidate, ArrayRef<int64_t> bounds) {
    for (auto [search, bound, arena, keeps] :
         llvm::zip_equal(searches, bounds, candidate.arenas, candidate.keeps))
      search.add({bound, keeps.bytes, arena, keeps.seconds});
  };
  std::vector<int64_t> bounds(searches.size(), std::numeric_limits<int64_t>::max());
  note(*best, bounds);
  best = keepIfFits(std::move(best));
  KnownTrials knownTrials;
  int plans = mostPlans(partitioned(options));
  for (int plan = 0; plan < plans; ++plan) {
    if (isEnding && *isEnding)
      return std::nullopt;
    if (slowestNow && boundSeconds && *boundSeconds >= *slowestNow) {
      leastSeconds = boundSeconds;
      return std::nullopt;
    }
    bool isDone = true;
    for (auto [search, bound] : llvm::zip_equal(searches, bounds)) {
      const SavedBytesTrial *found = search.best();
      std::optional<int64_t> next;
      // The last plan joins what was found for each device.
      if (plan + 1 < plans || !found)
        next = search.next();
      if (!next && !found)
        return std::nullopt;
      bound = next ? *next : found->bound;
      isDone &= !next;
    }
    // Each device's bound was found beside others of the others'.
    if (isDone && best && llvm::all_of(llvm::zip_equal(searches, best->keeps), [](auto pair) {
          return std::get<1>(pair).seconds <= std::get<0>(pair).best()->seconds;
        }))
      break;
    std::optional<Candidate> candidate = tryKeeping(options, bounds, knownTrials);
    if (!candidate)
      return std::nullopt;
    note(*candidate, bounds);
    candidate = keepIfFits(std::move(candidate));
    // Plans of large models take too long to try them where nothing is likely to fit.
    if (plans == kFewestPlans &&
        llvm::any_of(searches, [](const SavedBytesSearch &search) { return search.isHopeless(); }))
      return std::nullopt;
    if (candidate && (!best || recomputeSeconds(*candidate) < recomputeSeconds(*best)))
      best = std::move(candidate);
  }
  return best ? withModule(std::move(*best)) : std::nullopt;
}

std::optional<Candidate> CandidateSearch::choose(const ResolvedOptions &options) {
  if (options.offload != kAutoOffload)
    return chooseSchedule(options);
  ResolvedOptions tried = options;
  tried.offload.clear();
  std::optional<Candidate> fits = chooseSchedule(tried);
  for (const char *offload : kOffloadsOfAuto) {
    if (fits || !closest)
      break;
    tried.offload = offload;
    fits = chooseSchedule(tried);
  }
  return fits;
}

std::optional<Candidate> CandidateSearch::chooseSchedule(const ResolvedOptions &options) {
  if (options.schedule != kAutoSchedule)
    return fit(options);
  std::optional<Candidate> best;
  for (const ScheduleRule &rule : getScheduleRules()) {
    ResolvedOptions tried = options;
    tried.schedule = rule.name.str();
    if (options.chunks > 0 && (options.chunks < rule.minChunks || options.chunks > rule.maxChunks))
      continue;
    std::optional<Candidate> candidate = fit(tried);
    if (candidate && measure(*candidate) && (!best || candidate->seconds < best->seconds))
      best = std::move(candidate);
  }
  return best;
}

std::optional<Candidate> CandidateSearch::run(const ResolvedOptions &options) {
  std::optional<Candidate> candidate = choose(options);
  if (candidate && options.schedule != kAutoSchedule && !measure(*candidate))
    return std::nullopt;
  return candidate;
}
