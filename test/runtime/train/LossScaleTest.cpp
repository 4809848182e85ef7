//===- LossScaleTest.cpp - What the loss is multiplied by -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/LossScale.h"

#include "runtime/train/SkippedSteps.h"

#include <gtest/gtest.h>

using namespace dtc::runtime;

static void repeat(int times, LossScale &scale, bool skipped) {
  for (int i = 0; i < times; ++i)
    scale.stepDone(skipped);
}

TEST(LossScale, DoublesAfterEveryIntervalWithoutASkip) {
  LossScale scale(1024, 3);
  repeat(2, scale, false);
  EXPECT_EQ(scale.value(), 1024);
  repeat(1, scale, false);
  EXPECT_EQ(scale.value(), 2048);
  repeat(2, scale, false);
  EXPECT_EQ(scale.value(), 2048);
  repeat(1, scale, false);
  EXPECT_EQ(scale.value(), 4096);
}

TEST(LossScale, HalvesAtEachSkipAndCountsAnew) {
  LossScale scale(1024, 3);
  repeat(2, scale, false);
  repeat(1, scale, true);
  EXPECT_EQ(scale.value(), 512);
  repeat(2, scale, false);
  EXPECT_EQ(scale.value(), 512);
  repeat(1, scale, false);
  EXPECT_EQ(scale.value(), 1024);
  repeat(2, scale, true);
  EXPECT_EQ(scale.value(), 256);
}

TEST(LossScale, StaysWithinItsBounds) {
  LossScale scale(3, 1);
  EXPECT_FALSE(scale.isLowest());
  repeat(1, scale, true);
  EXPECT_EQ(scale.value(), 1.5);
  repeat(1, scale, true);
  EXPECT_EQ(scale.value(), 1);
  EXPECT_TRUE(scale.isLowest());
  repeat(5, scale, true);
  EXPECT_EQ(scale.value(), 1);
  repeat(24, scale, false);
  EXPECT_EQ(scale.value(), 16777216);
  repeat(1, scale, false);
  EXPECT_EQ(scale.value(), 16777216);
  repeat(1, scale, true);
  EXPECT_EQ(scale.value(), 8388608);
}

TEST(SkippedSteps, AreHopelessWhenTenInARowCouldNotBeMended) {
  SkippedSteps steps;
  for (int i = 0; i < 9; ++i)
    steps.stepDone(true, false);
  EXPECT_FALSE(steps.hopeless());
  steps.stepDone(false, false);
  for (int i = 0; i < 9; ++i)
    steps.stepDone(true, false);
  EXPECT_FALSE(steps.hopeless());
  steps.stepDone(true, false);
  EXPECT_TRUE(steps.hopeless());
  EXPECT_EQ(steps.total(), 19);
}

TEST(SkippedSteps, AFallingScaleIsAHope) {
  SkippedSteps steps;
  for (int i = 0; i < 30; ++i)
    steps.stepDone(true, true);
  EXPECT_FALSE(steps.hopeless());
  for (int i = 0; i < 10; ++i)
    steps.stepDone(true, false);
  EXPECT_TRUE(steps.hopeless());
  EXPECT_EQ(steps.total(), 40);
}
