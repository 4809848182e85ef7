//===- AttentionAgainTest.cpp - Tests of attention recomputed to its end --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/AttentionAgain.h"

#include "test/lib/plans/PlanBuilder.h"

#include <gtest/gtest.h>

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// A forward task that multiplies dropped-out probabilities with values, and a backward task.
class AttentionAgainTest : public ::testing::Test {
protected:
  AttentionAgainTest() {
    builder.task("forward", plan::Task::FORWARD);
    dropout(0, scores, probs);
    builder.kernel("einsum", {probs, values}, {context});
    dropout(1, context, dropped); // that of the layer's output, which no product follows
    builder.task("backward", plan::Task::BACKWARD);
  }
  void dropout(int64_t number, uint32_t input, uint32_t output) {
    (*builder.kernel("dropout", {input}, {output}).mutable_attributes())["op"].set_i(number);
  }
  uint32_t buffer() { return builder.buffer(DType::F32, {4, 4}); }
  const plan::Task &backward() { return builder.program().tasks(1); }

  PlanBuilder builder;
  uint32_t scores = buffer(), probs = buffer(), values = buffer(), context = buffer(),
           dropped = buffer(), again = buffer(), gradient = buffer();
};

} // namespace

TEST_F(AttentionAgainTest, TheProductFollowsTheRecomputedDropout) {
  builder.axis("tp", 2);
  builder.collective(plan::Collective::ALL_REDUCE, {"tp"}, gradient, gradient);
  uint32_t started = builder.async();
  dropout(0, scores, again);      // recomputed
  dropout(0, gradient, gradient); // the gradient's
  builder.wait(started);
  builder.kernel("einsum", {again, gradient}, {buffer()});
  benchmarks::computeAttentionToItsEnd(builder.plan);
  ASSERT_EQ(backward().instructions_size(), 6);
  const plan::KernelCall &product = backward().instructions(2).kernel();
  EXPECT_EQ(product.kernel(), "einsum");
  EXPECT_EQ(product.inputs(0), again);
  EXPECT_EQ(product.inputs(1), values);
  // A new buffer, which nothing reads.
  EXPECT_EQ(product.outputs(0), static_cast<uint32_t>(builder.program().buffers_size() - 1));
  EXPECT_EQ(backward().instructions(3).kernel().kernel(), "dropout");
  EXPECT_EQ(backward().instructions(4).wait().instruction(), 0u);
}

TEST_F(AttentionAgainTest, WithoutRecomputationNothingIsAdded) {
  dropout(1, gradient, gradient);
  dropout(0, gradient, gradient);
  benchmarks::computeAttentionToItsEnd(builder.plan);
  EXPECT_EQ(backward().instructions_size(), 2);
}
