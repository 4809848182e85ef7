//===- FabricEquivalenceTest.cpp - Equivalence of fabrics -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A plan gives the same bits on the local fabric and on one that delays its devices and delivers
// messages of different channels in any order. Where that one fails, the step ends with its error
// on every device.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "test/equivalence/Training.h"
#include "test/lib/fabrics/TestFabric.h"
#include "test/lib/fabrics/ThreadMessages.h"
#include "test/lib/plans/TrainStep.h"

#include <cstring>
#include <gtest/gtest.h>

namespace fabricEquivalenceTest {

using namespace dtc;
using namespace dtc::test;

namespace {

const char *const kConfig = R"({"model_type": "gpt2", "vocab_size": 40, "n_positions": 8,
                                "n_embd": 16, "n_layer": 8, "n_head": 4, "embd_pdrop": 0.1,
                                "attn_pdrop": 0.1, "resid_pdrop": 0.1})";

const char *const kStrategies[] = {
    "dp=2,tp=2 zero=2",
    "fsdp=4 m=2 zero=3",
    "pp=4 m=8",
    "pp=2 m=4 schedule=interleaved chunks=4",
    "pp=4 m=4 schedule=interleaved chunks=2 recompute=full",
    "pp=4 m=6 schedule=zb-h1",
    "pp=4 m=8 schedule=zb-v",
    "dp=2,tp=2,pp=2 m=4 sp zero=1 schedule=zb-v",
    "dp=2,pp=3 m=4 schedule=gpipe zero=2",
    "dp=2,cp=4 zero=1 context_exchange=ring",
    "cp=2,tp=2 sp context_exchange=all-gather",
};

std::shared_ptr<const plan::Plan> compile(const char *text) {
  Compiler compiler;
  std::string config = kConfig;
  // A ring has no masks over all keys.
  if (std::string(text).find("ring") != std::string::npos)
    config.replace(config.find("\"attn_pdrop\": 0.1"), 17, "\"attn_pdrop\": 0.0");
  auto plan = compiler.importAndCompile(config, 16, 8, strategy(text));
  EXPECT_TRUE(plan) << compiler.diagnostics();
  return plan;
}

/// The bytes of losses, norms and states of three steps, or the error.
Expected<std::string> train(const std::shared_ptr<const plan::Plan> &plan,
                            const runtime::OpenFabric &fabric, double stallTimeout = 60) {
  auto session = runtime::Session::create(plan, runtime::createCpuBackend(),
                                          {.openFabric = fabric, .stallTimeout = stallTimeout});
  if (!session)
    return session.error();
  if (auto error = (*session)->initializeStates(3))
    return *error;
  std::string bytes;
  auto append = [&](const HostTensor &tensor) {
    bytes.append(reinterpret_cast<const char *>(tensor.bytes.data()), tensor.bytes.size());
  };
  for (int step = 1; step <= 3; ++step) {
    if (auto error = setRandomInputs(**session, static_cast<uint64_t>(step)))
      return *error;
    if (auto error = trainStep(**session, 1e-2))
      return *error;
    for (const char *name : {"loss", "grad_norm"})
      append(*(*session)->getOutput(name));
  }
  for (const plan::State *state : distinctStates(*plan))
    append(*(*session)->getState(state->name()));
  return bytes;
}

/// The losses and norms that they begin with.
std::vector<float> numbersOf(const std::string &bytes) {
  std::vector<float> numbers(6);
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

class FabricEquivalence : public testing::TestWithParam<const char *> {};

} // namespace

TEST_P(FabricEquivalence, GivesTheSameBits) {
  auto plan = compile(GetParam());
  ASSERT_TRUE(plan);
  auto local = train(plan, nullptr);
  ASSERT_TRUE(local) << local.error().message;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    auto other = train(plan, runtime::testing::testFabric({.seed = seed}));
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_TRUE(*other == *local) << "seed " << seed;
  }
}

/// A process for each device, then three that have them together and add up their own first.
TEST_P(FabricEquivalence, InSeveralProcesses) {
  auto plan = compile(GetParam());
  ASSERT_TRUE(plan);
  auto local = train(plan, nullptr);
  ASSERT_TRUE(local) << local.error().message;
  auto apart = train(plan, runtime::testing::threadProcessesFabric(16));
  ASSERT_TRUE(apart) << apart.error().message;
  EXPECT_TRUE(*apart == *local);
  auto onHost = train(
      plan, runtime::testing::threadProcessesFabric(16, {.sharing = runtime::HostSharing::Memory}));
  ASSERT_TRUE(onHost) << onHost.error().message;
  EXPECT_TRUE(*onHost == *local);
  auto shared = train(plan, runtime::testing::threadProcessesFabric(3));
  ASSERT_TRUE(shared) << shared.error().message;
  std::vector<float> expected = numbersOf(*local), found = numbersOf(*shared);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-4 * std::abs(expected[i]));
  auto again = train(plan, runtime::testing::threadProcessesFabric(3, {.seed = 7}));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(*again == *shared);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, FabricEquivalence, testing::ValuesIn(kStrategies),
                         [](const auto &info) { return strategyName(info.param); });

TEST(FabricFailure, EndsTheStepOfAllDevices) {
  auto plan = compile("dp=2,pp=2 m=4 schedule=zb-h1");
  ASSERT_TRUE(plan);
  int failures = 0;
  for (uint64_t at = 0; at < 200; at += 9) {
    auto result = train(plan, runtime::testing::testFabric({.seed = at + 1, .failAt = at}));
    if (result)
      break; // a run has fewer
    ++failures;
    EXPECT_NE(result.error().message.find("the network of the test failed"), std::string::npos)
        << result.error().message;
  }
  EXPECT_GT(failures, 10);
}

} // namespace fabricEquivalenceTest
