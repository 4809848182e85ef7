//===- LearningRateTest.cpp - The learning rate over the steps ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/LearningRate.h"

#include <gtest/gtest.h>

using namespace dtc::runtime;

TEST(LearningRate, RisesThenFallsToTheMinimum) {
  LearningRateSchedule schedule{LearningRateDecay::Cosine, 1.0, 0.2, 4, 15};
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.25);
  EXPECT_DOUBLE_EQ(schedule.at(4), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(5), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(10), 0.6);
  EXPECT_DOUBLE_EQ(schedule.at(15), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(100), 0.2);
  schedule.decay = LearningRateDecay::Linear;
  EXPECT_DOUBLE_EQ(schedule.at(5), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(6), 0.92);
  EXPECT_DOUBLE_EQ(schedule.at(15), 0.2);
  schedule.decay = LearningRateDecay::Constant;
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.25);
  EXPECT_DOUBLE_EQ(schedule.at(15), 1.0);
}

TEST(LearningRate, ShortRuns) {
  EXPECT_DOUBLE_EQ((LearningRateSchedule{LearningRateDecay::Cosine, 1.0, 0, 0, 1}).at(1), 1.0);
  EXPECT_DOUBLE_EQ((LearningRateSchedule{LearningRateDecay::Cosine, 1.0, 0, 3, 3}).at(3), 1.0);
  EXPECT_DOUBLE_EQ((LearningRateSchedule{LearningRateDecay::Linear, 1.0, 0.5, 1, 2}).at(2), 1.0);
}
