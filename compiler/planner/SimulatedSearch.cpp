//===- SimulatedSearch.cpp - Simulating the best of estimated strategies --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/SimulatedSearch.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/planner/ClusterSpeeds.h"
#include "compiler/planner/PartialRecompute.h"
#include "compiler/planner/PlannerReport.h"
#include "plan/PlanVerifier.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <utility>

using namespace mlir;
using namespace dtc;

/// How much faster than its estimate a strategy may turn out to be.
static constexpr double kEstimateError = 0.1;
/// The strategies that are simulated beyond what the model allows as long as none fits.
static constexpr int64_t kMoreSimulations = 6;
/// How many more are simulated so that the times of those listed beside the choice are known, and
/// how much slower than the choice an estimate must be to be listed without simulation.
static constexpr int64_t kListedSimulations = 10;
static constexpr double kListedMargin = 1.1;
/// By how much estimates differ of strategies that are nearly the same, such as those with another
/// order of two axes or another size of buckets. One simulation tells most about all of them.
static constexpr double kSameEstimate = 1e-3;
/// How many strategies are compiled ahead at most.
static constexpr size_t kUpcoming = 8;
/// By how much more times and memory (see kMemoryError) may be off as long as nothing of the work
/// that may be done is.
static constexpr double kSpareTimeError = 0.4, kSpareMemoryError = 0.2;

int64_t dtc::mostSimulations(ModuleOp model) {
  int64_t ops = 0;
  model.walk([&](Operation *) { ++ops; });
  return std::clamp<int64_t>(10'000 / std::max<int64_t>(ops, 1), 2, 60);
}

/// The time of a strategy divided by its estimate, before any of its kind was simulated: schedules
/// that split weights' gradients off make more, smaller tasks and keep their operands in memory.
static double priorError(const ParallelStrategy &strategy) {
  auto rule = findScheduleRule(strategy.schedule);
  return strategy.pp > 1 && rule && rule->splitsWeight ? 1.1 : 1;
}

/// How many simulations one of a strategy counts for: how much has to be recomputed is found by
/// compiling in several ways, which takes about three times as long.
static int64_t workOf(const ParallelStrategy &strategy) {
  return strategy.recompute == Recompute::Auto ? 3 : 1;
}

/// The kind of a strategy. Estimates of strategies of one kind err in the same way.
static std::string kindOf(const ParallelStrategy &strategy) {
  return fmt::format("{} {} {} {} {} {} {}", strategy.pp > 1 ? strategy.schedule : "",
                     strategy.zero, wordOf(strategy.recompute), strategy.sequenceParallel,
                     strategy.microbatches > 1, strategy.cp > 1, strategy.contextHeads > 1);
}

SimulatedSearch::SimulatedSearch(ModuleOp model, StringRef name, const PlannerOptions &options,
                                 PlannerResult &choice, llvm::function_ref<bool()> goesOn)
    : options(options), choice(choice), goesOn(goesOn), most(mostSimulations(model)),
      isThorough(most >= kManySimulations), work{most, kListedSimulations}, alikes(options),
      isDone(choice.best.size(), false), isTimed(isDone), trials(model, name, options) {
  for (const EstimatedStrategy &entry : choice.best) {
    kinds.push_back(kindOf(entry.strategy));
    alikes.add(entry.strategy);
  }
}

void SimulatedSearch::recordFailure(const ParallelStrategy &strategy, std::string reason) {
  if (!choice.failed)
    choice.failed = FailedStrategy{strategy, std::move(reason)};
}

bool SimulatedSearch::take(EstimatedStrategy &entry, const StrategyTrial &trial) {
  if (trial.boundSeconds && *trial.boundSeconds >= best) {
    entry.leastSeconds = *trial.boundSeconds;
    return false;
  }
  if (!trial.failure.empty())
    recordFailure(entry.strategy, trial.failure);
  if (trial.closestBytes) { // it only does not fit, though it recomputes as much as it can
    entry.arenaBytes = *trial.closestBytes;
    entry.memoryBytes = choice.memoryBytes;
    entry.fits = false;
  }
  if (!trial.simulation)
    return false;
  double share = 0; // of its device's memory, or beyond that of its host's
  auto note = [&](double bytes, double usable, bool isOfHost) {
    if (bytes <= share * usable)
      return;
    share = bytes / usable;
    entry.arenaBytes = int64_t(bytes);
    entry.memoryBytes = usable;
    entry.isOfHost = isOfHost;
  };
  for (const StageSimulation &stage : trial.simulation->stages)
    note(double(stage.arenaBytes), stage.memoryBytes, false);
  for (const StageSimulation &stage : trial.simulation->stages)
    if (stage.nodeHostBytes > stage.hostMemoryBytes)
      note(stage.nodeHostBytes, stage.hostMemoryBytes, true);
  entry.fits = share <= 1;
  entry.simulation = trial.simulation;
  return true;
}

void SimulatedSearch::noteTime(size_t index, double seconds) {
  ++choice.progress.simulated;
  isTimed[index] = true;
  double error = seconds / choice.best[index].estimate.seconds();
  auto [known, fresh] = errors.try_emplace(kinds[index], error);
  known->second = std::min(known->second, error);
}

StrategyTrial SimulatedSearch::trialOf(size_t index) {
  const ParallelStrategy &strategy = choice.best[index].strategy;
  const std::vector<ParallelStrategy> upcoming = findUpcoming(index);
  auto [known, isNew] = tried.try_emplace(standardOrder(strategy, options));
  StrategyTrial trial;
  if (isNew) {
    const size_t first = firstInNodes(index);
    trial = trials.take(choice.best[first].strategy, upcoming, best, goesOn);
    // The plan of a choice has the order of its own strategy.
    if (first != index && trial.simulation && trial.simulation->stepSeconds < best)
      trial = trials.take(strategy, upcoming, best, goesOn);
  }
  StrategyTrial &from = isNew ? trial : known->second, &to = isNew ? known->second : trial;
  to.failure = from.failure;
  to.boundSeconds = from.boundSeconds;
  to.closestBytes = from.closestBytes;
  to.simulation = from.simulation;
  return trial;
}

size_t SimulatedSearch::firstInNodes(size_t index) const {
  // As long as strategies are tried to find the choice, most are the best of all.
  if (!work.isListing)
    return index;
  const ParallelStrategy order = standardOrder(choice.best[index].strategy, options);
  for (size_t other = 0; other < index; ++other)
    if (alikes.differInNodes(other, index) &&
        standardOrder(choice.best[other].strategy, options) == order)
      return other;
  return index;
}

void SimulatedSearch::simulateOne(size_t index) {
  EstimatedStrategy &entry = choice.best[index];
  StrategyTrial trial = trialOf(index);
  isDone[index] = true;
  countWork(index);
  bool isSimulated = take(entry, trial);
  if (entry.leastSeconds > 0)
    return noteSlower(index);
  if (!isSimulated && entry.arenaBytes == 0)
    return;
  simulatedEstimates.push_back(entry.estimate.seconds());
  if (!entry.fits)
    settleTooLarge(index);
  // A plan that recomputes in part fills the available memory, if that is enough.
  if (entry.strategy.recompute != Recompute::Auto || !entry.fits) {
    double times = double(entry.arenaBytes) / entry.memoryBytes / entry.estimate.memoryShare();
    memoryError = isThorough ? std::min(memoryError, times) : std::max(memoryError, times);
    mostMemoryError = std::max(mostMemoryError, times);
  }
  if (!isSimulated)
    return;
  const bool isBest = entry.fits && entry.simulation->stepSeconds < best;
  // No strategy is chosen that no runtime would take.
  if (auto problem = isBest ? findPlanError(trial.candidate->plan) : std::nullopt) {
    tried.at(standardOrder(entry.strategy, options)) = {.failure = problem->message};
    recordFailure(entry.strategy, "the plan cannot be run: " + problem->message);
    entry.simulation.reset();
    return;
  }
  noteTime(index, entry.simulation->stepSeconds);
  if (isBest) {
    best = entry.simulation->stepSeconds;
    chosen = index;
    choice.progress.bestSeconds = best;
    choice.options = optionsOf(entry.strategy, options);
    choice.plan = trial.candidate->plan;
    chosenTrial = std::move(trial);
  }
  settleAlike(index);
}

double SimulatedSearch::correctionOf(size_t index) const {
  auto error = errors.find(kinds[index]);
  return error == errors.end() ? priorError(choice.best[index].strategy) : error->second;
}

bool SimulatedSearch::isLikeSimulated(size_t index) const {
  const double seconds = choice.best[index].estimate.seconds();
  return llvm::any_of(simulatedEstimates, [&](double known) {
    return std::abs(seconds - known) < kSameEstimate * known;
  });
}

std::optional<size_t> SimulatedSearch::findFastest() const {
  // While much of the work is left, estimates are taken to be worse than they should be. If little
  // can be tried, strategies that may not fit are left out.
  double spare = isThorough ? std::max(0.0, double(work.left) / double(most)) : 0;
  double doubt = kEstimateError + kSpareTimeError * spare;
  double limit = isThorough ? 1 + kMemoryError + kSpareMemoryError * spare : 1 - kMemoryError;
  std::optional<size_t> fastest, fastestKnown;
  double lowerEstimate = best, lowerKnown = best;
  for (auto [index, entry] : llvm::enumerate(choice.best)) {
    if (isDone[index] || entry.estimate.memoryShare() * memoryError > limit)
      continue;
    double times = correctionOf(index);
    if (times > 1) // known from few of its kind
      times = std::pow(times, 1 - spare / 2);
    double seconds = entry.estimate.seconds() * times * (1 - doubt);
    double &lower = isLikeSimulated(index) ? lowerKnown : lowerEstimate;
    if (seconds < lower) {
      (&lower == &lowerKnown ? fastestKnown : fastest) = index;
      lower = seconds;
    }
  }
  return fastest ? fastest : fastestKnown;
}

std::optional<size_t> SimulatedSearch::findSmallest() const {
  std::optional<size_t> smallest;
  for (auto [index, entry] : llvm::enumerate(choice.best))
    if (!isDone[index] && entry.estimate.memoryShare() < 2 &&
        (!smallest || entry.estimate.memoryShare() < choice.best[*smallest].estimate.memoryShare()))
      smallest = index;
  return smallest;
}

double SimulatedSearch::likelySeconds(size_t index) const {
  double times = correctionOf(index);
  if (!errors.contains(kinds[index])) {
    double least = std::numeric_limits<double>::infinity();
    for (const auto &[kind, error] : errors)
      least = std::min(least, error);
    times = std::max(times, std::isinf(least) ? 1 : least);
  }
  return times * choice.best[index].estimate.seconds();
}

bool SimulatedSearch::isNear(size_t index) const {
  const EstimatedStrategy &entry = choice.best[index];
  return chosen && !isDone[index] && entry.estimate.memoryShare() <= 1 &&
         likelySeconds(index) < kListedMargin * best;
}

std::optional<size_t> SimulatedSearch::findNear() const {
  // Of a large model, another size of buckets is compiled with the choice alone: it changes a
  // thousandth.
  auto isKnown = [&](size_t index) {
    if (isThorough || !isLikeSimulated(index))
      return false;
    for (size_t other = 0; other < isTimed.size(); ++other)
      if (other != chosen && isTimed[other] && alikes.differInBuckets(other, index) &&
          !alikes.differInNodes(other, index) && !alikes.differInBuckets(*chosen, index))
        return true;
    return false;
  };
  std::optional<size_t> fastest;
  for (size_t index = 0; index < choice.best.size(); ++index)
    if (isNear(index) && !isKnown(index) &&
        (!fastest || likelySeconds(index) < likelySeconds(*fastest)))
      fastest = index;
  return fastest;
}

void SimulatedSearch::sortResults() {
  std::vector<EstimatedStrategy> simulated, others;
  for (auto [index, entry] : llvm::enumerate(choice.best)) {
    entry.correction = likelySeconds(index) / entry.estimate.seconds();
    if (!entry.simulation && isDone[index] && entry.leastSeconds == 0)
      continue; // it does not compile, or another one is faster
    if (!entry.simulation && isNear(index)) {
      ++choice.unknown;
      continue;
    }
    if (chosen && !entry.simulation && entry.estimate.memoryShare() * mostMemoryError > 1)
      entry.fits = false;
    // The chosen strategy comes before others that take as long.
    std::vector<EstimatedStrategy> &list = entry.simulation ? simulated : others;
    list.insert(index == chosen ? list.begin() : list.end(), std::move(entry));
  }
  choice.best.clear();
  for (std::vector<EstimatedStrategy> *list : {&simulated, &others}) {
    llvm::stable_sort(*list, [](const EstimatedStrategy &a, const EstimatedStrategy &b) {
      return a.seconds() < b.seconds();
    });
    for (EstimatedStrategy &entry : *list) {
      if (!entry.fits && (!choice.closest || entry.memoryShare() < choice.closest->memoryShare()))
        choice.closest = entry;
      if (entry.fits)
        choice.best.push_back(std::move(entry));
    }
  }
  // Without a plan there is no best strategy: what should fit by its estimate did not.
  if (!chosen)
    choice.best.clear();
}

bool SimulatedSearch::mayGoOn() const {
  // Without any that fits, a few more are worth their time.
  return work.left > 0 || (std::isinf(best) && work.left > -kMoreSimulations);
}

void SimulatedSearch::countWork(size_t index) {
  int64_t simulations = workOf(choice.best[index].strategy);
  if (work.isListing)
    work.leftToList -= simulations;
  else // as long as nothing fits, everything that may be tried is tried
    work.left -= std::isinf(best) ? 1 : simulations;
}

std::optional<size_t> SimulatedSearch::findNext() {
  if (!work.isListing && mayGoOn()) {
    std::optional<size_t> next = findFastest();
    if (!next && std::isinf(best))
      next = findSmallest();
    if (next)
      return next;
  }
  // A strategy that is as good as the choice by its estimate is listed beside it only if it is as
  // good: many such estimates are too low, for strategies that do not fit or are slower.
  work.isListing = true;
  return work.leftToList > 0 ? findNear() : std::nullopt;
}

std::vector<ParallelStrategy> SimulatedSearch::findUpcoming(size_t index) {
  const Work workBefore = work;
  const std::vector<bool> doneBefore = isDone, timedBefore = isTimed;
  const size_t simulatedBefore = simulatedEstimates.size();
  // The first strategy most often fits: then it is the choice, and what is to be listed beside it
  // comes next.
  const bool isFirst = !chosen && work.left > 0;
  if (isFirst) {
    chosen = index;
    best = likelySeconds(index);
  }
  std::vector<ParallelStrategy> upcoming;
  std::set<ParallelStrategy> orders; // of strategies that are tried before
  for (auto &[order, trial] : tried)
    orders.insert(order);
  for (std::optional<size_t> next = index; next; next = findNext()) {
    const ParallelStrategy &strategy = choice.best[firstInNodes(*next)].strategy;
    if (orders.insert(standardOrder(strategy, options)).second && *next != index)
      upcoming.push_back(strategy);
    if (upcoming.size() == kUpcoming)
      break;
    // The result of a trial most often applies to all strategies that differ in recomputation
    // alone.
    for (size_t other = 0; other < isDone.size(); ++other)
      if (alikes.differInRecompute(other, *next))
        isDone[other] = true;
    isTimed[*next] = true;
    simulatedEstimates.push_back(choice.best[*next].estimate.seconds());
    countWork(*next);
  }
  if (isFirst) {
    chosen.reset();
    best = std::numeric_limits<double>::infinity();
  }
  work = workBefore;
  isDone = doneBefore;
  isTimed = timedBefore;
  simulatedEstimates.resize(simulatedBefore);
  return upcoming;
}

void SimulatedSearch::run() {
  auto next = [&] {
    choice.progress.simulationsToCome = std::max<int64_t>(work.left, 0) + work.leftToList;
    return goesOn() ? findNext() : std::nullopt;
  };
  while (std::optional<size_t> index = next())
    simulateOne(*index);
  sortResults();
  if (!chosen || !goesOn())
    return;
  if (MaybeError error = trials.complete(chosenTrial)) {
    recordFailure(choice.best.front().strategy, error->message);
    choice.best.clear();
    return;
  }
  choice.search = std::move(chosenTrial.search);
  choice.compiled = std::move(chosenTrial.candidate);
}
