//===- TrainOptionsTest.cpp - Tests of the options of training ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainOptions.h"

#include "test/lib/plans/Expect.h"

#include <cmath>
#include <gtest/gtest.h>
#include <tuple>

namespace trainOptionsTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

TEST(TrainOptions, DefaultsOfTheLearningRate) {
  TrainOptions options;
  auto schedule = learningRateSchedule(options, 100);
  ASSERT_OK(schedule);
  EXPECT_EQ(schedule->decay, LearningRateDecay::Cosine);
  EXPECT_EQ(schedule->peak, 1e-3);
  EXPECT_EQ(schedule->minimum, 0);
  EXPECT_EQ(schedule->warmupSteps, 10);
  EXPECT_EQ(schedule->totalSteps, 100);
  EXPECT_EQ(learningRateSchedule(options, 5)->warmupSteps, 0);
  EXPECT_EQ(learningRateSchedule(options, 100000)->warmupSteps, 100);
}

TEST(TrainOptions, WarmupAsAPartOfTheSteps) {
  TrainOptions options;
  for (auto [ratio, steps, expected] : {std::tuple(0.03, 1000, 30), std::tuple(0.03, 10, 1),
                                        std::tuple(0.0, 10, 0), std::tuple(1.0, 7, 7)}) {
    options.warmupRatio = ratio;
    EXPECT_EQ(learningRateSchedule(options, steps)->warmupSteps, expected) << ratio;
  }
  for (double ratio : {-0.1, 1.1, double(NAN)}) {
    options.warmupRatio = ratio;
    EXPECT_ERROR(learningRateSchedule(options, 10), "--warmup-ratio is ");
  }
}

TEST(TrainOptions, LearningRatesThatContradictEachOther) {
  TrainOptions options;
  options.warmupSteps = 11;
  EXPECT_ERROR(learningRateSchedule(options, 10),
               "--warmup is 11; expected 0 to the 10 steps of the run");
  options.warmupSteps = 10;
  EXPECT_OK(learningRateSchedule(options, 10));
  options.minLearningRate = 0.002;
  EXPECT_ERROR(learningRateSchedule(options, 10),
               "--min-lr is 0.002; expected 0 to the learning rate of 0.001");
  options.minLearningRate = -1;
  EXPECT_ERROR(learningRateSchedule(options, 10), "--min-lr is -1");
  options.minLearningRate = NAN;
  EXPECT_ERROR(learningRateSchedule(options, 10), "--min-lr is nan");
  options.minLearningRate = 0.001;
  EXPECT_OK(learningRateSchedule(options, 10));
  options.decay = LearningRateDecay::Constant;
  EXPECT_ERROR(learningRateSchedule(options, 10),
               "--min-lr is 0.001, but with --lr-schedule constant the rate does not fall");
  options.minLearningRate.reset();
  EXPECT_OK(learningRateSchedule(options, 10));
  options.learningRate = INFINITY;
  EXPECT_ERROR(learningRateSchedule(options, 10), "--lr is inf; expected a finite number");
  EXPECT_ERROR(learningRateSchedule(TrainOptions(), -3), "--steps is -3; expected 0 or more");
}

TEST(TrainOptions, LossScaleOfAPlanThatScales) {
  TrainOptions options;
  auto scale = lossScaling(options, true);
  ASSERT_OK(scale);
  ASSERT_TRUE(scale->has_value());
  EXPECT_EQ((*scale)->initial, 65536);
  EXPECT_EQ((*scale)->growthInterval, 2000);
  options.lossScale = 8;
  options.lossScaleGrowthInterval = 1;
  scale = lossScaling(options, true);
  ASSERT_OK(scale);
  EXPECT_EQ((*scale)->initial, 8);
  EXPECT_EQ((*scale)->growthInterval, 1);
}

TEST(TrainOptions, LossScalesThatCannotBe) {
  TrainOptions options;
  for (double scale : {0.5, 16777217.0, -1.0, double(NAN), double(INFINITY)}) {
    options.lossScale = scale;
    EXPECT_ERROR(lossScaling(options, true), "; expected a number from 1 to 16777216");
  }
  options.lossScale = 1;
  options.lossScaleGrowthInterval = 0;
  EXPECT_ERROR(lossScaling(options, true),
               "--loss-scale-growth-interval is 0; expected 1 to 2147483647");
  options.lossScaleGrowthInterval = int64_t{1} << 31;
  EXPECT_ERROR(lossScaling(options, true),
               "--loss-scale-growth-interval is 2147483648; expected 1 to 2147483647");
}

TEST(TrainOptions, LossScaleOfAPlanThatDoesNotScale) {
  TrainOptions options;
  auto scale = lossScaling(options, false);
  ASSERT_OK(scale);
  EXPECT_FALSE(scale->has_value());
  options.lossScaleGrowthInterval = 100;
  EXPECT_ERROR(lossScaling(options, false),
               "--loss-scale-growth-interval: the plan does not scale its loss; compile with "
               "--dtype f16");
  options.lossScale = 1024;
  EXPECT_ERROR(lossScaling(options, false), "--loss-scale: the plan does not scale its loss");
}

} // namespace trainOptionsTest
