//===- Planner.cpp - The best plan for a model and machines --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/Planner.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/passes/sharding/ArgumentDims.h"
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
#include <tuple>

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
/// For how many sizes of tp other maps of a large model are looked at.
static constexpr int64_t kCostlyMaps = 2;
/// How many units of schedules are looked at one by one, in all layouts together.
static constexpr int64_t kMostUnits = 1'000'000;
/// How far the estimate of a layout's memory may be off.
static constexpr double kMemoryError = 0.05;
/// By how much more these may be off as long as nothing of the work that may be done is.
static constexpr double kSpareTimeError = 0.4, kSpareMemoryError = 0.2;

/// What a model allows beside the entries of a map that the user gives.
static ModelTraits traitsBeside(ModuleOp model, ArrayRef<std::string> shard) {
  ModelTraits traits = findTraits(model, 0);
  llvm::erase_if(traits.batchDims, [&](StringRef dim) {
    return llvm::any_of(shard, [&](StringRef entry) {
      auto [name, number] = entry.split('=').first.rsplit('#');
      return number == "0" && matchesArgument(name, dim.rsplit('#').first);
    });
  });
  return traits;
}

/// Whether an entry of a map splits something over tp.
static bool splitsOverTensorAxis(StringRef entry) {
  SmallVector<StringRef> axes;
  entry.split('=').second.split('@').first.split(axes, '+');
  return llvm::is_contained(axes, "tp");
}

Planner::Planner(ModuleOp model, StringRef name, const PlannerOptions &options)
    : model(model), name(name), options(options), traits(traitsBeside(model, options.base.shard)),
      probe(model, options.base, *options.cluster, traits.batch, traits.batchDims),
      estimator(this->options, traits) {
  traits.layers = probe.numLayers();
  // A model of few layers is probed whole; they may be alike for all that.
  ShortModel &shortened = probe.shortModel();
  ShortModel names;
  if (shortened.prefix.empty()) {
    names = shortenModel(model, 1);
    names.keptLayers = names.layers;
  } else {
    names.prefix = shortened.prefix;
    names.layers = shortened.layers;
    names.keptLayers = shortened.keptLayers;
  }
  decisions = findAxisDecisions(*shortened.module->getOps<func::FuncOp>().begin(),
                                options.base.shard, names.prefix, names.keptLayers, names.layers);
  splitsByDefault = traits.hasTensorAxes || llvm::any_of(options.base.shard, splitsOverTensorAxis);
  traits.hasTensorAxes = splitsByDefault || !decisions.empty();
}

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
      for (const cluster::MatrixTable *table : {&rate.table(), &rate.transposed_table()})
        for (double measured : table->flops())
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

/// How many maps may be looked at for one size of tp: the work grows with the ops of what is
/// probed.
static int64_t mostMaps(ModuleOp probed) {
  int64_t ops = 0;
  probed.walk([&](Operation *) { ++ops; });
  return std::clamp<int64_t>(10'000 / std::max<int64_t>(ops, 1), 8, 60);
}

std::optional<Planner::Promise> Planner::promiseOf(const ParallelLayout &layout, size_t number) {
  CostKey key = layout.key(traits.batch);
  key.recompute = "none";
  key.sequenceParallel = layout.tp > 1 && traits.hasSequenceAxis;
  // Devices that split nothing do what one does.
  if (!splitsByDefault && layout.shard.empty()) {
    key.tp = 1;
    key.sequenceParallel = false;
  }
  const ModelCosts *costs = probe.find(key);
  if (!costs)
    return std::nullopt;
  StepEstimate estimate = estimator.estimate(layout, *costs);
  return Promise{estimate.seconds(), estimate.bytes, number};
}

std::vector<std::string> Planner::mapFor(const ParallelLayout &example, double memoryBytes) {
  return chooseAxisMap(
      decisions, example.tp, mostMaps(*probe.shortModel().module),
      [&](ArrayRef<std::string> entries) -> std::optional<AxisMapCost> {
        ParallelLayout layout = example;
        layout.shard = entries;
        std::optional<Promise> promise = promiseOf(layout, 0);
        if (!promise)
          return std::nullopt;
        return AxisMapCost{promise->seconds, std::max(0.0, promise->bytes - memoryBytes)};
      });
}

std::vector<Planner::Promise>
Planner::chooseMaps(std::vector<ParallelLayout> &layouts, PlanChoice &choice,
                    llvm::function_ref<void(const PlannerProgress &)> report) {
  std::vector<Promise> promises;
  auto add = [&](size_t number) {
    std::optional<Promise> promise = promiseOf(layouts[number], number);
    choice.progress.probes = probe.numProbes();
    report(choice.progress);
    if (promise)
      promises.push_back(*promise);
  };
  auto sort = [&] {
    llvm::stable_sort(promises, [](const Promise &a, const Promise &b) {
      return std::tie(a.seconds, a.layout) < std::tie(b.seconds, b.layout);
    });
  };
  for (size_t number = 0; number < layouts.size(); ++number)
    add(number);
  sort();
  // Of a large model each map takes long; where names say what to split, what is far from the best
  // with all of that will not come near it with less.
  bool isCostly = splitsByDefault && mostSimulations(model) < kManySimulations;
  std::vector<int64_t> sizes;
  for (const Promise &promise : promises) {
    if (isCostly && (promise.seconds > kCostlyMargin * promises.front().seconds ||
                     int64_t(sizes.size()) == kCostlyMaps))
      break;
    int64_t tp = layouts[promise.layout].tp;
    if (tp > 1 && !llvm::is_contained(sizes, tp))
      sizes.push_back(tp);
  }
  for (int64_t tp : sizes) {
    // The best that fits stands for all of that size, and where none does, the best.
    const Promise *example = nullptr;
    for (const Promise &promise : promises)
      if (layouts[promise.layout].tp == tp && (!example || promise.bytes <= choice.memoryBytes)) {
        example = &promise;
        if (promise.bytes <= choice.memoryBytes)
          break;
      }
    std::vector<std::string> map = mapFor(layouts[example->layout], choice.memoryBytes);
    if (map.empty() && splitsByDefault)
      continue;
    llvm::erase_if(promises,
                   [&](const Promise &promise) { return layouts[promise.layout].tp == tp; });
    // Devices that would all do the same are no layout.
    for (size_t number = 0; number < layouts.size() && !map.empty(); ++number)
      if (layouts[number].tp == tp) {
        layouts[number].shard = map;
        add(number);
      }
  }
  sort();
  return promises;
}

void Planner::estimateAll(PlanChoice &choice,
                          llvm::function_ref<void(const PlannerProgress &)> report) {
  std::vector<ParallelLayout> layouts = enumerateLayouts(options, traits);
  choice.progress.layouts = int64_t(layouts.size());
  // What is computed again takes time, and what lies between blocks little: with the costs of a
  // layout without either, few layouts promise enough for finding out their own.
  std::vector<Promise> promises = chooseMaps(layouts, choice, report);
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
  for (StringRef entry : options.base.shard) {
    std::string problem;
    StringRef key = entry.split('=').first;
    if (namesArgumentDims(key) && !findArgumentDims(function, key, problem))
      return Error{"shard: " + problem};
  }
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
