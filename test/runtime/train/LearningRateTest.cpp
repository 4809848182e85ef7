//===- LearningRateTest.cpp - The learning rate over the steps ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/LearningRate.h"

#include <gtest/gtest.h>

namespace learningRateTest {

using namespace dtc;
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

// Computed from the formulas of the header with 40 decimal digits.
TEST(LearningRate, FollowsItsFormulas) {
  struct Rate {
    int64_t step;
    double cosine, linear;
  };
  LearningRateSchedule cosine{LearningRateDecay::Cosine, 6e-4, 6e-5, 10, 100};
  LearningRateSchedule linear = cosine, constant = cosine;
  linear.decay = LearningRateDecay::Linear;
  constant.decay = LearningRateDecay::Constant;
  for (const Rate &rate : {Rate{1, 6e-5, 6e-5},
                           {7, 4.2e-4, 4.2e-4},
                           {10, 6e-4, 6e-4},
                           {11, 6e-4, 6e-4},
                           {12, 5.998318068107341e-4, 5.9393258426966296e-4},
                           {33, 5.225961762845827e-4, 4.6651685393258425e-4},
                           {55, 3.3476508977364473e-4, 3.3303370786516855e-4},
                           {56, 3.2523491022635526e-4, 3.2696629213483145e-4},
                           {78, 1.3740382371541735e-4, 1.9348314606741572e-4},
                           {99, 6.0168193189265878e-5, 6.6067415730337081e-5},
                           {100, 6e-5, 6e-5},
                           {101, 6e-5, 6e-5}}) {
    EXPECT_NEAR(cosine.at(rate.step), rate.cosine, 1e-18) << rate.step;
    EXPECT_NEAR(linear.at(rate.step), rate.linear, 1e-18) << rate.step;
    EXPECT_NEAR(constant.at(rate.step), rate.step <= 10 ? rate.linear : 6e-4, 1e-18) << rate.step;
  }
}

} // namespace learningRateTest
