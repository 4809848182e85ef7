//===- SettledStrategies.cpp - Strategies that one simulation settles -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/PartialRecompute.h"
#include "compiler/planner/SimulatedSearch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/ErrorHandling.h"

#include <optional>
#include <utility>

using namespace dtc;

void SimulatedSearch::noteSlower(size_t index) {
  const EstimatedStrategy &entry = choice.best[index];
  simulatedEstimates.push_back(entry.estimate.seconds());
  noteTime(index, entry.leastSeconds);
  // Strategies that recompute more are slower as well, and those that recompute nothing do not fit.
  for (size_t other = 0; other < isDone.size(); ++other)
    if (alikes.differInRecompute(other, index))
      isDone[other] = true;
}

bool SimulatedSearch::isSlower(Recompute candidate, Recompute simulated) const {
  switch (simulated) {
  case Recompute::None:
    return true;
  case Recompute::Gathers:
  case Recompute::Elementwise:
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
    if (!alikes.differInNodes(other, index))
      continue;
    // With other numbers of nodes it is the same plan, which is listed as well.
    const bool isSame = alikes.differInRecompute(other, index);
    if (isSame)
      alike.push_back(&candidate);
    if (entry.fits && isSlower(candidate.strategy.recompute, entry.strategy.recompute) &&
        (isSame || candidate.strategy.recompute != entry.strategy.recompute))
      isDone[other] = true;
    else if (isSame) // its estimate errs as this one's does, more than as others of its kind do
      kinds[other] = kinds[index];
  }
  // The best of those that fit may be faster if it recomputes less.
  bool mayGain = !entry.fits || (entry.strategy.recompute != Recompute::None && chosen == index);
  if (!mayGain || !choice.recomputesPartly)
    return;
  std::optional<EstimatedStrategy> partly = findPartlyRecomputed(
      alike, int64_t(choice.memoryBytes), entry.memoryShare() / entry.estimate.memoryShare());
  if (!partly)
    return;
  kinds.push_back(kinds[index]);
  alikes.add(partly->strategy);
  isDone.push_back(false);
  isTimed.push_back(false);
  choice.best.push_back(std::move(*partly));
}

void SimulatedSearch::settleTooLarge(size_t index) {
  const EstimatedStrategy &entry = choice.best[index];
  if (entry.isOfHost)
    return;
  const double times = double(entry.arenaBytes) / entry.memoryBytes / entry.estimate.memoryShare();
  for (auto [other, candidate] : llvm::enumerate(choice.best))
    if (!isDone[other] && alikes.differInBuckets(other, index) &&
        (entry.strategy.recompute == Recompute::Auto ||
         entry.strategy.recompute == candidate.strategy.recompute) &&
        candidate.estimate.memoryShare() * times > 1)
      isDone[other] = true;
}
