//===- PaddedBindingsTest.cpp - Buffers of shards with padding ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanVerifier.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"

#include <cstdint>
#include <gtest/gtest.h>

namespace paddedBindingsTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

/// The error of a plan for a=2, b=3 with one tensor whose buffer has the shape `local`.
static std::string errorOf(const Shape &shape, const DimAxes &sharding, const Shape &local,
                           DType dtype = DType::F32) {
  PlanBuilder builder;
  builder.axis("a", 2);
  builder.axis("b", 3);
  plan::State &state = builder.state("w", dtype, shape, sharding);
  plan::Buffer *buffer = builder.program().mutable_buffers(0);
  buffer->mutable_shape()->Assign(local.begin(), local.end());
  builder.input("x", dtype, shape, sharding);
  builder.program().set_arena_bytes(1 << 16);
  EXPECT_EQ(state.buffer(), 0u);
  return messageOf(findPlanError(*builder.build()));
}

TEST(PaddedBindings, HaveRoomForTheSizeOverTheBlocksRoundedUp) {
  EXPECT_EQ(errorOf({5}, {{"a"}}, {3}), "");
  EXPECT_EQ(errorOf({5, 4}, {{"b"}, {"a"}}, {2, 2}), "");
  EXPECT_EQ(errorOf({1, 1}, {{"a"}, {"b"}}, {1, 1}), "");
  EXPECT_EQ(errorOf({0, 1}, {{"a"}, {"b"}}, {0, 1}), "");
  // Neither the order of the axes matters nor that the first one leaves parts of 4 or of 3.
  EXPECT_EQ(errorOf({7}, {{"a", "b"}}, {2}), "");
  EXPECT_EQ(errorOf({7}, {{"b", "a"}}, {2}), "");
}

TEST(PaddedBindings, RefuseOtherBuffers) {
  EXPECT_TRUE(
      contains(errorOf({5, 4}, {{"a"}, {}}, {2, 4}),
               "state \"w\": the shard is f32[3,4], but buffer 0 is f32[2,4]; the tensor is "
               "f32[5,4], and every shard has room"));
  EXPECT_TRUE(contains(errorOf({5, 4}, {{"a"}, {}}, {5, 4}), "the shard is f32[3,4], but buffer"));
  EXPECT_TRUE(contains(errorOf({7}, {{"a", "b"}}, {3}), "the shard is f32[2], but buffer 0"));
  EXPECT_TRUE(contains(errorOf({6}, {{"a"}}, {4}), "the shard is f32[3], but buffer 0 is f32[4]"));
}

TEST(PaddedBindings, RefusePaddingBeyondAllNumbers) {
  EXPECT_TRUE(contains(errorOf({INT64_MAX, 0}, {{"a"}, {}}, {1, 0}, DType::Bool),
                       "2 blocks of dimension 0 of bool[9223372036854775807,0] have more elements "
                       "with their padding than 64 bits count"));
}

} // namespace paddedBindingsTest
