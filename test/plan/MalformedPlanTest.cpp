//===- MalformedPlanTest.cpp - Tests of malformed plans -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each plan is short and does nothing that is wrong in itself; what it costs to follow it makes it
// an error.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "plan/PlanVerifier.h"
#include "plan/WorkLimit.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"

#include <gtest/gtest.h>

namespace malformedPlanTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

constexpr const char *kTooLong = "more than are followed to prove";

/// Two programs. The first sends, and the second receives.
struct TwoPrograms : PlanBuilder {
  explicit TwoPrograms(int64_t microbatches = 1) {
    pipelineAxis("pp", 2);
    axis("dp", 1);
    if (microbatches > 1)
      axis("micro", microbatches, /*temporal=*/true);
  }
  /// A channel for `count` tensors without elements.
  void channel(uint32_t number, size_t count) {
    inProgram(0);
    transfer(plan::Transfer::SEND, 1, number,
             std::vector<uint32_t>(count, buffer(DType::F32, {0})));
    inProgram(1);
    transfer(plan::Transfer::RECEIVE, 0, number,
             std::vector<uint32_t>(count, buffer(DType::F32, {0})));
  }
};

} // namespace

TEST(MalformedPlan, OperandsWithoutBytesAreFollowedToo) {
  PlanBuilder builder;
  uint32_t empty = builder.buffer(DType::F32, {0}), other = builder.buffer(DType::F32, {0});
  for (uint32_t buffer : {empty, other}) {
    builder.task("t");
    builder.kernel("concat", std::vector<uint32_t>(20000, buffer), {buffer});
  }
  for (uint32_t i = 0; i < 8000; ++i)
    builder.schedule(i % 2);
  EXPECT_LT(builder.plan.ByteSizeLong(), 100000u);
  EXPECT_ERROR(findPlanError(*builder.build()), kTooLong);
}

TEST(MalformedPlan, TensorsOfTransfersBesideCollectivesAreFollowed) {
  // No task runs; instructions that overlap with the collective are looked at all the same.
  TwoPrograms builder;
  builder.channel(0, 20000);
  builder.inProgram(0);
  uint32_t tensor = builder.buffer(DType::F32, {4});
  for (int t = 0; t < 8000; ++t) {
    builder.task("t");
    builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, tensor, tensor);
    uint32_t started = builder.async();
    builder.startTransfer(0);
    builder.wait(started);
  }
  EXPECT_LT(builder.plan.ByteSizeLong(), 800000u);
  EXPECT_ERROR(findPlanError(*builder.build()), kTooLong);
}

TEST(MalformedPlan, StartedTransfersCountForWhatIsRememberedOfThem) {
  TwoPrograms builder(int64_t{1} << 16);
  constexpr uint32_t channels = 128;
  for (uint32_t c = 0; c < channels; ++c)
    builder.channel(c, 1);
  for (int program : {0, 1}) {
    builder.inProgram(program);
    builder.task("t");
    for (uint32_t c = 0; c < channels; ++c) {
      builder.startTransfer(c);
      builder.finishTransfer(c);
    }
    for (uint32_t m = 0; m < 1 << 16; ++m)
      builder.schedule(0, m);
  }
  EXPECT_LT(builder.plan.ByteSizeLong(), 2000000u);
  EXPECT_ERROR(findPlanError(*builder.build()), kTooLong);
}

TEST(MalformedPlan, ProgramsHaveStepsOfTheirOwn) {
  // Each program takes less than one may, both of them more.
  constexpr int64_t tensors = 20000, tasks = 5000;
  static_assert(tensors * tasks < kMaxFollowedOperands &&
                2 * tensors * tasks > kMaxFollowedOperands);
  TwoPrograms builder;
  builder.channel(0, tensors);
  for (int program : {0, 1}) {
    builder.inProgram(program);
    uint32_t tensor = builder.buffer(DType::F32, {4});
    for (int64_t t = 0; t < tasks; ++t) {
      builder.task("t");
      builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, tensor, tensor);
      uint32_t started = builder.async();
      builder.startTransfer(0);
      builder.wait(started);
    }
  }
  EXPECT_OK(findPlanError(*builder.build()));
}

TEST(MalformedPlan, AllProgramsTogetherHaveALimit) {
  WorkLimit budget(/*ofProgram=*/100, /*ofAll=*/250);
  EXPECT_FALSE(budget.spend(100));
  EXPECT_ERROR(budget.spend(1), "the schedule runs more than 100 operands, more than are followed");
  WorkLimit other(100, 250);
  for (int program = 0; program < 2; ++program) {
    other.nextProgram();
    EXPECT_FALSE(other.spend(60));
    EXPECT_FALSE(other.spend(40));
  }
  other.nextProgram();
  EXPECT_FALSE(other.spend(50));
  EXPECT_ERROR(other.spend(1),
               "the schedules of all programs together run more than 250 operands, more than");
}

TEST(MalformedPlan, RepetitionsThatChangeNothingAreCheap) {
  PlanBuilder builder;
  builder.axis("micro", int64_t{1} << 20, /*temporal=*/true);
  uint32_t a = builder.buffer(DType::F32, {8});
  builder.task("t");
  for (int i = 0; i < 1000; ++i)
    builder.kernel("fill", {}, {a});
  for (uint32_t m = 0; m < 1 << 20; ++m)
    builder.schedule(0, m);
  EXPECT_OK(findPlanError(*builder.build()));
}

TEST(MalformedPlan, AxesOfOneDevice) {
  PlanBuilder builder;
  for (int i = 0; i < kMaxMeshAxes; ++i)
    builder.axis("a" + std::to_string(i), 1);
  EXPECT_OK(findPlanError(*builder.build()));
  builder.axis("last", 1);
  EXPECT_ERROR(findPlanError(*builder.build()), "the mesh has 65 axes; at most 64 are allowed");
}

namespace {

/// A task that writes two neighbouring buffers, and a third one that nothing writes and that lies
/// in their bytes, in [begin, end) floats of [0, 32).
std::string errorOfRead(int64_t begin, int64_t end, bool writeSecond = true) {
  PlanBuilder builder;
  uint32_t first = builder.buffer(DType::F32, {16}), second = builder.buffer(DType::F32, {16});
  uint32_t alias = builder.buffer(DType::F32, {end - begin});
  uint32_t sum = builder.buffer(DType::F32, {});
  builder.program()
      .mutable_buffers(static_cast<int>(alias))
      ->set_offset(static_cast<uint64_t>(4 * begin));
  builder.schedule(builder.task("t"));
  builder.kernel("fill", {}, {first});
  if (writeSecond)
    builder.kernel("fill", {}, {second});
  builder.kernel("reduce", {alias}, {sum});
  return messageOf(findPlanError(*builder.build()));
}

} // namespace

TEST(MalformedPlan, WhatNothingWritesIsNotRead) {
  // Nor is a part of another value, or two of them side by side.
  for (int64_t end : {32, 16, 8})
    EXPECT_TRUE(contains(errorOfRead(0, end), "is read before it is written")) << end;
  // A byte that nobody wrote, at the end, or all of them.
  EXPECT_TRUE(contains(errorOfRead(0, 17, /*writeSecond=*/false),
                       "input 0 (buffer 2, f32[17]) is read before it is written"));
  EXPECT_TRUE(contains(errorOfRead(16, 32, /*writeSecond=*/false), "read before it is written"));
  EXPECT_TRUE(contains(errorOfRead(0, 33), "read before it is written"));
  EXPECT_TRUE(contains(errorOfRead(32, 48), "read before it is written"));
  // Parts of two values are no value.
  EXPECT_TRUE(contains(errorOfRead(0, 20), "is read before it is written"));
}

TEST(MalformedPlan, WhatNothingWritesIsNotReadInTheGapBehindAValue) {
  // The first buffer ends 52 bytes before the second one, and nobody writes those.
  PlanBuilder builder;
  uint32_t first = builder.buffer(DType::F32, {3}), second = builder.buffer(DType::F32, {3});
  uint32_t alias = builder.buffer(DType::F32, {19}), sum = builder.buffer(DType::F32, {});
  builder.program().mutable_buffers(static_cast<int>(alias))->set_offset(0);
  builder.schedule(builder.task("t"));
  builder.kernel("fill", {}, {first});
  builder.kernel("fill", {}, {second});
  builder.kernel("reduce", {alias}, {sum});
  EXPECT_ERROR(findPlanError(*builder.build()),
               "input 0 (buffer 2, f32[19]) is read before it is written");
}

TEST(MalformedPlan, WhatNothingWritesHasNoValueOfAnotherStepOrMicrobatch) {
  // In the first execution nothing is there yet, although the second one would find a value.
  PlanBuilder builder;
  builder.axis("micro", 2, /*temporal=*/true);
  uint32_t written = builder.buffer(DType::F32, {16});
  uint32_t alias = builder.buffer(DType::F32, {16}), sum = builder.buffer(DType::F32, {});
  builder.program().mutable_buffers(static_cast<int>(alias))->set_offset(0);
  uint32_t task = builder.task("t");
  builder.kernel("reduce", {alias}, {sum});
  builder.kernel("fill", {}, {written});
  builder.schedule(task, 0);
  builder.schedule(task, 1);
  EXPECT_ERROR(findPlanError(*builder.build()), "microbatch 0: input 0 (buffer 1, f32[16]) is read "
                                                "before it is written");
  // Nor is it the value that was written there just before, with slots or without.
  builder.program().mutable_tasks(0)->mutable_instructions()->SwapElements(0, 1);
  for (uint32_t slots : {0, 1}) {
    for (uint32_t buffer : {written, alias})
      builder.program().mutable_buffers(static_cast<int>(buffer))->set_slots(slots);
    EXPECT_ERROR(findPlanError(*builder.build()), "microbatch 0: input 0 (buffer 1, f32[16]");
    EXPECT_ERROR(findPlanError(*builder.build()), "is read before it is written");
  }
}

TEST(MalformedPlan, CopiesOfMicrobatchesAreToldApart) {
  PlanBuilder builder;
  builder.axis("micro", 2, /*temporal=*/true);
  uint32_t written = builder.slotted(DType::F32, {16}, 1), sum = builder.buffer(DType::F32, {});
  uint32_t task = builder.task("t");
  builder.kernel("fill", {}, {written});
  builder.kernel("reduce", {written}, {sum});
  builder.schedule(task, 0);
  builder.schedule(task, 1);
  EXPECT_OK(findPlanError(*builder.build()));
  uint32_t late = builder.task("late");
  builder.kernel("reduce", {written}, {sum});
  builder.schedule(late, 0);
  builder.schedule(late, 1);
  EXPECT_ERROR(findPlanError(*builder.build()),
               "should hold the value of microbatch 0, but holds that "
               "of microbatch 1");
}

} // namespace malformedPlanTest
