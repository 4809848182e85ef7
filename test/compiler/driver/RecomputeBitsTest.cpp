//===- RecomputeBitsTest.cpp - Bitwise tests of recomputation -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Trains small models with nothing recomputed and with each way to recompute, on the same
// strategy and the same path through the compiler, and compares losses, norms and parameters bit by
// bit.
//
//===----------------------------------------------------------------------===//

#include "test/compiler/driver/SearchedPlans.h"
#include "test/lib/plans/TrainStep.h"

#include "plan/PlanTypes.h"
#include "plan/PlanVerifier.h"
#include "runtime/backends/cpu/CpuBackend.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <gtest/gtest.h>

namespace recomputeBitsTest {

using namespace dtc;
using namespace dtc::test;

namespace {

constexpr int kSteps = 3;

struct Trained {
  std::vector<double> scalars; ///< the loss and the norm of each step
  std::map<std::string, HostTensor> states;
  uint64_t peak = 0;
};

class RecomputeBits : public testing::TestWithParam<std::tuple<SearchedModel, const char *>> {};

} // namespace

static Trained train(const plan::Plan &plan) {
  Trained run;
  auto session =
      runtime::Session::create(std::make_shared<plan::Plan>(plan), runtime::createCpuBackend());
  EXPECT_TRUE(session) << session.error().message;
  if (!session)
    return run;
  run.peak = (*session)->peakBytes();
  EXPECT_FALSE((*session)->initializeStates(/*seed=*/7));
  for (int step = 1; step <= kSteps; ++step) {
    auto problem = setRandomInputs(**session, /*seed=*/step);
    if (!problem)
      problem = trainStep(**session, 1e-2);
    EXPECT_FALSE(problem) << problem->message;
    if (problem)
      return run;
    for (const char *output : {"loss", "grad_norm"})
      run.scalars.push_back(element(*(*session)->getOutput(output)));
  }
  for (const plan::State *state : distinctStates(plan))
    run.states.emplace(state->name(), *(*session)->getState(state->name()));
  return run;
}

static void expectSameBits(const Trained &expected, const Trained &actual) {
  ASSERT_EQ(expected.scalars.size(), size_t(2 * kSteps));
  EXPECT_NE(expected.scalars.front(), expected.scalars[2]) << "nothing was learned";
  EXPECT_EQ(expected.scalars, actual.scalars);
  ASSERT_EQ(expected.states.size(), actual.states.size());
  for (const auto &[name, tensor] : expected.states) {
    ASSERT_TRUE(actual.states.count(name)) << name;
    EXPECT_TRUE(tensor.bytes == actual.states.at(name).bytes)
        << name << ": relative difference " << relativeDifference(tensor, actual.states.at(name));
  }
}

TEST_P(RecomputeBits, EqualNothingRecomputed) {
  auto [model, text] = GetParam();
  CompileOptions options = searchedStrategy(text);
  auto none = lowerModel(model, options);
  ASSERT_TRUE(none);
  Trained expected = train(*none);
  EXPECT_EQ(expected.peak, uint64_t(arenaOf(*none)));
  double flops = flopsOf(*none);
  int64_t least = arenaOf(*none);
  auto check = [&](Recompute mode, int64_t limit) -> std::optional<plan::Plan> {
    SCOPED_TRACE(wordOf(mode) + " of " + text + ", limit " + std::to_string(limit));
    options.recompute = mode;
    options.memoryLimit = limit;
    auto plan = compileModel(model, options);
    if (!plan)
      return std::nullopt;
    auto problem = findPlanError(*plan);
    EXPECT_FALSE(problem) << problem->message;
    Trained run = train(*plan);
    EXPECT_EQ(run.peak, uint64_t(arenaOf(*plan)));
    expectSameBits(expected, run);
    return plan;
  };
  for (Recompute mode : {Recompute::Selective, Recompute::Full}) {
    auto plan = check(mode, 0);
    ASSERT_TRUE(plan);
    EXPECT_GT(flopsOf(*plan), flops) << wordOf(mode) << " recomputed nothing";
    least = std::min(least, arenaOf(*plan));
  }
  EXPECT_LT(least, arenaOf(*none));
  // Halfway, so that a part is recomputed.
  int64_t limit = (least + arenaOf(*none)) / 2;
  auto plan = check(Recompute::Auto, limit);
  ASSERT_TRUE(plan);
  EXPECT_LE(arenaOf(*plan), limit);
  EXPECT_GT(flopsOf(*plan), flops);
}

static std::string nameOf(const testing::TestParamInfo<RecomputeBits::ParamType> &info) {
  std::string name = std::get<0>(info.param).name;
  for (char c : std::string("_") + std::get<1>(info.param))
    if (c != '=')
      name += llvm::isAlnum(c) ? c : '_';
  return name;
}

static const char *kStrategies[] = {
    "",
    "m=2",
    "dp=2",
    "dp=2 m=2",
    "tp=2",
    "tp=2 sp",
    "tp=2 sp m=2",
    "dp=2 zero=3",
    "dp=2 zero=3 m=2",
    "dp=2,tp=2 zero=2 sp m=2",
    "pp=2 m=4",
    "pp=2",
    "pp=2 m=4 schedule=gpipe",
    "pp=2 m=4 schedule=interleaved chunks=2",
    "pp=2,dp=2 m=4 zero=3",
    "pp=2 m=4 schedule=zb-h1",
    "pp=2 m=4 schedule=zb-v",
    "pp=2,dp=2,tp=2 m=2 zero=3 sp schedule=zb-v",
};

INSTANTIATE_TEST_SUITE_P(Models, RecomputeBits,
                         testing::Combine(testing::Values(kGpt2, kLlama),
                                          testing::ValuesIn(kStrategies)),
                         nameOf);

} // namespace recomputeBitsTest
