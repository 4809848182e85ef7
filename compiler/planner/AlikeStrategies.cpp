//===- AlikeStrategies.cpp - Strategies that differ in little -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/AlikeStrategies.h"

#include "compiler/planner/PartialRecompute.h"

using namespace dtc;

void AlikeStrategies::add(const ParallelStrategy &strategy) {
  ParallelStrategy kept = withoutRecompute(strategy);
  Numbers &entry = numbers.emplace_back();
  entry.recompute = numberOf(kept);
  kept = standardOrder(kept, options);
  entry.nodes = numberOf(kept);
  kept.bucketBytes = 0;
  entry.buckets = numberOf(kept);
}
