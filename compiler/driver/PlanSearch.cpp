//===- PlanSearch.cpp - The fastest plan that fits ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PlanSearch.h"

#include "compiler/analysis/KeepSearch.h"
#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/export/ExportPlan.h"
#include "compiler/passes/train/ModelFlops.h"
#include "plan/PlanValidator.h"
#include "simulator/PlanSimulation.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

using namespace mlir;
using namespace dtc;

namespace {
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

LogicalResult dtc::runPasses(ModuleOp module, llvm::function_ref<void(OpPassManager &)> addPasses) {
  PassManager manager(module.getContext(), module.getOperationName());
  // After each pass it takes a quarter of the time. dtc-opt does it, and builds with assertions.
#ifdef NDEBUG
  manager.enableVerifier(false);
#endif
  addPasses(manager);
  return success(succeeded(manager.run(module)) && succeeded(verify(module)));
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
}

ModuleOp PlanSearch::partitioned(const ResolvedOptions &options) {
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

std::optional<Candidate> PlanSearch::lower(const ResolvedOptions &options,
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
  auto fail = [&]() -> std::optional<Candidate> {
    noteFailure(candidate.diagnostics);
    return std::nullopt;
  };
  ResolvedOptions rest = options;
  if (options.recompute != Recompute::None) {
    auto keeps = recomputeActivations(*candidate.module, recomputeOptions(options, keepBytes));
    if (failed(keeps))
      return fail();
    candidate.keeps = std::move(*keeps);
    rest.recompute = Recompute::None; // it is done
  }
  if (failed(runPasses(*candidate.module,
                       [&](OpPassManager &manager) { buildLowering(manager, rest); })))
    return fail();
  for (auto program : candidate.module->getOps<exec::ProgramOp>())
    candidate.arenas.push_back(*program.getArenaBytes());
  return candidate;
}

std::optional<Candidate> PlanSearch::finish(std::optional<Candidate> candidate) {
  if (!candidate)
    return std::nullopt;
  Collector collector(model.getContext(), candidate->diagnostics);
  auto fail = [&]() -> std::optional<Candidate> {
    noteFailure(candidate->diagnostics);
    return std::nullopt;
  };
  if (failed(exportPlan(*candidate->module, name, candidate->plan)))
    return fail();
  describeModel(model, candidate->options, candidate->plan);
  // No schedule is chosen that no runtime would take.
  if (auto problem = runtime::validatePlan(candidate->plan)) {
    emitError(model.getLoc()) << "the plan cannot be run: " << problem->message;
    return fail();
  }
  if (cluster) {
    // A plan has more devices than the cluster where all candidates have: then none is better.
    if (auto simulation = runtime::simulateOnCluster(candidate->plan, *cluster)) {
      candidate->seconds = simulation->stepSeconds;
      candidate->simulation = std::move(*simulation);
    }
  } else if (auto timeline = runtime::simulatePlan(candidate->plan)) {
    candidate->seconds = timeline->step().seconds();
  }
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

std::optional<Candidate> PlanSearch::fit(const ResolvedOptions &options) {
  if (options.recompute == Recompute::Auto)
    return finish(recomputeLeast(options));
  return finish(keepIfFits(lower(options)));
}

/// How many plans a search may take. With few ops the choices are few, of which each makes a
/// difference, and a plan takes little time.
static int mostPlans(ModuleOp module) {
  int64_t ops = 0;
  module.walk([&](Operation *) { ++ops; });
  return int(std::clamp<int64_t>(80'000 / std::max<int64_t>(ops, 1), 16, 64));
}

/// For each device the bound on what it keeps for the backward pass with which it fits and computes
/// least again. Devices are searched side by side: each plan has a bound for all of them.
std::optional<Candidate> PlanSearch::recomputeLeast(const ResolvedOptions &options) {
  constexpr double kWorthwhile = 0.01; // of the forward pass
  std::optional<Candidate> best = lower(options);
  if (!best || options.memoryLimit == 0 || best->peak() <= options.memoryLimit)
    return best;
  auto secondsOf = [](const Candidate &candidate) {
    double sum = 0;
    for (const DeviceKeeps &device : candidate.keeps)
      sum += device.seconds;
    return sum;
  };
  std::vector<KeepSearch> searches;
  for (const DeviceKeeps &device : best->keeps)
    searches.emplace_back(options.memoryLimit, kWorthwhile * device.forwardSeconds);
  auto note = [&](const Candidate &candidate, ArrayRef<int64_t> bounds) {
    for (auto [search, bound, arena, keeps] :
         llvm::zip_equal(searches, bounds, candidate.arenas, candidate.keeps))
      search.add({bound, keeps.bytes, arena, keeps.seconds});
  };
  std::vector<int64_t> bounds(searches.size(), std::numeric_limits<int64_t>::max());
  note(*best, bounds);
  best = keepIfFits(std::move(best));
  int plans = mostPlans(partitioned(options));
  for (int plan = 0; plan < plans; ++plan) {
    bool isDone = true;
    for (auto [search, bound] : llvm::zip_equal(searches, bounds)) {
      const KeepPlan *found = search.best();
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
    std::optional<Candidate> candidate = lower(options, bounds);
    if (!candidate)
      return std::nullopt;
    note(*candidate, bounds);
    candidate = keepIfFits(std::move(candidate));
    if (candidate && (!best || secondsOf(*candidate) < secondsOf(*best)))
      best = std::move(candidate);
  }
  return best;
}

std::optional<Candidate> PlanSearch::run(const ResolvedOptions &options) {
  if (options.schedule != "auto")
    return fit(options);
  std::optional<Candidate> best;
  for (const ScheduleRule &rule : getScheduleRules()) {
    ResolvedOptions tried = options;
    tried.schedule = rule.name.str();
    if (options.chunks > 0 && (options.chunks < rule.minChunks || options.chunks > rule.maxChunks))
      continue;
    std::optional<Candidate> candidate = fit(tried);
    if (candidate && (!best || candidate->seconds < best->seconds))
      best = std::move(candidate);
  }
  return best;
}
