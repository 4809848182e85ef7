//===- Planner.cpp - Search for a strategy on a cluster -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/Planner.h"

#include "compiler/driver/OffloadOption.h"
#include "compiler/passes/sharding/ArgumentDims.h"
#include "compiler/passes/train/ModelFlops.h"
#include "compiler/planner/ClusterSpeeds.h"
#include "compiler/planner/PartialRecompute.h"
#include "compiler/planner/PlannerReport.h"
#include "compiler/planner/SimulatedSearch.h"
#include "simulator/cluster/DeviceTime.h"
#include "simulator/cluster/HostTime.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

using namespace mlir;
using namespace dtc;

/// Strategies are looked at up to this many times the best lower estimate, where the search is
/// thorough and where it is not.
static constexpr double kMargin = 4, kCostlyMargin = 1.2;
/// The sizes of tp for which other axis maps of a large model are looked at.
static constexpr int64_t kCostlyMaps = 2;
/// How many units of schedules are looked at one by one, in all strategies together.
static constexpr int64_t kMostUnits = 1'000'000;

/// The properties of a model beside the entries of an axis map that the user gives.
static ModelProperties propertiesBeside(ModuleOp model, ArrayRef<std::string> shard) {
  ModelProperties traits = findProperties(model, 0);
  llvm::erase_if(traits.batchDims, [&](StringRef dim) {
    return llvm::any_of(shard, [&](StringRef entry) {
      auto [name, number] = entry.split('=').first.rsplit('#');
      return number == "0" && matchesArgument(name, dim.rsplit('#').first);
    });
  });
  return traits;
}

/// Whether an entry of an axis map splits something over tp.
static bool splitsOverTensorAxis(StringRef entry) {
  SmallVector<StringRef> axes;
  entry.split('=').second.split('@').first.split(axes, '+');
  return llvm::is_contained(axes, kTensorAxis);
}

/// The options of a first search.
static PlannerOptions withoutOffload(PlannerOptions options) {
  if (options.base.offload == kAutoOffload)
    options.base.offload.clear();
  return options;
}

/// The options of probes, without offloading: estimates account for the memory of the host
/// (StepEstimator).
static CompileOptions probedOptions(CompileOptions options) {
  options.offload.clear();
  return options;
}

Planner::Planner(ModuleOp model, StringRef name, const PlannerOptions &options)
    : model(model), name(name), options(withoutOffload(options)),
      mayOffload(options.base.offload == kAutoOffload),
      traits(propertiesBeside(model, options.base.shard)),
      probe(model, probedOptions(options.base), *options.cluster, traits.batch, options.devices,
            traits.batchDims),
      estimator(this->options, traits) {
  // Nothing is kept for a backward pass.
  if (this->options.base.mode == CompileMode::Forward) {
    this->options.base.recompute = Recompute::None;
    this->options.fixed.insert("recompute");
  }
  traits.layers = probe.numLayers();
  traits.mixesSamples = probe.mixesSamples();
  traits.layerPrefix = probe.layerPrefix();
  // A model of few layers is probed whole; they may be alike for all that.
  ReducedModel &shortened = probe.shortModel();
  ReducedModel names;
  if (shortened.prefix.empty()) {
    names = removeRepeatedLayers(model, 1);
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
  isCostly = splitsByDefault && mostSimulations(model) < kManySimulations;
}

static std::vector<UsedNodes> usedNodes(const PlannerOptions &options) {
  return findUsedNodes(*options.cluster, usedDevices(*options.cluster, options.devices));
}

static double leastMemory(const PlannerOptions &options) {
  double least = std::numeric_limits<double>::infinity();
  for (const UsedNodes &used : usedNodes(options))
    least = std::min(least, usableBytes(*used.device));
  return least;
}

/// Whether all devices have as much memory: a plan has one limit.
static bool hasOneMemory(const PlannerOptions &options) {
  return llvm::all_of(usedNodes(options), [least = leastMemory(options)](const UsedNodes &used) {
    return usableBytes(*used.device) == least;
  });
}

CompileOptions dtc::optionsOf(const ParallelStrategy &strategy, const PlannerOptions &options) {
  CompileOptions result = strategy.toOptions(options.base);
  useClusterSpeeds(*options.cluster, result);
  return result;
}

/// How many axis maps may be looked at for one size of tp: the work grows with the ops of what is
/// probed.
static int64_t mostMaps(ModuleOp probed) {
  int64_t ops = 0;
  probed.walk([&](Operation *) { ++ops; });
  return std::clamp<int64_t>(10'000 / std::max<int64_t>(ops, 1), 8, 60);
}

std::vector<std::string> Planner::axisMapFor(LowerEstimates &lower,
                                             const ParallelStrategy &example) {
  return chooseAxisMap(
      decisions, example.tp, mostMaps(*probe.shortModel().module),
      [&](ArrayRef<std::string> entries) -> std::optional<AxisMapCost> {
        ParallelStrategy strategy = example;
        strategy.shard = entries;
        std::optional<LowerEstimate> lowerEstimate = lower.find(strategy);
        if (!lowerEstimate)
          return std::nullopt;
        return AxisMapCost{lowerEstimate->seconds, lowerEstimate->excessBytes};
      },
      [&](ArrayRef<std::vector<std::string>> maps) {
        std::vector<CostKey> keys;
        for (const std::vector<std::string> &entries : maps) {
          ParallelStrategy strategy = example;
          strategy.shard = entries;
          keys.push_back(lower.keyOf(strategy));
        }
        probe.findAll(keys);
      });
}

std::vector<int64_t> Planner::findMappedSizes(LowerEstimates &lower) const {
  std::vector<int64_t> sizes;
  for (size_t index = 0; index < lower.list().size();) {
    const LowerEstimate &lowerEstimate = lower.list()[index];
    // An axis map of a large model takes long. Where names say what to split, a strategy that is
    // far from the best with all of it split will not come near the best with less.
    if (isCostly && (lowerEstimate.seconds > kCostlyMargin * lower.list().front().seconds ||
                     int64_t(sizes.size()) == kCostlyMaps))
      break;
    if (lowerEstimate.isBound) {
      lower.resolve(index);
      sizes.clear();
      index = 0;
      continue;
    }
    int64_t tp = lower.strategies()[lowerEstimate.strategy].tp;
    if (tp > 1 && !llvm::is_contained(sizes, tp))
      sizes.push_back(tp);
    ++index;
  }
  return sizes;
}

std::optional<size_t> Planner::findExample(LowerEstimates &lower, int64_t tp) {
  while (true) {
    // The best that fits stands for all of that size, and where none does, the best.
    std::optional<size_t> example;
    for (auto [index, each] : llvm::enumerate(lower.list()))
      if (lower.strategies()[each.strategy].tp == tp && (!example || each.excessBytes == 0)) {
        example = index;
        if (each.excessBytes == 0)
          break;
      }
    if (!example || !lower.list()[*example].isBound)
      return example;
    lower.resolve(*example);
  }
}

void Planner::chooseAxisMaps(LowerEstimates &lower) {
  for (int64_t tp : findMappedSizes(lower)) {
    std::optional<size_t> example = findExample(lower, tp);
    if (!example)
      continue;
    std::vector<std::string> axisMap =
        axisMapFor(lower, lower.strategies()[lower.list()[*example].strategy]);
    if (axisMap.empty() && splitsByDefault)
      continue;
    // Devices that would all do the same are no strategy; the splits of the default axis map remain
    // one, for the choice for the example need not be best for all.
    if (!splitsByDefault)
      lower.drop([&](const ParallelStrategy &strategy) { return strategy.tp == tp; });
    std::vector<ParallelStrategy> mapped;
    for (const ParallelStrategy &strategy : lower.strategies())
      if (strategy.tp == tp && !axisMap.empty()) {
        mapped.push_back(strategy);
        mapped.back().shard = axisMap;
      }
    lower.add(mapped);
  }
}

void Planner::estimateAll(PlannerResult &choice) {
  std::vector<ParallelStrategy> strategies = enumerateStrategies(options, traits);
  choice.progress.strategies = int64_t(strategies.size());
  LowerEstimates lower(
      probe, estimator, traits,
      {.boundsSamples = isCostly,
       .splitsByDefault = splitsByDefault,
       .noteFailure = [&](const ParallelStrategy &strategy, const std::string &reason) {
         recordFailure(strategy, reason);
       }});
  // Recomputation takes time, and the ops on the residual stream little: with the costs of a
  // strategy without either, few lower estimates are so low that a strategy's own costs are needed.
  lower.add(strategies);
  chooseAxisMaps(lower);
  choice.progress.strategies = int64_t(lower.strategies().size()); // with those of other axis maps
  double best = std::numeric_limits<double>::infinity();
  double margin = mostSimulations(model) < kManySimulations ? kCostlyMargin : kMargin;
  while (std::optional<size_t> number = lower.takeNext(margin * best)) {
    EstimatedStrategy entry;
    entry.strategy = lower.strategies()[*number];
    llvm::ArrayRef<ModelCosts> costs = probe.find(entry.strategy.key(traits.batch));
    choice.progress.probes = probe.numProbes();
    if (costs.empty()) {
      recordFailure(entry.strategy, probe.problemOf(entry.strategy.key(traits.batch)));
      continue;
    }
    estimator.balance(entry.strategy, costs);
    entry.estimate = estimator.estimate(entry.strategy, costs);
    entry.fits = entry.estimate.memoryShare() <= 1;
    // Where a model was probed whole, nothing says what a message takes.
    bool mayBeSlower = entry.strategy.pp > 1 && costs.front().layers == 0;
    if (entry.fits && !mayBeSlower)
      best = std::min(best, entry.estimate.seconds());
    ++choice.progress.estimated;
    choice.best.push_back(std::move(entry));
  }
  if (choice.recomputesPartly)
    addPartlyRecomputed(choice.best, int64_t(choice.memoryBytes));
  auto sort = [&] {
    llvm::stable_sort(choice.best, [](const EstimatedStrategy &a, const EstimatedStrategy &b) {
      return a.estimate.seconds() < b.estimate.seconds();
    });
  };
  sort();
  // The best are looked at more closely.
  int64_t units = kMostUnits;
  for (EstimatedStrategy &entry : choice.best) {
    if (!entry.fits)
      continue;
    units -= StepEstimator::numUnits(entry.strategy);
    if (units < 0)
      break;
    // A strategy that recomputes in part has no costs of its own, which stages of different sizes
    // would need.
    bool isPartly = entry.strategy.recompute == Recompute::Auto;
    if (isPartly && !entry.strategy.stageLayers.empty())
      continue;
    estimator.refine(entry.strategy,
                     isPartly ? llvm::ArrayRef<ModelCosts>()
                              : probe.find(entry.strategy.key(traits.batch)),
                     entry.estimate);
    entry.fits = entry.estimate.memoryShare() <= 1;
  }
  // More of them may be too large now.
  if (choice.recomputesPartly)
    addPartlyRecomputed(choice.best, int64_t(choice.memoryBytes));
  sort();
}

Expected<PlannerResult> Planner::run(const ProgressCallback &report) {
  int64_t devices = usedDevices(*options.cluster, options.devices);
  int64_t available = countDevices(*options.cluster);
  if (devices > available)
    return Error{fmt::format("{} devices are asked for, the cluster \"{}\" has {}", devices,
                             options.cluster->name(), available)};
  if (mayOffload || !options.base.offload.empty())
    for (const UsedNodes &used : usedNodes(options))
      if (MaybeError error = findMissingHost(*used.node))
        return *error;
  PlannerResult choice;
  choice.offload = options.base.offload;
  choice.memoryBytes = leastMemory(options);
  choice.recomputesPartly = !options.fixed.contains("recompute") && hasOneMemory(options);
  auto function = *model.getOps<func::FuncOp>().begin();
  for (StringRef entry : options.base.shard) {
    StringRef key = entry.split('=').first;
    if (!namesArgumentDims(key))
      continue;
    if (auto dims = findArgumentDims(function, key); !dims)
      return dims.error().inContext("shard");
  }
  ModelFlops flops =
      countModelFlops(function, options.base.mode != CompileMode::Forward, options.base.freeze);
  choice.lowerBound =
      (flops.all - flops.masked) / sustainedFlops(*options.cluster, devices, options.base.dtype);
  bool isEnded = false;
  auto goesOn = [&] {
    choice.progress.probes = probe.numProbes();
    choice.progress.probesToCome = probe.numExpected();
    isEnded = isEnded || !report(choice.progress);
    return !isEnded;
  };
  choice.progress.simulationsToCome = mostSimulations(model);
  probe.goesOn = goesOn;
  estimateAll(choice);
  probe.goesOn = nullptr;
  if (isEnded)
    return Error{kSearchEnded};
  if (choice.progress.strategies == 0)
    return Error{explainNoStrategy(options, traits)};
  if (choice.best.empty() && !failedFirst) {
    // All strategies that are left have tp, but the model has no dimensions that tp could split.
    ModelProperties withoutTensorAxes = traits;
    withoutTensorAxes.hasTensorAxes = false;
    return Error{explainNoStrategy(options, withoutTensorAxes)};
  }
  if (choice.best.empty())
    return Error{"no strategy for the model compiles; " + explainFailure(*failedFirst, options)};
  SimulatedSearch(model, name, options, choice, goesOn).run();
  if (isEnded)
    return Error{kSearchEnded};
  Expected<PlannerResult> result = std::move(choice);
  PlannerOptions offloading = options;
  for (const char *offload : kOffloadsOfAuto) {
    if (!mayOffload || !result || !result->best.empty())
      break;
    offloading.base.offload = offload;
    result = Planner(model, name, offloading).run(report);
  }
  return result;
}
