//===- LayerOverlapTest.cpp - Tests of Megatron-LM's overlap --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/LayerOverlap.h"

#include "test/lib/plans/PlanBuilder.h"

#include <gtest/gtest.h>

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// The backward pass of a layer whose columns are split, with sequence parallelism: the input is
/// gathered, its gradient computed and summed, and the weight's gradient computed.
class LayerOverlapTest : public ::testing::Test {
protected:
  void build(plan::Task::Kind kind) {
    builder.axis("tp", 2);
    builder.task("task", kind);
    uint32_t part = builder.buffer(DType::F32, {2, 4}), input = builder.buffer(DType::F32, {4, 4}),
             weight = builder.buffer(DType::F32, {4, 8}), dy = builder.buffer(DType::F32, {4, 8}),
             dx = builder.buffer(DType::F32, {4, 4}), dPart = builder.buffer(DType::F32, {2, 4}),
             dWeight = builder.buffer(DType::F32, {4, 8});
    builder.collective(plan::Collective::ALL_GATHER, {"tp"}, part, input);
    builder.kernel("einsum", {dy, weight}, {dx});
    builder.collective(plan::Collective::REDUCE_SCATTER, {"tp"}, dx, dPart);
    builder.kernel("einsum", {builder.view(input, DType::F32, {4, 1, 4}), dy}, {dWeight});
    builder.kernel("gelu", {dPart}, {dPart});
    // The gradient of a layer whose rows are split is gathered, and the next product needs it.
    builder.collective(plan::Collective::ALL_GATHER, {"tp"}, dPart, dx);
    builder.kernel("einsum", {builder.view(dx, DType::F32, {4, 1, 4}), weight}, {dy});
    // Nor does what is no product hide it.
    builder.collective(plan::Collective::ALL_GATHER, {"tp"}, dPart, dx);
    builder.kernel("gelu", {dWeight}, {dWeight});
    builder.collective(plan::Collective::ALL_GATHER, {"tp"}, dPart, dx);
    benchmarks::overlapWithinLayers(builder.plan);
  }

  /// Each instruction as a word: a kernel's name, "start" or "collective", and the number that a
  /// wait is for.
  std::vector<std::string> words() {
    std::vector<std::string> result;
    for (const plan::Instruction &each : builder.program().tasks(0).instructions())
      result.push_back(each.has_kernel() ? each.kernel().kernel()
                       : each.has_wait() ? "wait " + std::to_string(each.wait().instruction())
                       : each.collective().async() ? "start"
                                                   : "collective");
    return result;
  }

  PlanBuilder builder;
};

} // namespace

TEST_F(LayerOverlapTest, OneProductHidesACollective) {
  build(plan::Task::BACKWARD);
  EXPECT_EQ(words(), (std::vector<std::string>{"start", "einsum", "wait 0", "start", "einsum",
                                               "wait 3", "gelu", "collective", "einsum",
                                               "collective", "gelu", "collective"}));
}

TEST_F(LayerOverlapTest, ForwardPassesWaitForAll) {
  build(plan::Task::FORWARD);
  EXPECT_EQ(words(),
            (std::vector<std::string>{"collective", "einsum", "collective", "einsum", "gelu",
                                      "collective", "einsum", "collective", "gelu", "collective"}));
}
