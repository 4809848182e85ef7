//===- OverlapTest.cpp - Tests of overlapped collectives ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"
#include "test/lib/plans/TrainStep.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace overlapTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

static std::unique_ptr<Session> makeSession(std::shared_ptr<const plan::Plan> plan,
                                            const SessionOptions &options = {}) {
  auto session = Session::create(std::move(plan), createFakeBackend(), options);
  EXPECT_OK(session);
  return std::move(*session);
}

/// The state and all outputs after some steps.
static std::vector<std::vector<std::byte>> resultsOf(Session &session) {
  EXPECT_OK(session.initializeStates(3));
  for (int step = 1; step <= 4; ++step)
    EXPECT_OK(trainStep(session, 0));
  auto w = session.getState("w");
  EXPECT_OK(w);
  std::vector<std::vector<std::byte>> results{w->bytes};
  for (const plan::Output &output : session.plan().programs(0).outputs()) {
    auto value = session.getOutput(output.name());
    EXPECT_OK(value);
    results.push_back(value->bytes);
  }
  return results;
}

TEST(Overlap, AsyncCollectivesGiveTheBitsOfSynchronousOnes) {
  for (auto [a, b] : {std::pair<int64_t, int64_t>{1, 1}, {2, 1}, {2, 2}, {4, 2}, {2, 8}, {4, 4}}) {
    auto expected = resultsOf(*makeSession(overlapPlan(false, a, b)));
    auto session = makeSession(overlapPlan(true, a, b));
    for (int repeat = 0; repeat < 3; ++repeat)
      EXPECT_EQ(resultsOf(*session), expected) << a << " x " << b;
  }
}

TEST(Overlap, ABucketIsAsGoodAsSingleCollectives) {
  auto single = overlapPlan(false);
  for (plan::Task &task : *single->mutable_programs(0)->mutable_tasks()) {
    plan::Task split;
    for (const plan::Instruction &instruction : task.instructions()) {
      plan::Instruction one = instruction;
      if (!instruction.has_collective()) {
        *split.add_instructions() = one;
        continue;
      }
      for (const plan::CollectiveTensor &tensor : instruction.collective().tensors()) {
        one.mutable_collective()->clear_tensors();
        *one.mutable_collective()->add_tensors() = tensor;
        *split.add_instructions() = one;
      }
    }
    EXPECT_GT(split.instructions_size(), task.instructions_size());
    task = split;
  }
  auto buckets = makeSession(overlapPlan(true)), alone = makeSession(single);
  EXPECT_EQ(resultsOf(*buckets), resultsOf(*alone));
  EXPECT_EQ(buckets->communicatorBytes(), alone->communicatorBytes());
  // Eight tasks on four devices, an f32[8,4] each.
  EXPECT_EQ(buckets->communicatorBytes().of(CollectiveKind::Permute), 8u * 4 * 128);
}

TEST(Overlap, PermuteExchangesTheOrderOfAxes) {
  // A tensor split as [a, b] becomes one split as [b, a]: as whole tensors they are equal.
  PlanBuilder builder;
  builder.axis("a", 2);
  builder.axis("b", 3);
  plan::State &state = builder.state("s", DType::F32, {12}, {{"a", "b"}});
  state.mutable_init()->set_kind(plan::Init::NORMAL);
  state.mutable_init()->set_scale(1);
  uint32_t moved = builder.buffer(DType::F32, {2});
  uint32_t from = state.buffer();
  builder.task("t");
  builder.permute({"a", "b"}, {"b", "a"}, from, moved);
  builder.schedule(0);
  builder.output("moved", DType::F32, {12}, {{"b", "a"}}, moved);
  auto session = makeSession(builder.build());
  ASSERT_OK(session->initializeStates(1));
  ASSERT_OK(trainStep(*session, 0));
  auto before = session->getState("s"), after = session->getOutput("moved");
  ASSERT_OK(before);
  ASSERT_OK(after);
  EXPECT_EQ(before->bytes, after->bytes);
}

TEST(Overlap, AFailingKernelEndsTheCollectivesThatRun) {
  // One device never comes to its second collective; the others wait for it on both threads.
  PlanBuilder builder;
  builder.axis("a", 16);
  uint32_t x = builder.state("x", DType::F32, {4}, {{}}).buffer();
  uint32_t y = builder.state("y", DType::F32, {4}, {{}}).buffer();
  uint32_t z = builder.state("z", DType::F32, {4}, {{}}).buffer();
  builder.task("t");
  builder.collective(plan::Collective::ALL_REDUCE, {"a"}, x, x);
  uint32_t first = builder.async();
  builder.kernel("test_throw", {}, {});
  builder.collective(plan::Collective::ALL_REDUCE, {"a"}, y, y);
  uint32_t second = builder.async();
  builder.collective(plan::Collective::ALL_REDUCE, {"a"}, z, z);
  builder.wait(second);
  builder.wait(first);
  builder.schedule(0);
  for (int repeat = 0; repeat < 10; ++repeat) {
    auto session = makeSession(builder.build());
    EXPECT_ERROR(trainStep(*session, 0), "device 15: the kernel failed");
    EXPECT_ERROR(trainStep(*session, 0), "device 15: the kernel failed");
  }
}

TEST(Overlap, MeasuresWhatIsHidden) {
  auto session = makeSession(overlapPlan(true), {.threadsPerDevice = 1, .profile = true});
  resultsOf(*session);
  MeasuredCollectives time = session->measuredCollectives();
  EXPECT_GT(time.seconds, 0);
  EXPECT_GT(time.exposedSeconds, 0);
  EXPECT_GE(time.hiddenShare(), 0);
  EXPECT_LT(time.hiddenShare(), 1);
  double seconds = 0;
  uint64_t calls = 0;
  for (const ProfileEntry &entry : session->profile()) {
    EXPECT_NE(entry.name, "collective");
    EXPECT_GT(entry.calls, 0u);
    for (CollectiveKind kind : kAllCollectiveKinds)
      if (entry.name == name(kind)) {
        seconds += entry.seconds;
        calls += entry.calls;
      }
  }
  EXPECT_NEAR(seconds, time.seconds, 1e-9 * time.seconds); // added in another order
  EXPECT_EQ(calls, 5u * 4 * 8); // five collectives on four devices, in two tasks, four steps

  auto inOrder = makeSession(overlapPlan(false), {.threadsPerDevice = 1, .profile = true});
  resultsOf(*inOrder);
  EXPECT_LT(inOrder->measuredCollectives().hiddenShare(), 0.1);
  auto unmeasured = makeSession(overlapPlan(true));
  resultsOf(*unmeasured);
  EXPECT_EQ(unmeasured->measuredCollectives().seconds, 0);
}

TEST(Overlap, ACollectiveThatEndsBeforeItsWaitIsHidden) {
  auto timeOf = [](bool async) {
    PlanBuilder builder;
    builder.axis("a", 2);
    uint32_t x = builder.state("x", DType::F32, {1 << 17}, {{}}).buffer();
    builder.task("t");
    builder.collective(plan::Collective::ALL_REDUCE, {"a"}, x, x);
    uint32_t started = async ? builder.async() : 0;
    builder.kernel("test_sleep", {}, {});
    if (async)
      builder.wait(started);
    builder.schedule(0);
    auto session = makeSession(builder.build(), {.threadsPerDevice = 1, .profile = true});
    EXPECT_OK(trainStep(*session, 0));
    return session->measuredCollectives();
  };
  // On a busy machine the pauses may fall where they hurt, but not every time.
  double best = 0;
  for (int attempt = 0; attempt < 40 && best <= 0.5; ++attempt)
    best = std::max(best, timeOf(true).hiddenShare());
  EXPECT_GT(best, 0.5);
  EXPECT_LT(timeOf(false).hiddenShare(), 0.1);
}

TEST(Overlap, HiddenShare) {
  EXPECT_EQ((MeasuredCollectives{0, 0}.hiddenShare()), 0);
  EXPECT_EQ((MeasuredCollectives{2, 0.5}.hiddenShare()), 0.75);
  EXPECT_EQ((MeasuredCollectives{2, 3}.hiddenShare()), 0);
}

} // namespace overlapTest
