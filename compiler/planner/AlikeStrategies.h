//===- AlikeStrategies.h - Strategies that differ in little ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_ALIKESTRATEGIES_H
#define DTC_COMPILER_PLANNER_ALIKESTRATEGIES_H

#include "compiler/planner/Planner.h"

#include <cstddef>
#include <map>
#include <vector>

namespace dtc {

/// Which of a list of strategies differ in little, by their places in the list. The result of one
/// trial says something about all of these.
class AlikeStrategies {
public:
  /// `options` outlive it.
  explicit AlikeStrategies(const PlannerOptions &options) : options(options) {}

  /// Adds the next strategy of the list.
  void add(const ParallelStrategy &strategy);

  /// Whether two differ in nothing but what they recompute.
  bool differInRecompute(size_t a, size_t b) const {
    return numbers[a].recompute == numbers[b].recompute;
  }
  /// The same, or also in the numbers of nodes (see standardOrder()).
  bool differInNodes(size_t a, size_t b) const { return numbers[a].nodes == numbers[b].nodes; }
  /// The same, or also in the size of buckets.
  bool differInBuckets(size_t a, size_t b) const {
    return numbers[a].buckets == numbers[b].buckets;
  }

private:
  /// Equal for strategies that differ in nothing else than a member is named after, and in what the
  /// members before are.
  struct Numbers {
    size_t recompute, nodes, buckets;
  };

  size_t numberOf(const ParallelStrategy &strategy) {
    return known.try_emplace(strategy, known.size()).first->second;
  }

  const PlannerOptions &options;
  std::map<ParallelStrategy, size_t> known;
  std::vector<Numbers> numbers;
};

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_ALIKESTRATEGIES_H
