//===- SkippedStepsTest.cpp - Consecutive skipped steps -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/SkippedSteps.h"

#include <gtest/gtest.h>

namespace skippedStepsTest {

using namespace dtc;
using namespace dtc::runtime;

TEST(SkippedSteps, AreHopelessWhenTenInARowCouldNotBeMended) {
  SkippedSteps steps;
  for (int i = 0; i < 9; ++i)
    steps.stepDone(true, false);
  EXPECT_FALSE(steps.hopeless());
  steps.stepDone(false, false);
  EXPECT_EQ(steps.lastInARow(), 0);
  for (int i = 0; i < 9; ++i)
    steps.stepDone(true, false);
  EXPECT_FALSE(steps.hopeless());
  steps.stepDone(true, false);
  EXPECT_TRUE(steps.hopeless());
  EXPECT_EQ(steps.lastInARow(), 10);
}

TEST(SkippedSteps, GoOnFromAnotherRun) {
  SkippedSteps steps(9);
  EXPECT_FALSE(steps.hopeless());
  steps.stepDone(true, false);
  EXPECT_TRUE(steps.hopeless());
}

TEST(SkippedSteps, AFallingScaleIsAHope) {
  SkippedSteps steps;
  for (int i = 0; i < 30; ++i)
    steps.stepDone(true, true);
  EXPECT_FALSE(steps.hopeless());
  for (int i = 0; i < 10; ++i)
    steps.stepDone(true, false);
  EXPECT_TRUE(steps.hopeless());
}

} // namespace skippedStepsTest
