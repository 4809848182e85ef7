//===- ScatteredTransfersTest.cpp - Tests of messages between stages ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/ScatteredTransfers.h"

#include "plan/PlanTypes.h"
#include "test/lib/plans/PlanBuilder.h"

#include <gtest/gtest.h>

using namespace dtc;
using namespace dtc::runtime::testing;

/// A stage receives a tensor, works on it and sends it on.
static PlanBuilder stageWith(const Shape &shape) {
  PlanBuilder builder;
  builder.axis("tp", 4);
  builder.task("forward", plan::Task::FORWARD);
  uint32_t x = builder.buffer(DType::BF16, shape), y = builder.buffer(DType::BF16, shape);
  builder.finishTransfer(builder.transfer(plan::Transfer::RECEIVE, 0, 0, {x}));
  builder.kernel("gelu", {x}, {y});
  uint32_t send = builder.transfer(plan::Transfer::SEND, 0, 1, {y});
  builder.startTransfer(send);
  builder.finishTransfer(send);
  return builder;
}

TEST(ScatteredTransfersTest, PartsAreSentAndGathered) {
  PlanBuilder builder = stageWith({2, 6, 2});
  benchmarks::scatterTransfers(builder.plan, "tp", 4);
  const plan::Program &program = builder.program();
  for (const plan::Transfer &transfer : program.transfers())
    EXPECT_EQ(typeOf(program.buffers(static_cast<int>(transfer.buffers(0)))).shape, Shape{6});
  const plan::Task &task = program.tasks(0);
  ASSERT_EQ(task.instructions_size(), 5);
  const plan::Collective &gather = task.instructions(1).collective();
  EXPECT_EQ(gather.kind(), plan::Collective::ALL_GATHER);
  EXPECT_EQ(gather.axes(0), "tp");
  EXPECT_EQ(gather.tensors(0).input(), program.transfers(0).buffers(0));
  EXPECT_EQ(gather.tensors(0).output(), task.instructions(2).kernel().inputs(0));
  // The other device gathers the parts.
  EXPECT_TRUE(task.instructions(4).has_finish_transfer());
}

TEST(ScatteredTransfersTest, WhatCannotBeDividedStaysWhole) {
  PlanBuilder builder = stageWith({3, 5});
  benchmarks::scatterTransfers(builder.plan, "tp", 4);
  EXPECT_EQ(builder.program().buffers_size(), 2);
  EXPECT_EQ(builder.program().tasks(0).instructions_size(), 4);
}
