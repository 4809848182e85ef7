//===- AlikeStrategiesTest.cpp - Tests of strategies that differ in little ===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/AlikeStrategies.h"

#include "test/lib/compile/PlannerCases.h"

#include <gtest/gtest.h>

namespace alikeStrategiesTest {

using namespace dtc;
using namespace dtc::test;

/// Each strategy after the first differs from it in one more way.
TEST(AlikeStrategies, KnowInWhatTheyDiffer) {
  const cluster::Cluster machines = smallCluster(/*nodes=*/4, /*devicesOfNode=*/2);
  PlannerOptions options;
  options.cluster = &machines;
  AlikeStrategies alikes(options);
  ParallelStrategy strategy{.dp = 2, .tp = 2, .pp = 2};
  strategy.bucketBytes = 1 << 20;
  alikes.add(strategy);
  strategy.recompute = Recompute::Auto;
  strategy.memoryLimit = 1 << 30;
  alikes.add(strategy);
  strategy.pipelineInside = true; // tp fills the nodes
  alikes.add(strategy);
  strategy.bucketBytes = 1 << 21;
  alikes.add(strategy);
  strategy.zero = 1;
  alikes.add(strategy);
  for (size_t other = 0; other < 5; ++other) {
    EXPECT_EQ(alikes.differInRecompute(0, other), other <= 1) << other;
    EXPECT_EQ(alikes.differInNodes(0, other), other <= 2) << other;
    EXPECT_EQ(alikes.differInBuckets(0, other), other <= 3) << other;
  }
}

/// Where the axes inside of the pipeline leave a part of a node, its order is more than numbers.
TEST(AlikeStrategies, PartsOfNodesHaveAnOrder) {
  const cluster::Cluster machines = smallCluster(/*nodes=*/2, /*devicesOfNode=*/4);
  PlannerOptions options;
  options.cluster = &machines;
  AlikeStrategies alikes(options);
  ParallelStrategy strategy{.dp = 2, .tp = 2, .pp = 2};
  alikes.add(strategy);
  strategy.pipelineInside = true;
  alikes.add(strategy);
  EXPECT_FALSE(alikes.differInRecompute(0, 1));
  EXPECT_FALSE(alikes.differInNodes(0, 1));
  EXPECT_FALSE(alikes.differInBuckets(0, 1));
}

} // namespace alikeStrategiesTest
