//===- StepStateTest.cpp - The step state of compiled plans ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Runs small train steps and compares their state with the rules on the host.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/StepState.h"
#include "runtime/train/LearningRate.h"
#include "test/lib/compile/CompileAndRun.h"
#include "test/lib/plans/TrainStep.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace stepStateTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// The gradient of w is the sum of x over the batch.
constexpr const char *kModel = R"(
func.func @loss(%x: tensor<4x8xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
                %w: tensor<8xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,i->b" %x, %w : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
  %1 = dtc.reduce sum %0 dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
})";

std::unique_ptr<runtime::Session> openModel(const std::string &text) {
  Compiler compiler;
  auto module = compiler.parse(kModel);
  EXPECT_TRUE(module) << compiler.diagnostics();
  CompileOptions options = strategy(text);
  options.optimizer = Optimizer::SGD;
  options.momentum = options.weightDecay = options.clip = 0;
  auto session = compiler.open(*module, options);
  EXPECT_TRUE(session) << compiler.diagnostics();
  EXPECT_FALSE(session->initializeStates(/*seed=*/1));
  return session;
}

void setData(runtime::Session &session, double value) {
  HostTensor x(TensorType{DType::F32, {4, 8}});
  for (int64_t i = 0; i < 32; ++i)
    setElement(x, i, value);
  ASSERT_FALSE(session.setInput("x", std::move(x)));
}

/// Micikevicius et al., "Mixed precision training" (ICLR 2018), section 3.2, written again.
struct ScaleRule {
  double scale;
  int64_t interval, good = 0;

  void stepDone(bool skipped) {
    if (skipped) {
      scale = std::max(scale / 2, 1.0);
      good = 0;
    } else if (++good == interval) {
      scale = std::min(scale * 2, 16777216.0);
      good = 0;
    }
  }
};

class StepStates : public testing::TestWithParam<const char *> {};

} // namespace

/// Steps are skipped at random: seldom, often, always, never.
TEST_P(StepStates, FollowTheRules) {
  auto session = openModel(GetParam());
  ASSERT_TRUE(session);
  bool scales = findState(session->plan(), plan::State::LOSS_SCALE);
  EXPECT_EQ(scales, std::string(GetParam()).find("f16") != std::string::npos &&
                        std::string(GetParam()).find("bf16") == std::string::npos);
  std::mt19937 random(3);
  for (auto [initial, interval, chance] :
       {std::tuple(1024.0, 3, 0.2), {3.0, 1, 0.6}, {64.0, 2, 1.0}, {4194304.0, 1, 0.0}}) {
    SCOPED_TRACE(initial);
    ScaleRule rule{initial, interval};
    for (auto [kind, value] : {std::pair(plan::State::APPLIED_STEPS, 0.0),
                               {plan::State::SKIPPED_STEPS, 0.0},
                               {plan::State::GOOD_STEPS, 0.0},
                               {plan::State::LOSS_SCALE, initial},
                               {plan::State::GROWTH_INTERVAL, double(interval)}})
      ASSERT_FALSE(setStepState(*session, kind, {value}));
    int64_t skippedSteps = 0;
    for (int64_t step = 1; step <= 40; ++step) {
      bool skipped = std::bernoulli_distribution(chance)(random);
      setData(*session, skipped ? INFINITY : std::exp2(-10));
      auto before = session->getState("w");
      auto problem = trainStep(*session, 0.5);
      ASSERT_FALSE(problem) << problem->message;
      skippedSteps += skipped;
      EXPECT_EQ(session->getState("w")->bytes == before->bytes, skipped) << "step " << step;
      auto state = runtime::readStepState(*session);
      ASSERT_TRUE(state) << state.error().message;
      EXPECT_EQ(state->skippedSteps, skippedSteps);
      EXPECT_EQ(state->stepsDone(), step);
      if (!scales)
        continue;
      rule.stepDone(skipped);
      ASSERT_EQ(state->lossScale, rule.scale) << "step " << step;
      EXPECT_EQ(*stepStateOf(*session, plan::State::GOOD_STEPS), double(rule.good));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, StepStates,
                         testing::Values("", "dtype=f16", "dtype=bf16", "dp=2 dtype=f16",
                                         "dp=2 m=2 dtype=f16 zero=1", "dp=4 zero=3"),
                         [](const testing::TestParamInfo<const char *> &info) {
                           return "Strategy" + std::to_string(info.index);
                         });

/// Each update is the schedule's rate, rounded to f32, times a gradient of 4, over more steps than
/// rates are given at once, with skipped steps among them.
TEST(StepState, TakesTheRateOfItsStepBitForBit) {
  auto session = openModel("");
  ASSERT_TRUE(session);
  runtime::LearningRateSchedule schedule{runtime::LearningRateDecay::Cosine, 0.3, 0.01, 10, 200};
  int64_t most = session->numLearningRates();
  EXPECT_LT(most, 200);
  for (int64_t step = 1; step <= 200; ++step) {
    if (session->learningRatesLeft() == 0) {
      std::vector<double> rates;
      for (int64_t i = 0; i < most; ++i)
        rates.push_back(schedule.at(step + i));
      ASSERT_FALSE(session->setLearningRates(step - 1, rates));
    }
    bool skipped = step % 7 == 0;
    setData(*session, skipped ? NAN : 1);
    ASSERT_FALSE(setStepState(*session, plan::State::LOSS_SCALE, {1}));
    HostTensor w(TensorType{DType::F32, {8}});
    ASSERT_FALSE(session->setState("w", w));
    ASSERT_FALSE(session->step());
    float rate = static_cast<float>(schedule.at(step));
    for (int64_t i = 0; i < 8; ++i)
      ASSERT_EQ(session->getState("w")->as<float>()[i], skipped ? 0 : -(rate * 4))
          << "step " << step;
  }
}

/// Beyond what a float counts.
TEST(StepState, CountsExactly) {
  auto session = openModel("");
  ASSERT_TRUE(session);
  setData(*session, 1);
  for (double start : {16777216.0, 2147483640.0}) {
    ASSERT_FALSE(setStepState(*session, plan::State::APPLIED_STEPS, {start}));
    for (int step = 1; step <= 3; ++step) {
      ASSERT_FALSE(trainStep(*session, 0));
      EXPECT_EQ(*stepStateOf(*session, plan::State::APPLIED_STEPS), start + step);
    }
  }
}

} // namespace stepStateTest
