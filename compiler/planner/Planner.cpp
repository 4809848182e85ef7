//===- Planner.cpp - The best plan for a model and machines --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/Planner.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/passes/train/ModelFlops.h"
#include "compiler/pipeline/PlanSearch.h"
#include "compiler/planner/PlannerReport.h"
#include "runtime/cluster/DeviceTime.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

using namespace mlir;
using namespace dtc;
using runtime::Error;
using runtime::Expected;

/// How much faster than its estimate a layout may turn out to be.
static constexpr double kEstimateError = 0.1;
/// Where so many layouts can be simulated, the search is thorough; else it looks at what promises
/// to be at most so many times slower than the best.
static constexpr int64_t kManySimulations = 10;
static constexpr int64_t kMoreSimulations = 6;
static constexpr double kMargin = 4, kCostlyMargin = 1.2;
/// How many units of schedules are looked at one by one, in all layouts together.
static constexpr int64_t kMostUnits = 1'000'000;
/// How far the estimate of a layout's memory may be off.
static constexpr double kMemoryError = 0.05;
/// By how much more these may be off as long as nothing of the work that may be done is.
static constexpr double kSpareTimeError = 0.4, kSpareMemoryError = 0.2;

static int64_t batchOf(ModuleOp model) { return findTraits(model, 0).batch; }

Planner::Planner(ModuleOp model, StringRef name, const PlannerOptions &options)
    : model(model), name(name), options(options),
      probe(model, options.base, *options.cluster, batchOf(model)),
      traits(findTraits(model, probe.numLayers())), estimator(this->options, traits) {}

/// The devices that are used, of the cluster's first ones.
static int64_t deviceCount(const PlannerOptions &options) {
  return options.devices > 0 ? options.devices : runtime::countDevices(*options.cluster);
}

static double usableBytes(const PlannerOptions &options) {
  double least = std::numeric_limits<double>::infinity();
  for (const runtime::UsedNodes &used :
       runtime::findUsedNodes(*options.cluster, deviceCount(options))) {
    double share = used.device->usable_memory() > 0 ? used.device->usable_memory() : 1;
    least = std::min(least, used.device->memory_bytes() * share);
  }
  return least;
}

/// The most FLOP/s that products reach on a device: large ones, the best that was measured, or
/// those inside of attention.
static double bestRate(const cluster::Device &device, runtime::DType dtype) {
  runtime::MatrixShape large{1, 65536, 65536, 65536};
  double best = large.flops() / runtime::productSeconds(device, dtype, large);
  for (const cluster::MatrixRate &rate : device.matrix())
    if (rate.dtype() == runtime::name(dtype))
      for (double measured : rate.table().flops())
        best = std::max(best, measured);
  if (const cluster::KernelRate *rate = runtime::findKernelRate(device, "attention", dtype))
    best = std::max(best, rate->flops());
  return best;
}

/// The FLOP/s of all devices together that products reach at best.
static double sustainedFlops(const PlannerOptions &options) {
  runtime::DType dtype = options.base.dtype == "bf16"  ? runtime::DType::BF16
                         : options.base.dtype == "f16" ? runtime::DType::F16
                                                       : runtime::DType::F32;
  double sum = 0;
  for (const runtime::UsedNodes &used :
       runtime::findUsedNodes(*options.cluster, deviceCount(options)))
    sum += double(used.devices) * bestRate(*used.device, dtype);
  return sum;
}

CompileOptions Planner::optionsOf(const ParallelLayout &layout) const {
  CompileOptions result = layout.toOptions(options.base);
  // What is compiled is what was asked for, and whether it fits is looked at.
  result.memoryLimit = 0;
  return result;
}

/// How many layouts may be compiled: the work that this takes grows with the ops of the model.
static int64_t mostSimulations(ModuleOp model) {
  int64_t ops = 0;
  model.walk([&](Operation *) { ++ops; });
  return std::clamp<int64_t>(10'000 / std::max<int64_t>(ops, 1), 2, 60);
}

void Planner::estimateAll(PlanChoice &choice,
                          llvm::function_ref<void(const PlannerProgress &)> report) {
  std::vector<ParallelLayout> layouts = enumerateLayouts(options, traits);
  choice.progress.layouts = int64_t(layouts.size());
  // What is computed again takes time, and what lies between blocks little: with the costs of a
  // layout without either, few layouts promise enough for finding out their own.
  struct Promise {
    double seconds;
    size_t layout;
  };
  std::vector<Promise> promises;
  for (auto [index, layout] : llvm::enumerate(layouts)) {
    CostKey key = layout.key(traits.batch);
    key.recompute = "none";
    key.sequenceParallel = layout.tp > 1 && traits.hasSequenceAxis;
    const ModelCosts *costs = probe.find(key);
    choice.progress.probes = probe.numProbes();
    report(choice.progress);
    if (costs)
      promises.push_back({estimator.estimate(layout, *costs).seconds(), index});
  }
  llvm::stable_sort(promises,
                    [](const Promise &a, const Promise &b) { return a.seconds < b.seconds; });
  double best = std::numeric_limits<double>::infinity();
  double margin = mostSimulations(model) < kManySimulations ? kCostlyMargin : kMargin;
  for (const Promise &promise : promises) {
    if (promise.seconds > margin * best)
      break;
    const ParallelLayout &layout = layouts[promise.layout];
    const ModelCosts *costs = probe.find(layout.key(traits.batch));
    choice.progress.probes = probe.numProbes();
    if (!costs)
      continue;
    RankedLayout entry;
    entry.layout = layout;
    entry.estimate = estimator.estimate(layout, *costs);
    entry.fits = entry.estimate.bytes <= choice.memoryBytes;
    if (entry.fits)
      best = std::min(best, entry.estimate.seconds());
    ++choice.progress.estimated;
    choice.ranked.push_back(std::move(entry));
    report(choice.progress);
  }
  auto sort = [&] {
    llvm::stable_sort(choice.ranked, [](const RankedLayout &a, const RankedLayout &b) {
      return a.estimate.seconds() < b.estimate.seconds();
    });
  };
  sort();
  // The best are looked at more closely.
  int64_t units = kMostUnits;
  for (RankedLayout &entry : choice.ranked) {
    if (!entry.fits)
      continue;
    units -= StepEstimator::numUnits(entry.layout);
    if (units < 0)
      break;
    StepEstimator::refine(entry.layout, entry.estimate);
    entry.fits = entry.estimate.bytes <= choice.memoryBytes;
  }
  sort();
}

bool Planner::simulate(RankedLayout &entry, plan::Plan &plan) {
  CompileOptions compiled = optionsOf(entry.layout);
  // What is wrong with a layout takes it out of the search.
  ScopedDiagnosticHandler quiet(model.getContext(), [](Diagnostic &) { return success(); });
  PlanSearch search(model, name);
  std::optional<Candidate> candidate = search.run(compiled);
  if (!candidate)
    return false;
  auto simulation = runtime::simulateOnCluster(candidate->plan, *options.cluster);
  if (!simulation)
    return false;
  entry.arenaBytes = candidate->peak();
  entry.fits = true;
  for (const runtime::StageSimulation &stage : simulation->stages)
    entry.fits &= double(stage.arenaBytes) <= stage.memoryBytes;
  simulation->step = {}; // tables need no timeline
  entry.simulation = std::move(*simulation);
  plan = std::move(candidate->plan);
  return true;
}

/// How many times its estimate a layout takes, before any of its kind was simulated: schedules that
/// split weights' gradients off make more, smaller tasks and keep their operands in memory.
static double priorError(const ParallelLayout &layout) {
  auto rule = findScheduleRule(layout.schedule);
  return layout.pp > 1 && rule && rule->splitsWeight ? 1.1 : 1;
}

/// What layouts have in common whose estimates err in the same way.
static std::string kindOf(const ParallelLayout &layout) {
  return fmt::format("{} {} {} {} {}", layout.pp > 1 ? layout.schedule : "", layout.zero,
                     layout.recompute, layout.sequenceParallel, layout.microbatches > 1);
}

void Planner::simulateBest(PlanChoice &choice,
                           llvm::function_ref<void(const PlannerProgress &)> report) {
  const int64_t most = mostSimulations(model);
  const bool isThorough = most >= kManySimulations;
  int64_t left = most;
  double best = std::numeric_limits<double>::infinity();
  std::optional<size_t> chosen; // that the best is of
  // How many times its estimate a kind of layout takes at least, as far as is known.
  std::map<std::string, double> errors;
  // How much of its estimate a layout holds: at least, where there is time to find out, and else at
  // most.
  double memoryShare = 1;
  std::vector<std::string> kinds;
  for (const RankedLayout &entry : choice.ranked)
    kinds.push_back(kindOf(entry.layout));
  std::vector<bool> isDone(choice.ranked.size(), false);
  std::vector<RankedLayout> simulated, others;
  // Without any that fits, a few more are worth their time.
  while (left > 0 || (std::isinf(best) && left > -kMoreSimulations)) {
    // While much of the work is left, estimates are taken to be worse than they should be. Where
    // little can be tried, what may not fit is no loss to be taken.
    double spare = isThorough ? std::max(0.0, double(left) / double(most)) : 0;
    double doubt = kEstimateError + kSpareTimeError * spare;
    double limit = choice.memoryBytes *
                   (isThorough ? 1 + kMemoryError + kSpareMemoryError * spare : 1 - kMemoryError);
    // The one that promises most.
    std::optional<size_t> next;
    double promise = best;
    for (auto [index, entry] : llvm::enumerate(choice.ranked)) {
      if (isDone[index] || entry.estimate.bytes * memoryShare > limit)
        continue;
      auto error = errors.find(kinds[index]);
      double times = error == errors.end() ? priorError(entry.layout) : error->second;
      if (times > 1) // known from few of its kind
        times = std::pow(times, 1 - spare / 2);
      double seconds = entry.estimate.seconds() * times;
      if (seconds * (1 - doubt) < promise) {
        promise = seconds * (1 - doubt);
        next = index;
      }
    }
    // Where nothing fits yet, the one that needs least.
    if (!next && std::isinf(best))
      for (auto [index, entry] : llvm::enumerate(choice.ranked))
        if (!isDone[index] && entry.estimate.bytes < 2 * choice.memoryBytes &&
            (!next || entry.estimate.bytes < choice.ranked[*next].estimate.bytes))
          next = index;
    if (!next)
      break;
    isDone[*next] = true;
    RankedLayout &entry = choice.ranked[*next];
    plan::Plan plan;
    --left;
    if (!simulate(entry, plan))
      continue;
    ++choice.progress.simulated;
    double share = double(entry.arenaBytes) / entry.estimate.bytes;
    memoryShare = isThorough ? std::min(memoryShare, share) : std::max(memoryShare, share);
    double error = entry.simulation->stepSeconds / entry.estimate.seconds();
    auto [known, fresh] = errors.try_emplace(kinds[*next], error);
    known->second = std::min(known->second, error);
    if (entry.fits && entry.simulation->stepSeconds < best) {
      best = entry.simulation->stepSeconds;
      chosen = *next;
      choice.progress.bestSeconds = best;
      choice.plan = std::move(plan);
      choice.options = optionsOf(entry.layout);
    }
    report(choice.progress);
  }
  for (auto [index, entry] : llvm::enumerate(choice.ranked)) {
    if (auto error = errors.find(kinds[index]); error != errors.end())
      entry.correction = error->second;
    else
      entry.correction = priorError(entry.layout);
    if (!entry.simulation && isDone[index])
      continue; // it does not compile
    // Of layouts that take as long as the chosen one, that comes first.
    std::vector<RankedLayout> &list = entry.simulation ? simulated : others;
    list.insert(index == chosen ? list.begin() : list.end(), std::move(entry));
  }
  llvm::stable_sort(others, [](const RankedLayout &a, const RankedLayout &b) {
    return a.seconds() < b.seconds();
  });
  llvm::stable_sort(simulated, [](const RankedLayout &a, const RankedLayout &b) {
    return a.seconds() < b.seconds();
  });
  choice.ranked.clear();
  for (std::vector<RankedLayout> *list : {&simulated, &others})
    for (RankedLayout &entry : *list) {
      double bytes = entry.simulation ? double(entry.arenaBytes) : entry.estimate.bytes;
      double closest = !choice.closest              ? std::numeric_limits<double>::infinity()
                       : choice.closest->simulation ? double(choice.closest->arenaBytes)
                                                    : choice.closest->estimate.bytes;
      if (!entry.fits && bytes < closest)
        choice.closest = entry;
      if (entry.fits)
        choice.ranked.push_back(std::move(entry));
    }
  // Without a plan nothing is ranked: what should fit by its estimate did not.
  if (choice.plan.programs_size() == 0)
    choice.ranked.clear();
}

Expected<PlanChoice> Planner::run(llvm::function_ref<void(const PlannerProgress &)> report) {
  int64_t devices = deviceCount(options), available = runtime::countDevices(*options.cluster);
  if (devices > available)
    return Error{fmt::format("{} devices are asked for, the cluster \"{}\" has {}", devices,
                             options.cluster->name(), available)};
  PlanChoice choice;
  choice.memoryBytes = usableBytes(options);
  auto function = *model.getOps<func::FuncOp>().begin();
  ModelFlops flops = countModelFlops(function, options.base.mode != CompileOptions::Mode::Forward,
                                     options.base.freeze);
  choice.lowerBound = (flops.all - flops.masked) / sustainedFlops(options);
  estimateAll(choice, report);
  if (choice.progress.layouts == 0)
    return Error{explainNoLayout(options, traits)};
  if (choice.ranked.empty())
    return Error{"no layout of the model compiles; compile it for one device (without --cluster) "
                 "to see why"};
  simulateBest(choice, report);
  return choice;
}
