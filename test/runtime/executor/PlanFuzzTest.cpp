//===- PlanFuzzTest.cpp - Fuzz tests of plan files ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/executor/Session.h"
#include "test/lib/RandomCases.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/MutatePlan.h"
#include "test/lib/plans/TestPlans.h"
#include "test/lib/plans/TimeGuard.h"
#include "test/lib/plans/TrainStep.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <iostream>
#include <random>

namespace planFuzzTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// Reads and runs; true if the plan came to a result.
bool readAndRun(const std::string &bytes, const std::shared_ptr<const Backend> &backend) {
  auto plan = parsePlan(bytes.data(), bytes.size());
  if (!plan) {
    EXPECT_FALSE(plan.error().message.empty());
    return false;
  }
  auto session = Session::create(*plan, backend);
  if (!session) {
    EXPECT_FALSE(session.error().message.empty());
    return false;
  }
  if ((*session)->initializeStates(1))
    return false;
  for (const dtc::plan::Input &input : (*plan)->programs(0).inputs()) {
    TensorType type{static_cast<DType>(input.dtype()),
                    {input.shape().begin(), input.shape().end()}};
    if ((*session)->setInput(input.name(), HostTensor(type)))
      return false;
  }
  if (trainStep(**session, 0.1))
    return false;
  for (const dtc::plan::Output &output : (*plan)->programs(0).outputs())
    EXPECT_TRUE(static_cast<bool>((*session)->getOutput(output.name())));
  return true;
}

void fuzz(const dtc::plan::Plan &plan, const std::shared_ptr<const Backend> &backend) {
  const uint64_t count = dtc::test::randomCases(2000), seed = dtc::test::randomSeed();
  std::mt19937_64 random(seed);
  std::string original = serializePlan(plan);
  EXPECT_TRUE(readAndRun(original, backend));
  uint64_t ran = 0;
  for (uint64_t i = 0; i < count; ++i) {
    std::string bytes = i % 2 == 0 ? mutateBytes(original, random) : mutateFields(plan, random);
    TimeGuard guard(std::chrono::seconds(60), fmt::format("DTC_RANDOM_SEED={}, plan {}", seed, i));
    ran += readAndRun(bytes, backend);
  }
  // Some changes do no harm (a letter of a name), and most do.
  std::cout << ran << " of " << count << " ran\n";
  EXPECT_GT(ran, 0u);
  EXPECT_LT(ran, count);
}

} // namespace

TEST(PlanFuzz, DamagedPlansGiveAnErrorOrAResult) {
  fuzz(*trainingPlan({2, 2, 2}), createFakeBackend());
}

TEST(PlanFuzz, DamagedPlansWithAsyncCollectivesGiveAnErrorOrAResult) {
  fuzz(*overlapPlan(/*async=*/true), createFakeBackend());
}

TEST(PlanFuzz, DamagedPlansDoNotHarmTheCpuBackend) { fuzz(*kernelPlan(), createCpuBackend()); }

} // namespace planFuzzTest
