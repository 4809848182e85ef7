//===- PartialRecomputeTest.cpp - Estimates of partial recomputation ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/PartialRecompute.h"

#include <gtest/gtest.h>

using namespace dtc;

namespace {

class PartialRecompute : public testing::Test {
protected:
  /// A strategy whose microbatches take so long, on devices of 100 bytes.
  void add(Recompute recompute, double bytes, double computing, int64_t dp = 2) {
    EstimatedStrategy &entry = strategies.emplace_back();
    entry.strategy.dp = dp;
    entry.strategy.recompute = recompute;
    entry.estimate.computing = computing;
    entry.estimate.bubble = computing / 10;
    entry.estimate.data = 1;
    entry.estimate.bytes = bytes;
    entry.estimate.memoryBytes = 100;
  }
  /// What is added.
  std::vector<EstimatedStrategy> added() {
    std::vector<EstimatedStrategy> all = strategies;
    addPartlyRecomputed(all, /*memoryLimit=*/100);
    return {all.begin() + ptrdiff_t(strategies.size()), all.end()};
  }
  std::vector<EstimatedStrategy> strategies;
};

TEST_F(PartialRecompute, TakesTheTimeThatTheMemoryAsksFor) {
  add(Recompute::None, 200, 10);
  add(Recompute::Selective, 130, 11);
  add(Recompute::Full, 30, 15);
  std::vector<EstimatedStrategy> partly = added();
  ASSERT_EQ(partly.size(), 1u);
  EXPECT_EQ(partly[0].strategy.recompute, Recompute::Auto);
  EXPECT_EQ(partly[0].strategy.memoryLimit, 100);
  EXPECT_EQ(partly[0].strategy.dp, 2);
  // 30 bytes of the 100 between the two are too many.
  EXPECT_DOUBLE_EQ(partly[0].estimate.computing, 11 + 0.3 * 4);
  EXPECT_DOUBLE_EQ(partly[0].estimate.bubble, 1.1 + 0.3 * 0.4);
  EXPECT_DOUBLE_EQ(partly[0].estimate.data, 1);
  EXPECT_EQ(partly[0].estimate.bytes, 30);
  EXPECT_TRUE(partly[0].fits);
}

TEST_F(PartialRecompute, OfThoseThatFitTheFastestCounts) {
  add(Recompute::Full, 30, 15);
  add(Recompute::Selective, 80, 11);
  add(Recompute::None, 120, 10);
  std::vector<EstimatedStrategy> partly = added();
  ASSERT_EQ(partly.size(), 1u);
  EXPECT_DOUBLE_EQ(partly[0].estimate.computing, 10.5);
  EXPECT_EQ(partly[0].estimate.bytes, 80);
}

/// Half of what the line between two estimates says, at the bytes that a plan was found to need.
TEST_F(PartialRecompute, TakesSomeTimeAtLeast) {
  add(Recompute::None, 200, 10);
  EXPECT_EQ(leastRecomputeSlowdown(strategies, 200, 100), 1); // nothing fits
  add(Recompute::Full, 50, 16);
  const double none = strategies[0].estimate.seconds(), full = strategies[1].estimate.seconds();
  // 100 of the 150 bytes between the two are too many.
  EXPECT_DOUBLE_EQ(leastRecomputeSlowdown(strategies, 200, 100),
                   1 + 0.5 * (full - none) * (100.0 / 150) / none);
  // Both need half as much again: 200 / 1.5 of them are there, of the least 75.
  EXPECT_DOUBLE_EQ(leastRecomputeSlowdown(strategies, 300, 100),
                   1 + 0.5 * (full - none) * ((200 - 100 / 1.5) / 150) / none);
  EXPECT_EQ(leastRecomputeSlowdown(strategies, 90, 100), 1);  // it fits
  EXPECT_EQ(leastRecomputeSlowdown(strategies, 900, 100), 1); // nothing fits
  // One that recomputes in part says nothing of itself.
  add(Recompute::Auto, 50, 11);
  EXPECT_GT(leastRecomputeSlowdown(strategies, 200, 100), 1);
  strategies.erase(strategies.begin());
  EXPECT_EQ(leastRecomputeSlowdown(strategies, 200, 100), 1);
  EXPECT_EQ(leastRecomputeSlowdown({}, 200, 100), 1);
}

/// What has hardly any memory left by its estimate may not fit.
TEST_F(PartialRecompute, StandsBesideWhatNearlyFills) {
  add(Recompute::None, 97, 10);
  add(Recompute::Full, 30, 15);
  std::vector<EstimatedStrategy> partly = added();
  ASSERT_EQ(partly.size(), 1u);
  EXPECT_DOUBLE_EQ(partly[0].estimate.computing, 10);
}

TEST_F(PartialRecompute, IsNotWhereItGainsNothing) {
  add(Recompute::None, 90, 10); // fits
  add(Recompute::Full, 30, 15);
  EXPECT_EQ(added().size(), 0u);
  strategies.clear();
  add(Recompute::None, 200, 10); // nothing fits
  add(Recompute::Full, 120, 15);
  EXPECT_EQ(added().size(), 0u);
  strategies.clear();
  add(Recompute::None, 200, 15); // what fits is as fast
  add(Recompute::Full, 30, 15);
  EXPECT_EQ(added().size(), 0u);
}

TEST_F(PartialRecompute, IsAddedOnce) {
  add(Recompute::None, 200, 10);
  add(Recompute::Full, 30, 15);
  std::vector<EstimatedStrategy> partly = added();
  ASSERT_EQ(partly.size(), 1u);
  strategies.push_back(partly[0]);
  EXPECT_EQ(added().size(), 0u);
}

/// Where more memory is needed than was estimated, more is recomputed.
TEST_F(PartialRecompute, TakesTheMemoryThatWasFound) {
  add(Recompute::None, 90, 10);
  add(Recompute::Full, 40, 15);
  EXPECT_EQ(added().size(), 0u);
  auto partly = findPartlyRecomputed({&strategies[0], &strategies[1]}, 100, /*memoryTimes=*/1.25);
  ASSERT_TRUE(partly);
  EXPECT_DOUBLE_EQ(partly->estimate.computing, 10 + 5 * (90 - 80) / 50.0);
  EXPECT_EQ(partly->estimate.bytes, 40);
}

TEST_F(PartialRecompute, IsBetweenStrategiesThatDifferInNothingElse) {
  add(Recompute::None, 200, 10, /*dp=*/2);
  add(Recompute::Full, 30, 15, /*dp=*/4);
  EXPECT_EQ(added().size(), 0u);
  add(Recompute::None, 170, 20, /*dp=*/4);
  add(Recompute::Full, 40, 25, /*dp=*/2);
  std::vector<EstimatedStrategy> partly = added();
  ASSERT_EQ(partly.size(), 1u);
  EXPECT_EQ(partly[0].strategy.dp, 2);
  EXPECT_DOUBLE_EQ(partly[0].estimate.computing, 10 + 15 * 100.0 / 160);
}

} // namespace
