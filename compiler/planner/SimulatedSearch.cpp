//===- SimulatedSearch.cpp - Simulating the best of estimated strategies --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/SimulatedSearch.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/driver/CandidateSearch.h"
#include "compiler/planner/ClusterSpeeds.h"
#include "compiler/planner/PartialRecompute.h"
#include "compiler/planner/PlannerReport.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

using namespace mlir;
using namespace dtc;

/// How much faster than its estimate a strategy may turn out to be.
static constexpr double kEstimateError = 0.1;
/// The strategies that are simulated beyond what the model allows as long as none fits.
static constexpr int64_t kMoreSimulations = 6;
/// How many more are simulated so that what is listed beside the choice is known, and how much
/// slower than the choice an estimate must be to be listed as it is.
static constexpr int64_t kListedSimulations = 10;
static constexpr double kListedMargin = 1.1;
/// By how much estimates differ of strategies that are nearly the same, such as those with another
/// order of two axes or another size of buckets. One simulation tells most about all of them.
static constexpr double kSameEstimate = 1e-3;
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
                                 PlannerResult &choice,
                                 llvm::function_ref<void(const PlannerProgress &)> report)
    : model(model), name(name), options(options), choice(choice), report(report),
      most(mostSimulations(model)), isThorough(most >= kManySimulations), left(most),
      isDone(choice.best.size(), false) {
  for (const EstimatedStrategy &entry : choice.best)
    kinds.push_back(kindOf(entry.strategy));
}

void SimulatedSearch::recordFailure(const ParallelStrategy &strategy, std::string reason) {
  if (!choice.failed)
    choice.failed = FailedStrategy{strategy, std::move(reason)};
}

bool SimulatedSearch::simulate(EstimatedStrategy &entry, Compiled &compiled) {
  CompileOptions asked = optionsOf(entry.strategy, options);
  // What is wrong with a strategy takes it out of the search.
  ScopedDiagnosticHandler quiet(model.getContext(), [](Diagnostic &) { return success(); });
  auto search = std::make_unique<CandidateSearch>(model, name, options.cluster);
  search->slowest = best;
  std::optional<Candidate> candidate = search->run(asked);
  if (!candidate) {
    if (search->leastSeconds)
      entry.leastSeconds = *search->leastSeconds;
    else if (!search->failure.empty())
      recordFailure(entry.strategy, firstErrorOf(search->failure));
    else if (search->closest) { // it only does not fit, though it recomputes as much as it can
      entry.arenaBytes = search->closest->peak();
      entry.memoryBytes = choice.memoryBytes;
      entry.fits = false;
    }
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

void SimulatedSearch::noteTime(size_t index, double seconds) {
  ++choice.progress.simulated;
  double error = seconds / choice.best[index].estimate.seconds();
  auto [known, fresh] = errors.try_emplace(kinds[index], error);
  known->second = std::min(known->second, error);
}

void SimulatedSearch::noteSlower(size_t index) {
  const EstimatedStrategy &entry = choice.best[index];
  simulatedEstimates.push_back(entry.estimate.seconds());
  noteTime(index, entry.leastSeconds);
  // What recomputes more is slower as well, and what recomputes nothing does not fit.
  for (auto [other, candidate] : llvm::enumerate(choice.best))
    if (areAlikeButForRecompute(candidate.strategy, entry.strategy))
      isDone[other] = true;
  report(choice.progress);
}

void SimulatedSearch::simulateOne(size_t index) {
  isDone[index] = true;
  EstimatedStrategy &entry = choice.best[index];
  Compiled compiled;
  // As long as nothing fits, everything that may be tried is tried.
  left -= std::isinf(best) ? 1 : workOf(entry.strategy);
  bool isSimulated = simulate(entry, compiled);
  if (entry.leastSeconds > 0)
    return noteSlower(index);
  if (!isSimulated && entry.arenaBytes == 0)
    return;
  simulatedEstimates.push_back(entry.estimate.seconds());
  // A plan that recomputes in part fills the available memory, if that is enough.
  if (entry.strategy.recompute != Recompute::Auto || !entry.fits) {
    double times = double(entry.arenaBytes) / entry.memoryBytes / entry.estimate.memoryShare();
    memoryError = isThorough ? std::min(memoryError, times) : std::max(memoryError, times);
    mostMemoryError = std::max(mostMemoryError, times);
  }
  if (!isSimulated)
    return;
  noteTime(index, entry.simulation->stepSeconds);
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
  settleAlike(index);
}

bool SimulatedSearch::isSlower(Recompute candidate, Recompute simulated) const {
  switch (simulated) {
  case Recompute::None:
    return true;
  case Recompute::Gathers:
    return candidate == Recompute::Selective || candidate == Recompute::Full;
  case Recompute::Selective:
    return candidate == Recompute::Full;
  case Recompute::Full:
    return false;
  case Recompute::Auto:
    // SavedBytesSearch recomputes more than is needed by up to its tolerance.
    return candidate != Recompute::Selective || !isThorough;
  }
  llvm_unreachable("unknown recomputation");
}

void SimulatedSearch::settleAlike(size_t index) {
  const EstimatedStrategy &entry = choice.best[index];
  llvm::SmallVector<const EstimatedStrategy *, 4> alike;
  for (auto [other, candidate] : llvm::enumerate(choice.best)) {
    if (!areAlikeButForRecompute(candidate.strategy, entry.strategy))
      continue;
    alike.push_back(&candidate);
    if (entry.fits && isSlower(candidate.strategy.recompute, entry.strategy.recompute))
      isDone[other] = true;
  }
  // The best of those that fit may be faster if it recomputes less.
  bool mayGain = !entry.fits || (entry.strategy.recompute != Recompute::None && chosen == index);
  if (!mayGain || !choice.recomputesPartly)
    return;
  std::optional<EstimatedStrategy> partly = findPartlyRecomputed(
      alike, int64_t(choice.memoryBytes), entry.memoryShare() / entry.estimate.memoryShare());
  if (!partly)
    return;
  kinds.push_back(kindOf(partly->strategy));
  isDone.push_back(false);
  choice.best.push_back(std::move(*partly));
}

double SimulatedSearch::correctionOf(size_t index) const {
  auto error = errors.find(kinds[index]);
  return error == errors.end() ? priorError(choice.best[index].strategy) : error->second;
}

std::optional<size_t> SimulatedSearch::findFastest() const {
  // While much of the work is left, estimates are taken to be worse than they should be. If little
  // can be tried, strategies that may not fit are left out.
  double spare = isThorough ? std::max(0.0, double(left) / double(most)) : 0;
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
    bool isKnown = llvm::any_of(simulatedEstimates, [&](double known) {
      return std::abs(entry.estimate.seconds() - known) < kSameEstimate * known;
    });
    double &lower = isKnown ? lowerKnown : lowerEstimate;
    if (seconds < lower) {
      lower = seconds;
      (isKnown ? fastestKnown : fastest) = index;
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

bool SimulatedSearch::isNear(size_t index) const {
  const EstimatedStrategy &entry = choice.best[index];
  return chosen && !isDone[index] && entry.estimate.memoryShare() <= 1 &&
         correctionOf(index) * entry.estimate.seconds() < kListedMargin * best;
}

std::optional<size_t> SimulatedSearch::findNear() const {
  auto secondsOf = [&](size_t index) {
    return correctionOf(index) * choice.best[index].estimate.seconds();
  };
  std::optional<size_t> fastest;
  for (size_t index = 0; index < choice.best.size(); ++index)
    if (isNear(index) && (!fastest || secondsOf(index) < secondsOf(*fastest)))
      fastest = index;
  return fastest;
}

void SimulatedSearch::sortResults() {
  std::vector<EstimatedStrategy> simulated, others;
  for (auto [index, entry] : llvm::enumerate(choice.best)) {
    entry.correction = correctionOf(index);
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
  if (choice.plan.programs_size() == 0)
    choice.best.clear();
}

void SimulatedSearch::run() {
  // Without any that fits, a few more are worth their time.
  while (left > 0 || (std::isinf(best) && left > -kMoreSimulations)) {
    std::optional<size_t> next = findFastest();
    if (!next && std::isinf(best))
      next = findSmallest();
    if (!next)
      break;
    simulateOne(*next);
  }
  // A strategy that is as good as the choice by its estimate is listed beside it only if it is as
  // good: many such estimates are too low, for strategies that do not fit or are slower.
  for (int64_t more = kListedSimulations; more > 0;) {
    std::optional<size_t> next = findNear();
    if (!next)
      break;
    more -= workOf(choice.best[*next].strategy);
    simulateOne(*next);
  }
  sortResults();
}
