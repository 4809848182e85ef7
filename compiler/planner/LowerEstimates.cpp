//===- LowerEstimates.cpp - Lower estimates of strategies, in order -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/LowerEstimates.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>
#include <utility>

using namespace mlir;
using namespace dtc;

/// How many probes are made at a time where the result of one may make the others needless. Not as
/// many as there are threads, on which no result depends.
static constexpr size_t kProbesAhead = 4;

CostKey LowerEstimates::keyOf(const ParallelStrategy &strategy) const {
  CostKey key = strategy.key(traits.batch);
  key.recompute = Recompute::None;
  key.sequenceParallel = strategy.tp > 1 && traits.hasSequenceAxis;
  // Devices that split nothing do the same work as one.
  if (!setting.splitsByDefault && strategy.shard.empty()) {
    key.tp = 1;
    key.sequenceParallel = false;
  }
  return key;
}

CostKey LowerEstimates::familyOf(CostKey key) {
  key.samples = 0;
  return key;
}

LowerEstimate LowerEstimates::estimate(const ParallelStrategy &strategy, size_t number,
                                       ArrayRef<ModelCosts> costs) {
  ParallelStrategy balanced = strategy;
  estimator.balance(balanced, costs);
  StepEstimate step = estimator.estimate(balanced, costs);
  return {step.seconds(), std::max(0.0, step.bytes - step.memoryBytes), number};
}

std::optional<LowerEstimate> LowerEstimates::find(const ParallelStrategy &strategy, size_t number) {
  CostKey key = keyOf(strategy);
  ArrayRef<ModelCosts> costs = probe.find(key);
  if (costs.empty()) {
    setting.noteFailure(strategy, probe.problemOf(key));
    return std::nullopt;
  }
  return estimate(strategy, number, costs);
}

std::optional<LowerEstimate> LowerEstimates::bound(size_t number) {
  const ParallelStrategy &strategy = all[number];
  CostKey key = keyOf(strategy);
  auto largest = largestSamples.find(familyOf(key));
  if (largest == largestSamples.end() || probe.isKnown(key))
    return find(strategy, number);
  auto [scaled, isNew] = scaledCosts.try_emplace(key);
  if (isNew) {
    CostKey known = key;
    known.samples = largest->second;
    for (const ModelCosts &costs : probe.find(known))
      scaled->second.push_back(
          boundFewerSamples(costs, double(key.samples) / double(known.samples)));
  }
  if (scaled->second.empty()) // it does not compile
    return find(strategy, number);
  LowerEstimate result = estimate(strategy, number, scaled->second);
  result.isBound = true;
  return result;
}

void LowerEstimates::add(ArrayRef<ParallelStrategy> more) {
  std::vector<CostKey> keys;
  std::set<CostKey> isListed;
  for (const ParallelStrategy &strategy : more)
    if (CostKey key = keyOf(strategy); isListed.insert(key).second)
      keys.push_back(std::move(key));
  if (setting.boundsSamples) {
    for (const CostKey &key : keys) {
      int64_t &samples = largestSamples[familyOf(key)];
      samples = std::max(samples, key.samples);
    }
    llvm::erase_if(
        keys, [&](const CostKey &key) { return key.samples < largestSamples.at(familyOf(key)); });
  }
  probe.expect(keys);
  probe.findAll(keys);
  size_t number = all.size();
  llvm::append_range(all, more);
  for (const ParallelStrategy &strategy : more) {
    CostKey key = keyOf(strategy);
    auto [known, isNew] = keyNumbers.try_emplace(key, distinctKeys.size());
    if (isNew)
      distinctKeys.push_back(std::move(key));
    keyNumberOf.push_back(known->second);
  }
  for (; number < all.size(); ++number)
    if (std::optional<LowerEstimate> found = bound(number))
      ordered.push_back(*found);
  llvm::sort(ordered);
}

template <typename Estimates>
void LowerEstimates::probeNext(const Estimates &next, double slowest) {
  std::vector<CostKey> keys;
  for (const LowerEstimate &each : next) {
    if (keys.size() == kProbesAhead || each.seconds > slowest)
      break;
    const ParallelStrategy &strategy = all[each.strategy];
    CostKey key = each.isBound ? knownKeyOf(each) : strategy.key(traits.batch);
    if (!probe.isKnown(key) && !llvm::is_contained(keys, key))
      keys.push_back(std::move(key));
  }
  probe.findAll(keys);
}

void LowerEstimates::resolve(size_t index) {
  probeNext(llvm::make_filter_range(ArrayRef(ordered).drop_front(index),
                                    [](const LowerEstimate &each) { return each.isBound; }),
            std::numeric_limits<double>::infinity());
  std::vector<bool> isKnown;
  for (const CostKey &key : distinctKeys)
    isKnown.push_back(probe.isKnown(key));
  llvm::erase_if(ordered, [&](LowerEstimate &each) {
    if (!each.isBound || !isKnown[keyNumberOf[each.strategy]])
      return false;
    std::optional<LowerEstimate> found = find(all[each.strategy], each.strategy);
    each = found.value_or(each);
    return !found;
  });
  llvm::sort(ordered);
}

void LowerEstimates::drop(llvm::function_ref<bool(const ParallelStrategy &)> isDropped) {
  llvm::erase_if(ordered, [&](const LowerEstimate &each) { return isDropped(all[each.strategy]); });
}

std::optional<size_t> LowerEstimates::takeNext(double slowest) {
  if (!left)
    left.emplace(ordered.begin(), ordered.end());
  while (!left->empty() && left->begin()->seconds <= slowest) {
    const LowerEstimate next = *left->begin();
    const ParallelStrategy &strategy = all[next.strategy];
    if (!probe.isKnown(next.isBound ? knownKeyOf(next) : strategy.key(traits.batch)))
      probeNext(*left, slowest);
    left->erase(left->begin());
    if (!next.isBound)
      return next.strategy;
    if (std::optional<LowerEstimate> found = find(strategy, next.strategy))
      left->insert(*found);
  }
  return std::nullopt;
}
