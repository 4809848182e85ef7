//===- PartialRecompute.cpp - Strategies that recompute in part -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/PartialRecompute.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <map>

using namespace dtc;

/// The times on the line from one estimate (for a share of 0) to the other (for 1), and the bytes
/// of the latter.
static StepEstimate between(const StepEstimate &from, const StepEstimate &to, double share) {
  StepEstimate result = to;
  for (double StepEstimate::*field :
       {&StepEstimate::computing, &StepEstimate::bubble, &StepEstimate::data,
        &StepEstimate::transfers, &StepEstimate::update, &StepEstimate::forward,
        &StepEstimate::backward, &StepEstimate::message})
    result.*field += (1 - share) * (from.*field - to.*field);
  return result;
}

std::optional<EstimatedStrategy>
dtc::findPartlyRecomputed(llvm::ArrayRef<const EstimatedStrategy *> alike, int64_t memoryLimit,
                          double memoryTimes) {
  // The smallest of those that are too large, and the fastest of the others.
  const EstimatedStrategy *large = nullptr, *small = nullptr;
  for (const EstimatedStrategy *entry : alike) {
    if (entry->strategy.recompute == Recompute::Auto)
      return std::nullopt; // it is known
    bool isLarge = memoryTimes * entry->estimate.memoryShare() > 1 - kMemoryError;
    const EstimatedStrategy *&best = isLarge ? large : small;
    if (!best || (isLarge ? entry->estimate.bytes < best->estimate.bytes
                          : entry->estimate.seconds() < best->estimate.seconds()))
      best = entry;
  }
  if (!large || !small || large->estimate.seconds() >= small->estimate.seconds())
    return std::nullopt;
  double share = (large->estimate.bytes - small->estimate.memoryBytes / memoryTimes) /
                 (large->estimate.bytes - small->estimate.bytes);
  EstimatedStrategy partly;
  partly.strategy = small->strategy;
  partly.strategy.recompute = Recompute::Auto;
  partly.strategy.memoryLimit = memoryLimit;
  partly.estimate = between(large->estimate, small->estimate, std::clamp(share, 0.0, 1.0));
  return partly;
}

ParallelStrategy dtc::withoutRecompute(ParallelStrategy strategy) {
  strategy.recompute = Recompute::None;
  strategy.memoryLimit = 0;
  return strategy;
}

void dtc::addPartlyRecomputed(std::vector<EstimatedStrategy> &strategies, int64_t memoryLimit) {
  std::map<ParallelStrategy, size_t> numbers;
  std::vector<std::vector<size_t>> groups; // in the order of their first strategies
  for (auto [index, entry] : llvm::enumerate(strategies)) {
    auto [group, isFirst] = numbers.try_emplace(withoutRecompute(entry.strategy), groups.size());
    if (isFirst)
      groups.emplace_back();
    groups[group->second].push_back(index);
  }
  for (const std::vector<size_t> &group : groups) {
    llvm::SmallVector<const EstimatedStrategy *, 3> alike;
    for (size_t index : group)
      alike.push_back(&strategies[index]);
    if (std::optional<EstimatedStrategy> partly = findPartlyRecomputed(alike, memoryLimit))
      strategies.push_back(std::move(*partly));
  }
}
