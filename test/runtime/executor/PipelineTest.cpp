//===- PipelineTest.cpp - Plans of several programs -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"

#include "plan/PlanTypes.h"
#include "support/Memory.h"
#include "test/lib/plans/ChainPlan.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"
#include "test/lib/plans/TrainStep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

namespace pipelineTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

static std::unique_ptr<Session> makeSession(std::shared_ptr<const plan::Plan> plan,
                                            const SessionOptions &options = {},
                                            std::shared_ptr<const Backend> backend = nullptr) {
  if (!backend)
    backend = createFakeBackend();
  auto session = Session::create(std::move(plan), std::move(backend), options);
  EXPECT_OK(session);
  return std::move(*session);
}

/// Without the verifier: for plans that it would refuse.
static std::unique_ptr<Session> makeUnchecked(std::shared_ptr<const plan::Plan> plan) {
  auto backend = createFakeBackend();
  auto prepared = PreparedPlan::create(std::move(plan), *backend, 1);
  EXPECT_OK(prepared);
  auto session = Session::create(std::move(*prepared), backend);
  EXPECT_OK(session);
  return std::move(*session);
}

static std::vector<float> values(const Expected<HostTensor> &tensor) {
  EXPECT_OK(tensor);
  const float *first = tensor->as<float>();
  return {first, first + tensor->type.numElements()};
}

static HostTensor tensorOf(const std::vector<int64_t> &shape, const std::vector<float> &values) {
  HostTensor tensor(TensorType{DType::F32, shape});
  std::memcpy(tensor.bytes.data(), values.data(), values.size() * sizeof(float));
  return tensor;
}

TEST(Pipeline, TrainsAsOneDeviceWould) {
  constexpr float rate = 0.05f;
  for (int64_t dp : {1, 2, 3, 4}) {
    auto plan = pipelinePlan(dp);
    if (dp % 2 == 0)
      shareSlots(*plan->mutable_programs(0));
    auto session = makeSession(plan);
    std::vector<float> x(static_cast<size_t>(3 * dp * 4));
    std::iota(x.begin(), x.end(), -5.0f);
    for (float &value : x)
      value /= 20;
    ASSERT_OK(session->setInput("x", tensorOf({3 * dp, 4}, x)));
    ASSERT_OK(session->initializeStates(11));
    std::vector<float> w0 = values(session->getState("w0")), w1 = values(session->getState("w1"));
    EXPECT_NE(w0, w1);
    for (int step = 1; step <= 5; ++step) {
      double loss = 0, sum = 0;
      std::array<double, 4> g0{}, g1{};
      for (size_t i = 0; i < x.size(); ++i) {
        size_t c = i % 4;
        double y = static_cast<double>(x[i]) * w0[c] * w1[c];
        loss += y * y;
        g0[c] += 2 * y * w1[c] * x[i];
        g1[c] += 2 * y * w0[c] * x[i];
      }
      for (size_t c = 0; c < 4; ++c) {
        sum += g0[c] + g1[c];
        w0[c] -= static_cast<float>(rate * g0[c]);
        w1[c] -= static_cast<float>(rate * g1[c]);
      }
      ASSERT_OK(trainStep(*session, rate));
      EXPECT_NEAR(values(session->getOutput("loss"))[0], loss, 1e-5 * loss);
      EXPECT_NEAR(values(session->getOutput("grad_sum"))[0], sum, 1e-4);
      std::vector<float> found0 = values(session->getState("w0"));
      std::vector<float> found1 = values(session->getState("w1"));
      for (size_t c = 0; c < 4; ++c) {
        EXPECT_NEAR(found0[c], w0[c], 1e-5);
        EXPECT_NEAR(found1[c], w1[c], 1e-5);
      }
    }
  }
}

TEST(Pipeline, ManyStagesAndMicrobatches) {
  for (const ChainStrategy &strategy :
       {ChainStrategy{2, 1, 1, ""}, {2, 2, 5, ""}, {3, 1, 2, ""}, {3, 2, 8, ""}, {8, 2, 20, ""}}) {
    auto session = makeSession(chainPlan(strategy));
    for (int step = 1; step <= 20; ++step) {
      ASSERT_OK(trainStep(*session, 0));
      ASSERT_EQ(values(session->getOutput("sum")), chainSum(strategy))
          << strategy.stages << " x " << strategy.dp << ", step " << step;
    }
  }
}

TEST(Pipeline, StressWithKernelsOfRandomLength) {
  ChainStrategy strategy{3, 2, 1000, ""};
  auto session = makeSession(chainPlan(strategy), {}, createJitterBackend(createFakeBackend()));
  for (int step = 1; step <= 2; ++step) {
    ASSERT_OK(trainStep(*session, 0));
    EXPECT_EQ(values(session->getOutput("sum")), chainSum(strategy));
  }
}

TEST(Pipeline, SessionsComeAndGo) {
  ChainStrategy strategy{3, 2, 3, ""};
  auto backend = createJitterBackend(createFakeBackend());
  for (int repeat = 0; repeat < 50; ++repeat) {
    auto session = makeSession(chainPlan(strategy), {}, backend);
    ASSERT_OK(trainStep(*session, 0));
    ASSERT_EQ(values(session->getOutput("sum")), chainSum(strategy));
  }
}

TEST(Pipeline, AFailingKernelEndsTheStepOnAllDevices) {
  // The last device fails in its last microbatch; the others wait for its gradients.
  for (int repeat = 0; repeat < 20; ++repeat) {
    auto session = makeSession(chainPlan({3, 2, 6, "test_throw"}), {},
                               createJitterBackend(createFakeBackend()));
    EXPECT_ERROR(trainStep(*session, 0), "device 5: the kernel failed");
    EXPECT_ERROR(trainStep(*session, 0), "device 5: the kernel failed");
    EXPECT_ERROR(session->getOutput("sum"), "device 5: the kernel failed");
  }
}

TEST(Pipeline, MessagesOfTheWrongSize) {
  auto wrong = chainPlan({2, 1, 2, ""});
  plan::Transfer *receive = wrong->mutable_programs(1)->mutable_transfers(0);
  receive->add_buffers(receive->buffers(0));
  MaybeError error = trainStep(*makeUnchecked(wrong), 0);
  EXPECT_ERROR(error,
               "device 0 on channel 2, microbatch 0: the message has 1 tensors, its receiver "
               "expects 2");
}

TEST(Pipeline, TransfersThatDoNotComeInPairs) {
  auto twice = chainPlan({2, 1, 2, ""});
  plan::Program *program = twice->mutable_programs(0);
  *program->add_schedule() = program->schedule(program->schedule_size() - 1);
  program->set_loop_end(program->loop_end() + 1);
  EXPECT_ERROR(trainStep(*makeUnchecked(twice), 0),
               "send to device 1 on channel 2, microbatch 1: is finished, but was not started");
  auto open = chainPlan({2, 1, 2, ""});
  program = open->mutable_programs(0);
  program->mutable_schedule()->RemoveLast();
  program->set_loop_end(program->loop_end() - 1);
  EXPECT_ERROR(trainStep(*makeUnchecked(open), 0), "was started, but is not finished");
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

TEST(Pipeline, CollectivesSeeTheSlotsOfTheirMicrobatch) {
  for (bool async : {false, true}) {
    PlanBuilder builder;
    builder.axis("dp", 2);
    builder.axis("micro", 5, /*temporal=*/true);
    uint32_t position = builder.buffer(DType::I32, {2});
    uint32_t values = builder.slotted(DType::F32, {2}, 2);
    uint32_t reduced = builder.slotted(DType::F32, {2}, 3);
    uint32_t sum = builder.buffer(DType::F32, {2}, plan::Buffer::OUTPUT);
    uint32_t make = builder.task("make");
    builder.kernel("test_position", {}, {position});
    builder.kernel("convert", {position}, {values});
    uint32_t reduce = builder.task("reduce");
    builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, values, reduced);
    if (async)
      builder.wait(builder.async());
    uint32_t add = builder.task("add");
    (*builder.kernel("accumulate", {reduced}, {sum}).mutable_attributes())["axis"] =
        stringAttribute("micro");
    builder.output("sum", DType::F32, {2}, {{}}, sum);
    for (auto [task, microbatch] : std::vector<std::pair<uint32_t, uint32_t>>{{make, 0},
                                                                              {make, 1},
                                                                              {reduce, 0},
                                                                              {make, 2},
                                                                              {reduce, 1},
                                                                              {reduce, 2},
                                                                              {add, 0},
                                                                              {make, 3},
                                                                              {make, 4},
                                                                              {add, 1},
                                                                              {reduce, 3},
                                                                              {add, 2},
                                                                              {reduce, 4},
                                                                              {add, 3},
                                                                              {add, 4}})
      builder.schedule(task, microbatch);
    auto session = makeSession(builder.build());
    ASSERT_OK(trainStep(*session, 0));
    // The sum over both devices: 0 + 1, and twice the microbatch.
    EXPECT_EQ(pipelineTest::values(session->getOutput("sum")), (std::vector<float>{5, 20}));
  }
}

//===----------------------------------------------------------------------===//
// Values of several programs
//===----------------------------------------------------------------------===//

/// "tied" is in both programs; the first doubles its own, the second triples it. Both have the
/// input "x" and hand it on.
static std::shared_ptr<plan::Plan> tiedPlan() {
  PlanBuilder builder;
  builder.pipelineAxis("pp", 2);
  builder.axis("dp", 2);
  for (int p : {0, 1}) {
    builder.inProgram(p);
    std::string suffix = std::to_string(p);
    builder.state("own" + suffix, DType::F32, {4}, {{"dp"}});
    DimAxes sharding = {{"dp"}};
    plan::State &tied = builder.state("tied", DType::F32, {8}, sharding);
    tied.mutable_init()->set_kind(plan::Init::NORMAL);
    tied.mutable_init()->set_scale(1);
    uint32_t w = tied.buffer();
    uint32_t x = builder.input("x", DType::F32, {4}, {{"dp"}}).buffer();
    uint32_t copy = builder.buffer(DType::F32, builder.localShape({8}, sharding));
    builder.task("t");
    builder.kernel("copy", {w}, {copy});
    uint32_t doubled = p == 0 ? w : builder.buffer(DType::F32, builder.localShape({8}, sharding));
    builder.kernel("add", {copy, copy}, {doubled});
    if (p == 1)
      builder.kernel("add", {doubled, copy}, {w});
    builder.schedule(0);
    builder.output("tied" + suffix, DType::F32, {8}, sharding, copy);
    builder.output("x" + suffix, DType::F32, {4}, {{"dp"}}, x);
  }
  return builder.build();
}

TEST(Pipeline, AStateOfTwoPrograms) {
  auto session = makeSession(tiedPlan());
  ASSERT_OK(session->setInput("x", tensorOf({4}, {1, 2, 3, 4})));
  ASSERT_OK(session->initializeStates(3));
  ASSERT_OK(trainStep(*session, 0));
  std::vector<float> initial = values(session->getOutput("tied0"));
  EXPECT_EQ(values(session->getOutput("tied1")), initial);
  EXPECT_NE(initial, std::vector<float>(8));
  for (const char *name : {"x0", "x1"})
    EXPECT_EQ(values(session->getOutput(name)), (std::vector<float>{1, 2, 3, 4}));
  // It is read from the first program, which has doubled it.
  std::vector<float> doubled = initial;
  for (float &value : doubled)
    value *= 2;
  EXPECT_EQ(values(session->getState("tied")), doubled);

  std::vector<float> set = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_OK(session->setState("tied", tensorOf({8}, set)));
  ASSERT_OK(session->setState("own1", tensorOf({4}, {9, 9, 8, 8})));
  ASSERT_OK(trainStep(*session, 0));
  EXPECT_EQ(values(session->getOutput("tied0")), set);
  EXPECT_EQ(values(session->getOutput("tied1")), set);
  EXPECT_EQ(values(session->getState("own0")), std::vector<float>(4));
  EXPECT_EQ(values(session->getState("own1")), (std::vector<float>{9, 9, 8, 8}));
  EXPECT_ERROR(session->setState("own2", tensorOf({4}, {9, 9, 8, 8})), "no state \"own2\"");
  EXPECT_ERROR(session->getState("own2"), "no state \"own2\"");
}

TEST(Pipeline, ListsOfDistinctNames) {
  auto plan = tiedPlan();
  auto names = [](const auto &bindings) {
    std::vector<std::string> result;
    for (const auto *binding : bindings)
      result.push_back(binding->name());
    return result;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(distinctStates(*plan)), (Names{"own0", "tied", "own1"}));
  EXPECT_EQ(names(distinctInputs(*plan)), (Names{"x"}));
  EXPECT_EQ(names(distinctOutputs(*plan)), (Names{"tied0", "x0", "tied1", "x1"}));
  EXPECT_EQ(distinctStates(*plan)[1], &plan->programs(0).states(1));
}

//===----------------------------------------------------------------------===//
// Measurements
//===----------------------------------------------------------------------===//

TEST(Pipeline, MemoryIsThatOfEachProgram) {
  auto plan = chainPlan({2, 2, 2, ""});
  uint64_t available = memoryLimit().bytes;
  // Two devices with nearly half of the memory each, and two with little.
  plan->mutable_programs(1)->set_arena_bytes(available / 1024 * 504);
  EXPECT_EQ(makeSession(plan)->peakBytes(), plan->programs(1).arena_bytes());
  plan->mutable_programs(0)->set_arena_bytes(available / 64);
  EXPECT_ERROR(Session::create(plan, createFakeBackend()), "for 4 devices (at most ");
}

TEST(Pipeline, CountsBytesAndTime) {
  ChainStrategy strategy{3, 2, 4, ""};
  auto session = makeSession(chainPlan(strategy), {.threadsPerDevice = 1, .profile = true});
  ASSERT_OK(trainStep(*session, 0));
  ASSERT_OK(trainStep(*session, 0));
  // Three floats, both ways between three stages, twice.
  uint64_t messages = 2u * 2 * 2 * 4 * 2;
  EXPECT_EQ(session->communicatorBytes().transfers, messages * 12);
  EXPECT_EQ(session->communicatorBytes().total(), messages * 12);
  std::map<std::string, ProfileEntry> byName;
  for (const ProfileEntry &entry : session->profile())
    byName[entry.name] = entry;
  EXPECT_EQ(byName["send"].calls, messages);
  EXPECT_EQ(byName["receive"].calls, messages);
  TransferTime time = session->transferTime();
  EXPECT_EQ(time.calls, 2 * messages);
  EXPECT_GT(time.seconds, 0);
  EXPECT_NEAR(time.seconds, byName["send"].seconds + byName["receive"].seconds, 1e-9);
  EXPECT_GE(time.waitedSeconds, time.exposedSeconds);
  EXPECT_LE(time.exposedSeconds, time.seconds);
  EXPECT_EQ(session->measuredCollectives().seconds, 0);
  EXPECT_EQ(makeSession(chainPlan(strategy))->transferTime().calls, 0u);
}

TEST(Pipeline, ATransferThatEndsBeforeItsFinishIsHidden) {
  PlanBuilder builder;
  builder.pipelineAxis("pp", 2);
  for (uint32_t p : {0u, 1u}) {
    builder.inProgram(static_cast<int>(p));
    uint32_t x = builder.state("x" + std::to_string(p), DType::F32, {1 << 20}, {{}}).buffer();
    uint32_t transfer =
        builder.transfer(p == 0 ? plan::Transfer::SEND : plan::Transfer::RECEIVE, 1 - p, 0, {x});
    builder.task("t");
    builder.startTransfer(transfer);
    builder.kernel("test_sleep", {}, {});
    builder.finishTransfer(transfer);
    builder.schedule(0);
  }
  std::shared_ptr<const plan::Plan> plan = builder.build();
  // On a busy machine the pauses may fall where they hurt, but not every time.
  double best = 0;
  for (int attempt = 0; attempt < 40 && best <= 0.9; ++attempt) {
    auto session = makeSession(plan, {.threadsPerDevice = 1, .profile = true});
    ASSERT_OK(session->initializeStates(1));
    ASSERT_OK(trainStep(*session, 0));
    best = std::max(best, session->transferTime().hiddenShare());
  }
  EXPECT_GT(best, 0.9);
}

TEST(Pipeline, MeasuresItsBubble) {
  // Only the last of two stages takes time: half of the time of all devices is lost.
  // On a busy machine the first one may take time too, but not every time.
  double share = 0;
  for (int attempt = 0; attempt < 40 && (share <= 0.3 || share >= 0.6); ++attempt) {
    auto session = makeSession(chainPlan({2, 1, 4, "test_sleep"}));
    EXPECT_EQ(session->pipelineTime().bubbleShare(), 0);
    for (int step = 1; step <= 2; ++step)
      ASSERT_OK(trainStep(*session, 0));
    PipelineTime time = session->pipelineTime();
    EXPECT_GT(time.busySeconds, 2 * 4 * 0.05);
    EXPECT_GT(time.deviceSeconds, time.busySeconds);
    share = time.bubbleShare();
  }
  EXPECT_GT(share, 0.3);
  EXPECT_LT(share, 0.6);
  auto plain = makeSession(overlapPlan(true));
  ASSERT_OK(plain->initializeStates(1));
  ASSERT_OK(trainStep(*plain, 0));
  EXPECT_EQ(plain->pipelineTime().deviceSeconds, 0);
}

} // namespace pipelineTest
