//===- Planner.cpp - Search for a strategy on a cluster -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/Planner.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/driver/CandidateSearch.h"
#include "compiler/passes/sharding/ArgumentDims.h"
#include "compiler/passes/train/ModelFlops.h"
#include "compiler/planner/ClusterSpeeds.h"
#include "compiler/planner/PlannerReport.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

using namespace mlir;
using namespace dtc;

/// How much faster than its estimate a strategy may turn out to be.
static constexpr double kEstimateError = 0.1;
/// Where so many strategies can be simulated, the search is thorough; else it looks at those
/// whose lower estimate is at most so many times the best.
static constexpr int64_t kManySimulations = 10;
static constexpr int64_t kMoreSimulations = 6;
/// How many more are simulated so that what is listed beside the choice is known, and how much
/// slower than the choice an estimate must be to be listed as it is.
static constexpr int64_t kListedSimulations = 6;
static constexpr double kListedMargin = 1.1;
static constexpr double kMargin = 4, kCostlyMargin = 1.2;
/// For how many sizes of tp other axis maps of a large model are looked at.
static constexpr int64_t kCostlyMaps = 2;
/// How many probes are made without a word of it to the user, and how many at a time where the
/// result of one may make the others needless. Not as many as there are threads, on which no result
/// depends.
static constexpr size_t kProbesBetweenReports = 16, kProbesAhead = 4;
/// How many units of schedules are looked at one by one, in all strategies together.
static constexpr int64_t kMostUnits = 1'000'000;
/// How far the estimate of a strategy's memory may be off.
static constexpr double kMemoryError = 0.05;
/// By how much more these may be off as long as nothing of the work that may be done is.
static constexpr double kSpareTimeError = 0.4, kSpareMemoryError = 0.2;

/// What a model allows beside the entries of an axis map that the user gives.
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
  return llvm::is_contained(axes, "tp");
}

Planner::Planner(ModuleOp model, StringRef name, const PlannerOptions &options)
    : model(model), name(name), options(options),
      traits(propertiesBeside(model, options.base.shard)),
      probe(model, options.base, *options.cluster, traits.batch, options.devices, traits.batchDims),
      estimator(this->options, traits) {
  // Nothing is kept for a backward pass.
  if (this->options.base.mode == CompileMode::Forward) {
    this->options.base.recompute = Recompute::None;
    this->options.fixed.insert("recompute");
  }
  traits.layers = probe.numLayers();
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
  return llvm::all_of(usedNodes(options), [&](const UsedNodes &used) {
    return usableBytes(*used.device) == leastMemory(options);
  });
}

CompileOptions dtc::optionsOf(const ParallelStrategy &strategy, const PlannerOptions &options) {
  CompileOptions result = strategy.toOptions(options.base);
  useClusterSpeeds(*options.cluster, result);
  return result;
}

/// How many strategies may be compiled: the work that this takes grows with the ops of the model.
static int64_t mostSimulations(ModuleOp model) {
  int64_t ops = 0;
  model.walk([&](Operation *) { ++ops; });
  return std::clamp<int64_t>(10'000 / std::max<int64_t>(ops, 1), 2, 60);
}

/// How many axis maps may be looked at for one size of tp: the work grows with the ops of what is
/// probed.
static int64_t mostMaps(ModuleOp probed) {
  int64_t ops = 0;
  probed.walk([&](Operation *) { ++ops; });
  return std::clamp<int64_t>(10'000 / std::max<int64_t>(ops, 1), 8, 60);
}

CostKey Planner::lowerKeyOf(const ParallelStrategy &strategy) const {
  CostKey key = strategy.key(traits.batch);
  key.recompute = Recompute::None;
  key.sequenceParallel = strategy.tp > 1 && traits.hasSequenceAxis;
  // Devices that split nothing do what one does.
  if (!splitsByDefault && strategy.shard.empty()) {
    key.tp = 1;
    key.sequenceParallel = false;
  }
  return key;
}

std::optional<Planner::LowerEstimate> Planner::lowerEstimateOf(const ParallelStrategy &strategy,
                                                               size_t number) {
  CostKey key = lowerKeyOf(strategy);
  ArrayRef<ModelCosts> costs = probe.find(key);
  if (costs.empty()) {
    recordFailure(strategy, probe.problemOf(key));
    return std::nullopt;
  }
  ParallelStrategy balanced = strategy;
  estimator.balance(balanced, costs);
  StepEstimate estimate = estimator.estimate(balanced, costs);
  return LowerEstimate{estimate.seconds(), std::max(0.0, estimate.bytes - estimate.memoryBytes),
                       number};
}

void Planner::probeLower(ArrayRef<ParallelStrategy> strategies, PlannerResult &choice,
                         llvm::function_ref<void(const PlannerProgress &)> report) {
  std::vector<CostKey> keys;
  std::set<CostKey> isListed;
  for (const ParallelStrategy &strategy : strategies)
    if (CostKey key = lowerKeyOf(strategy); isListed.insert(key).second)
      keys.push_back(std::move(key));
  for (ArrayRef<CostKey> left = keys; !left.empty();) {
    size_t count = std::min(left.size(), kProbesBetweenReports);
    probe.findAll(left.take_front(count));
    left = left.drop_front(count);
    choice.progress.probes = probe.numProbes();
    report(choice.progress);
  }
}

std::vector<std::string> Planner::axisMapFor(const ParallelStrategy &example) {
  return chooseAxisMap(decisions, example.tp, mostMaps(*probe.shortModel().module),
                       [&](ArrayRef<std::string> entries) -> std::optional<AxisMapCost> {
                         ParallelStrategy strategy = example;
                         strategy.shard = entries;
                         std::optional<LowerEstimate> lowerEstimate = lowerEstimateOf(strategy, 0);
                         if (!lowerEstimate)
                           return std::nullopt;
                         return AxisMapCost{lowerEstimate->seconds, lowerEstimate->excessBytes};
                       });
}

std::vector<Planner::LowerEstimate>
Planner::chooseAxisMaps(std::vector<ParallelStrategy> &strategies, PlannerResult &choice,
                        llvm::function_ref<void(const PlannerProgress &)> report) {
  std::vector<LowerEstimate> lowerEstimates;
  auto add = [&](size_t number) {
    std::optional<LowerEstimate> lowerEstimate = lowerEstimateOf(strategies[number], number);
    choice.progress.probes = probe.numProbes();
    report(choice.progress);
    if (lowerEstimate)
      lowerEstimates.push_back(*lowerEstimate);
  };
  auto sort = [&] {
    llvm::stable_sort(lowerEstimates, [](const LowerEstimate &a, const LowerEstimate &b) {
      return std::tie(a.seconds, a.strategy) < std::tie(b.seconds, b.strategy);
    });
  };
  probeLower(strategies, choice, report);
  for (size_t number = 0; number < strategies.size(); ++number)
    add(number);
  sort();
  // Of a large model each axis map takes long; where names say what to split, what is far from the
  // best with all of that will not come near it with less.
  bool isCostly = splitsByDefault && mostSimulations(model) < kManySimulations;
  std::vector<int64_t> sizes;
  for (const LowerEstimate &lowerEstimate : lowerEstimates) {
    if (isCostly && (lowerEstimate.seconds > kCostlyMargin * lowerEstimates.front().seconds ||
                     int64_t(sizes.size()) == kCostlyMaps))
      break;
    int64_t tp = strategies[lowerEstimate.strategy].tp;
    if (tp > 1 && !llvm::is_contained(sizes, tp))
      sizes.push_back(tp);
  }
  for (int64_t tp : sizes) {
    // The best that fits stands for all of that size, and where none does, the best.
    const LowerEstimate *example = nullptr;
    for (const LowerEstimate &lowerEstimate : lowerEstimates)
      if (strategies[lowerEstimate.strategy].tp == tp &&
          (!example || lowerEstimate.excessBytes == 0)) {
        example = &lowerEstimate;
        if (lowerEstimate.excessBytes == 0)
          break;
      }
    std::vector<std::string> axisMap = axisMapFor(strategies[example->strategy]);
    if (axisMap.empty() && splitsByDefault)
      continue;
    // Devices that would all do the same are no strategy; what the default axis map splits remains
    // one, for what is chosen for the example need not be best for all.
    if (!splitsByDefault)
      llvm::erase_if(lowerEstimates, [&](const LowerEstimate &lowerEstimate) {
        return strategies[lowerEstimate.strategy].tp == tp;
      });
    const size_t count = strategies.size();
    for (size_t number = 0; number < count && !axisMap.empty(); ++number)
      if (strategies[number].tp == tp) {
        ParallelStrategy mapped = strategies[number];
        mapped.shard = axisMap;
        strategies.push_back(std::move(mapped));
      }
    probeLower(ArrayRef(strategies).drop_front(count), choice, report);
    for (size_t number = count; number < strategies.size(); ++number)
      add(number);
  }
  sort();
  return lowerEstimates;
}

void Planner::estimateAll(PlannerResult &choice,
                          llvm::function_ref<void(const PlannerProgress &)> report) {
  std::vector<ParallelStrategy> strategies = enumerateStrategies(options, traits);
  choice.progress.strategies = int64_t(strategies.size());
  // What is recomputed takes time, and the ops on the residual stream little: with the costs of a
  // strategy without either, few lower estimates are so low that a strategy's own costs are needed.
  std::vector<LowerEstimate> lowerEstimates = chooseAxisMaps(strategies, choice, report);
  choice.progress.strategies = int64_t(strategies.size()); // with those of other axis maps
  double best = std::numeric_limits<double>::infinity();
  double margin = mostSimulations(model) < kManySimulations ? kCostlyMargin : kMargin;
  // The next few keys are probed together, also where the first of them makes others needless.
  auto probeNext = [&](ArrayRef<LowerEstimate> left) {
    std::vector<CostKey> keys;
    for (const LowerEstimate &lowerEstimate : left) {
      CostKey key = strategies[lowerEstimate.strategy].key(traits.batch);
      if (keys.size() == kProbesAhead || lowerEstimate.seconds > margin * best)
        break;
      if (!probe.isKnown(key) && !llvm::is_contained(keys, key))
        keys.push_back(std::move(key));
    }
    probe.findAll(keys);
  };
  for (auto [index, lowerEstimate] : llvm::enumerate(lowerEstimates)) {
    if (lowerEstimate.seconds > margin * best)
      break;
    EstimatedStrategy entry;
    entry.strategy = strategies[lowerEstimate.strategy];
    if (!probe.isKnown(entry.strategy.key(traits.batch)))
      probeNext(ArrayRef(lowerEstimates).drop_front(index));
    llvm::ArrayRef<ModelCosts> costs = probe.find(entry.strategy.key(traits.batch));
    choice.progress.probes = probe.numProbes();
    if (costs.empty()) {
      recordFailure(entry.strategy, probe.problemOf(entry.strategy.key(traits.batch)));
      continue;
    }
    estimator.balance(entry.strategy, costs);
    entry.estimate = estimator.estimate(entry.strategy, costs);
    entry.fits = entry.estimate.memoryShare() <= 1;
    if (entry.fits)
      best = std::min(best, entry.estimate.seconds());
    ++choice.progress.estimated;
    choice.best.push_back(std::move(entry));
    report(choice.progress);
  }
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
    estimator.refine(entry.strategy, probe.find(entry.strategy.key(traits.batch)), entry.estimate);
    entry.fits = entry.estimate.memoryShare() <= 1;
  }
  sort();
}

bool Planner::simulate(EstimatedStrategy &entry, Compiled &compiled) {
  CompileOptions asked = optionsOf(entry.strategy, options);
  // What is wrong with a strategy takes it out of the search.
  ScopedDiagnosticHandler quiet(model.getContext(), [](Diagnostic &) { return success(); });
  auto search = std::make_unique<CandidateSearch>(model, name, options.cluster);
  std::optional<Candidate> candidate = search->run(asked);
  if (!candidate) {
    if (!search->failure.empty()) // else it only does not fit
      recordFailure(entry.strategy, firstErrorOf(search->failure));
    return false;
  }
  std::optional<Simulation> simulation = std::exchange(candidate->simulation, {});
  if (!simulation) {
    auto failed = simulateOnCluster(candidate->plan, *options.cluster);
    recordFailure(entry.strategy, failed.error().message);
    return false;
  }
  double share = 0; // of its device's memory
  for (const StageSimulation &stage : simulation->stages)
    if (double(stage.arenaBytes) > share * stage.memoryBytes) {
      share = double(stage.arenaBytes) / stage.memoryBytes;
      entry.arenaBytes = int64_t(stage.arenaBytes);
      entry.memoryBytes = stage.memoryBytes;
    }
  entry.fits = share <= 1;
  simulation->step = {}; // tables need no timeline
  entry.simulation = std::move(*simulation);
  compiled = {std::move(search), std::move(candidate)};
  return true;
}

/// How many times its estimate a strategy takes, before any of its kind was simulated: schedules
/// that split weights' gradients off make more, smaller tasks and keep their operands in memory.
static double priorError(const ParallelStrategy &strategy) {
  auto rule = findScheduleRule(strategy.schedule);
  return strategy.pp > 1 && rule && rule->splitsWeight ? 1.1 : 1;
}

/// What strategies have in common whose estimates err in the same way.
static std::string kindOf(const ParallelStrategy &strategy) {
  return fmt::format("{} {} {} {} {}", strategy.pp > 1 ? strategy.schedule : "", strategy.zero,
                     wordOf(strategy.recompute), strategy.sequenceParallel,
                     strategy.microbatches > 1);
}

/// Strategies that may be faster if they recompute only as much as their memory asks for: the
/// chosen one, if it recomputes, and the one that is estimated to be the fastest of those that do
/// not recompute and do not fit.
static std::vector<size_t> partlyRecomputable(llvm::ArrayRef<EstimatedStrategy> strategies,
                                              std::optional<size_t> chosen, double best) {
  std::vector<size_t> found;
  if (chosen && strategies[*chosen].strategy.recompute != Recompute::None)
    found.push_back(*chosen);
  for (auto [index, entry] : llvm::enumerate(strategies))
    if (!entry.fits && entry.strategy.recompute == Recompute::None && entry.seconds() < best) {
      found.push_back(index);
      break;
    }
  return found;
}

void Planner::simulateBest(PlannerResult &choice,
                           llvm::function_ref<void(const PlannerProgress &)> report) {
  failedFirst.reset(); // a part of the model that does not compile says less than all of it
  const int64_t most = mostSimulations(model);
  const bool isThorough = most >= kManySimulations;
  int64_t left = most;
  double best = std::numeric_limits<double>::infinity();
  std::optional<size_t> chosen; // that the best is of
  // How many times its estimate a kind of strategy takes at least, as far as is known.
  std::map<std::string, double> errors;
  // How many times its estimate a strategy holds: at least, where there is time to find out, and
  // else at most.
  double memoryError = 1;
  double mostMemoryError = 1; // at most, in any case
  std::vector<std::string> kinds;
  for (const EstimatedStrategy &entry : choice.best)
    kinds.push_back(kindOf(entry.strategy));
  std::vector<bool> isDone(choice.best.size(), false);
  std::vector<EstimatedStrategy> simulated, others;
  auto simulateOne = [&](size_t index) {
    isDone[index] = true;
    EstimatedStrategy &entry = choice.best[index];
    Compiled compiled;
    --left;
    if (!simulate(entry, compiled))
      return;
    ++choice.progress.simulated;
    double times = entry.memoryShare() / entry.estimate.memoryShare();
    memoryError = isThorough ? std::min(memoryError, times) : std::max(memoryError, times);
    mostMemoryError = std::max(mostMemoryError, times);
    double error = entry.simulation->stepSeconds / entry.estimate.seconds();
    auto [known, fresh] = errors.try_emplace(kinds[index], error);
    known->second = std::min(known->second, error);
    if (entry.fits && entry.simulation->stepSeconds < best) {
      best = entry.simulation->stepSeconds;
      chosen = index;
      choice.progress.bestSeconds = best;
      choice.plan = std::move(compiled.candidate->plan);
      choice.options = optionsOf(entry.strategy, options);
      choice.search = std::move(compiled.search);
      choice.compiled = std::move(compiled.candidate);
    }
    report(choice.progress);
  };
  // Without any that fits, a few more are worth their time.
  while (left > 0 || (std::isinf(best) && left > -kMoreSimulations)) {
    // While much of the work is left, estimates are taken to be worse than they should be. Where
    // little can be tried, what may not fit is no loss to be taken.
    double spare = isThorough ? std::max(0.0, double(left) / double(most)) : 0;
    double doubt = kEstimateError + kSpareTimeError * spare;
    double limit = isThorough ? 1 + kMemoryError + kSpareMemoryError * spare : 1 - kMemoryError;
    // The one with the least lower estimate.
    std::optional<size_t> next;
    double lowerEstimate = best;
    for (auto [index, entry] : llvm::enumerate(choice.best)) {
      if (isDone[index] || entry.estimate.memoryShare() * memoryError > limit)
        continue;
      auto error = errors.find(kinds[index]);
      double times = error == errors.end() ? priorError(entry.strategy) : error->second;
      if (times > 1) // known from few of its kind
        times = std::pow(times, 1 - spare / 2);
      double seconds = entry.estimate.seconds() * times;
      if (seconds * (1 - doubt) < lowerEstimate) {
        lowerEstimate = seconds * (1 - doubt);
        next = index;
      }
    }
    // Where nothing fits yet, the one that needs least.
    if (!next && std::isinf(best))
      for (auto [index, entry] : llvm::enumerate(choice.best))
        if (!isDone[index] && entry.estimate.memoryShare() < 2 &&
            (!next || entry.estimate.memoryShare() < choice.best[*next].estimate.memoryShare()))
          next = index;
    if (!next)
      break;
    simulateOne(*next);
  }
  // Between recomputing a kind of op and none there is as little as the memory asks for, which
  // takes many compilations to find.
  if (isThorough && !options.fixed.contains("recompute") && hasOneMemory(options))
    for (size_t index : partlyRecomputable(choice.best, chosen, best)) {
      EstimatedStrategy &entry = choice.best.emplace_back();
      entry.strategy = choice.best[index].strategy;
      entry.estimate = choice.best[index].estimate;
      entry.strategy.recompute = Recompute::Auto;
      entry.strategy.memoryLimit = int64_t(choice.memoryBytes);
      kinds.push_back(kindOf(entry.strategy));
      isDone.push_back(false);
      simulateOne(choice.best.size() - 1);
    }
  auto correctionOf = [&](size_t index) {
    auto error = errors.find(kinds[index]);
    return error == errors.end() ? priorError(choice.best[index].strategy) : error->second;
  };
  auto isNear = [&](size_t index) {
    const EstimatedStrategy &entry = choice.best[index];
    return chosen && !isDone[index] && entry.estimate.memoryShare() <= 1 &&
           correctionOf(index) * entry.estimate.seconds() < kListedMargin * best;
  };
  // What looks as good as the choice is shown only if it is: else estimates that are too low would
  // are kept beside it, of strategies that do not fit or are slower.
  for (int64_t more = kListedSimulations; more > 0; --more) {
    std::optional<size_t> next;
    for (size_t index = 0; index < choice.best.size(); ++index)
      if (isNear(index) &&
          (!next || correctionOf(index) * choice.best[index].estimate.seconds() <
                        correctionOf(*next) * choice.best[*next].estimate.seconds()))
        next = index;
    if (!next)
      break;
    simulateOne(*next);
  }
  for (auto [index, entry] : llvm::enumerate(choice.best)) {
    entry.correction = correctionOf(index);
    if (!entry.simulation && isDone[index])
      continue; // it does not compile
    if (!entry.simulation && isNear(index)) {
      ++choice.unknown;
      continue;
    }
    if (chosen && !entry.simulation && entry.estimate.memoryShare() * mostMemoryError > 1)
      entry.fits = false;
    // Of strategies that take as long as the chosen one, that comes first.
    std::vector<EstimatedStrategy> &list = entry.simulation ? simulated : others;
    list.insert(index == chosen ? list.begin() : list.end(), std::move(entry));
  }
  llvm::stable_sort(others, [](const EstimatedStrategy &a, const EstimatedStrategy &b) {
    return a.seconds() < b.seconds();
  });
  llvm::stable_sort(simulated, [](const EstimatedStrategy &a, const EstimatedStrategy &b) {
    return a.seconds() < b.seconds();
  });
  choice.best.clear();
  for (std::vector<EstimatedStrategy> *list : {&simulated, &others})
    for (EstimatedStrategy &entry : *list) {
      if (!entry.fits && (!choice.closest || entry.memoryShare() < choice.closest->memoryShare()))
        choice.closest = entry;
      if (entry.fits)
        choice.best.push_back(std::move(entry));
    }
  choice.failed = std::move(failedFirst);
  // Without a plan there is no best strategy: what should fit by its estimate did not.
  if (choice.plan.programs_size() == 0)
    choice.best.clear();
}

Expected<PlannerResult> Planner::run(llvm::function_ref<void(const PlannerProgress &)> report) {
  int64_t devices = usedDevices(*options.cluster, options.devices);
  int64_t available = countDevices(*options.cluster);
  if (devices > available)
    return Error{fmt::format("{} devices are asked for, the cluster \"{}\" has {}", devices,
                             options.cluster->name(), available)};
  PlannerResult choice;
  choice.memoryBytes = leastMemory(options);
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
  estimateAll(choice, report);
  if (choice.progress.strategies == 0)
    return Error{explainNoStrategy(options, traits)};
  if (choice.best.empty())
    return Error{"no strategy for the model compiles; " + explainFailure(*failedFirst, options)};
  simulateBest(choice, report);
  return choice;
}
