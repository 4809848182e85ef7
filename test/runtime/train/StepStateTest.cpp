//===- StepStateTest.cpp - The step state of a plan, on the host ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/StepState.h"

#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/data/Sampling.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/StepStatePlan.h"
#include "test/lib/plans/TestPlans.h"
#include "test/lib/plans/TrainStep.h"

#include <gtest/gtest.h>

namespace stepStateTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

/// A plan that trains nothing, and a key of random masks that it does not use. The output "rate" is
/// the learning rate of the step, "step" the number that an optimizer gets.
std::unique_ptr<Session> makeSession(bool scalesLoss) {
  PlanBuilder builder;
  StepStatePlan stepState(builder, scalesLoss);
  plan::State &key = builder.state("dtc.random_key", DType::I32, {2}, {{}});
  key.set_kind(plan::State::RANDOM_KEY);
  uint32_t apply = builder.buffer(DType::Bool, {});
  builder.task("step");
  builder.schedule(0);
  stepState.computeScalars();
  (*builder.kernel("fill", {}, {apply}).mutable_attributes())["value"] = floatAttribute(1);
  stepState.update(apply);
  builder.output("rate", DType::F32, {}, {}, stepState.learningRate());
  builder.output("step", DType::F32, {}, {}, stepState.step());
  auto session = Session::create(builder.build(), createCpuBackend());
  EXPECT_OK(session);
  EXPECT_OK((*session)->initializeStates(1));
  return std::move(*session);
}

double outputOf(const Session &session, const char *name) {
  Expected<HostTensor> value = session.getOutput(name);
  EXPECT_OK(value);
  return elementAt(*value, 0);
}

} // namespace

TEST(StepState, StartsAsTheOptionsSay) {
  auto session = makeSession(/*scalesLoss=*/true);
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
    ASSERT_OK(startStepState(*session, LossScaling{4096, 3}, seed, /*nextBatch=*/7));
    Expected<StepState> state = readStepState(*session);
    ASSERT_OK(state);
    EXPECT_EQ(state->stepsDone(), 0);
    EXPECT_EQ(state->lossScale, 4096);
    EXPECT_EQ(*stepStateOf(*session, plan::State::GROWTH_INTERVAL), 3);
    std::array<uint32_t, 2> key = randomMaskKey(seed, 7);
    for (int64_t word : {0, 1})
      EXPECT_EQ(static_cast<uint32_t>(
                    static_cast<int32_t>(*stepStateOf(*session, plan::State::RANDOM_KEY, word))),
                key[static_cast<size_t>(word)]);
  }
}

TEST(StepState, IsThatOfThePlan) {
  auto session = makeSession(/*scalesLoss=*/false);
  ASSERT_OK(startStepState(*session, std::nullopt, 0, 0));
  for (int step = 1; step <= 3; ++step) {
    ASSERT_OK(trainStep(*session, 0.5));
    Expected<StepState> state = readStepState(*session);
    ASSERT_OK(state);
    EXPECT_EQ(state->appliedSteps, step);
    EXPECT_EQ(state->skippedSteps, 0);
    EXPECT_FALSE(state->lossScale);
  }
  // A plan that does not train has none.
  auto forward = Session::create(forwardPlan(), createCpuBackend());
  ASSERT_OK(forward);
  EXPECT_OK(startStepState(**forward, std::nullopt, 0, 0));
  Expected<StepState> none = readStepState(**forward);
  ASSERT_OK(none);
  EXPECT_EQ(none->stepsDone(), 0);
}

TEST(LearningRates, AreThoseOfTheStepsThatTheyAreGivenFor) {
  auto session = makeSession(/*scalesLoss=*/false);
  EXPECT_EQ(session->numLearningRates(), kNumTestRates);
  EXPECT_ERROR(session->step(), "there is no learning rate for the step");
  int64_t step = 0;
  for (int64_t given : {4, 1, 3}) {
    std::vector<double> rates;
    for (int64_t i = 1; i <= given; ++i)
      rates.push_back(0.1 * static_cast<double>(step + i));
    ASSERT_OK(session->setLearningRates(step, rates));
    for (int64_t left = given; left > 0; --left) {
      EXPECT_EQ(session->learningRatesLeft(), left);
      ASSERT_OK(session->step());
      ++step;
      EXPECT_EQ(outputOf(*session, "rate"), static_cast<float>(0.1 * static_cast<double>(step)));
      EXPECT_EQ(outputOf(*session, "step"), static_cast<double>(step));
    }
    EXPECT_ERROR(session->step(), "all that were given have been used");
  }
}

TEST(LearningRates, ThatDoNotFitAreErrors) {
  auto session = makeSession(/*scalesLoss=*/false);
  std::vector<double> rates(kNumTestRates + 1, 0.5);
  EXPECT_ERROR(session->setLearningRates(0, rates),
               "5 learning rates are given; the plan takes 1 to 4");
  EXPECT_ERROR(session->setLearningRates(0, {}), "0 learning rates are given");
  rates.pop_back();
  for (int64_t step : {int64_t{-1}, (int64_t{1} << 31) - 4, INT64_MAX})
    EXPECT_ERROR(session->setLearningRates(step, rates), "a run has at most 2147483647 steps");
  EXPECT_OK(session->setLearningRates((int64_t{1} << 31) - 5, rates));
}

} // namespace stepStateTest
