//===- PartialRecomputeTest.cpp - Estimates of partial recomputation ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/PartialRecompute.h"

#include <gtest/gtest.h>

namespace partialRecomputeTest {

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
  /// The strategies that are added.
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

/// A strategy that has hardly any memory left by its estimate may not fit.
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
  add(Recompute::None, 200, 15); // one that fits is as fast
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

} // namespace partialRecomputeTest
