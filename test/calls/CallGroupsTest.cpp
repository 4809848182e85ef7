//===- CallGroupsTest.cpp - Kernel calls that are computed together -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/CallGroups.h"
#include "test/lib/plans/PlanBuilder.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string_view>

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// A task with calls of made-up kernels. Those named "fused" are computed together, with slices and
/// broadcasts.
class CallGroupsTest : public ::testing::Test {
protected:
  CallGroupsTest() { builder.task("step"); }

  uint32_t value() { return builder.buffer(DType::F32, {16}); }
  uint32_t valueAt(uint32_t other) {
    uint32_t buffer = value();
    builder.program()
        .mutable_buffers(static_cast<int>(buffer))
        ->set_offset(builder.program().buffers(static_cast<int>(other)).offset());
    return buffer;
  }
  void call(const std::string &kernel, const std::vector<uint32_t> &inputs, uint32_t output) {
    plan::KernelCall &made = builder.kernel("sqrt", inputs, {output});
    made.set_kernel(kernel);
  }

  /// The calls of each group, and where it is computed.
  using Found = std::vector<std::pair<std::vector<int>, int>>;
  Found find() {
    const plan::Program &program = builder.program();
    FusionRules rules{[](const std::vector<std::string_view> &kernels) {
                        return std::ranges::all_of(kernels, [](std::string_view name) {
                          return name == "fused" || name == "slice" || name == "broadcast";
                        });
                      },
                      [&](const std::vector<int> &, const FusedCalls &fused) {
                        described = fused;
                        return true;
                      }};
    groups = groupCalls(program, program.tasks(0), ValueReaders(program), {}, rules);
    Found found;
    for (const CallGroup &group : groups.groups)
      found.emplace_back(group.calls, group.place);
    return found;
  }
  bool isPart(size_t call) const { return groups.groupOf[call].has_value(); }

  PlanBuilder builder;
  CallGroups groups;
  FusedCalls described; // that were fused last
};

TEST_F(CallGroupsTest, NeighboursAndCallsWithOthersBetween) {
  uint32_t a = value(), b = value(), c = value(), d = value(), e = value();
  call("fused", {a}, b);
  call("other", {a}, c);
  call("fused", {b}, d);
  call("other", {c}, e);
  EXPECT_EQ(find(), (Found{{{0, 2}, 0}}));
  EXPECT_TRUE(isPart(0) && isPart(2));
  EXPECT_FALSE(isPart(1) || isPart(3));
}

TEST_F(CallGroupsTest, ComesToTheLaterPlaceIfTheEarlierOneHasNoOperands) {
  uint32_t a = value(), b = value(), c = value(), d = value();
  call("fused", {a}, b);
  call("other", {a}, c);
  call("fused", {b, c}, d);
  EXPECT_EQ(find(), (Found{{{0, 2}, 2}}));
}

TEST_F(CallGroupsTest, StaysApartWhereBytesBetweenAreUsedAgain) {
  // c is in the place of what the first one reads, and the last one reads it.
  uint32_t a = value(), b = value(), c = valueAt(a), d = value(), e = value();
  call("fused", {a}, b);
  call("other", {e}, c);
  call("fused", {b, c}, d);
  EXPECT_EQ(find(), Found{});
}

TEST_F(CallGroupsTest, NothingIsMovedPastAnotherInstruction) {
  builder.axis("dp", 2);
  uint32_t a = value(), b = value(), c = value(), d = value();
  call("fused", {a}, b);
  builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, a, c);
  call("fused", {b}, d);
  EXPECT_EQ(find(), Found{});
}

TEST_F(CallGroupsTest, SaysWhatIsReadElsewhereAndWhatOverlaps) {
  uint32_t a = value(), b = value(), c = valueAt(a), d = value();
  call("fused", {a}, b);
  call("fused", {b}, c);
  call("other", {b}, d);
  call("other", {c}, value());
  EXPECT_EQ(find(), (Found{{{0, 1}, 0}}));
  ASSERT_EQ(described.values.size(), 3u); // a, b, c
  EXPECT_FALSE(described.values[0].maker);
  EXPECT_TRUE(described.values[1].isKept);
  EXPECT_TRUE(described.values[2].isKept);
  EXPECT_EQ(described.overlaps, (std::vector<FusedCalls::Overlap>{{0, 2, true}}));
}

TEST_F(CallGroupsTest, AnUnreadValueInsideIsNotKept) {
  uint32_t a = value(), b = value(), c = value();
  call("fused", {a}, b);
  call("fused", {b}, c);
  call("other", {c}, value());
  EXPECT_EQ(find(), (Found{{{0, 1}, 0}}));
  EXPECT_FALSE(described.values[1].isKept);
  EXPECT_TRUE(described.values[2].isKept);
}

TEST_F(CallGroupsTest, SlicesAreCopiedAndLeftOut) {
  uint32_t a = value(), b = value(), c = value(), d = value(), e = value();
  call("slice", {a}, b);
  call("fused", {b}, c);
  call("other", {c}, d);
  call("fused", {b, d}, e);
  EXPECT_EQ(find(), (Found{{{0, 1}, 1}, {{0, 3}, 3}}));
  EXPECT_TRUE(isPart(0));
}

/// A call that reads the result of a broadcast comes to a group before that.
TEST_F(CallGroupsTest, BroadcastsAreCopiedToAnEarlierPlace) {
  uint32_t a = value(), b = value(), c = value(), d = value();
  call("fused", {a}, b);
  call("other", {b}, value());
  call("broadcast", {c}, d);
  call("fused", {a, d}, value());
  EXPECT_EQ(find(), (Found{{{0, 2, 3}, 0}}));
  EXPECT_TRUE(isPart(2));
}

TEST_F(CallGroupsTest, SlicesThatOthersReadStay) {
  uint32_t a = value(), b = value(), c = value();
  call("slice", {a}, b);
  call("fused", {b}, c);
  call("other", {b}, value());
  EXPECT_EQ(find(), (Found{{{0, 1}, 1}}));
  EXPECT_FALSE(isPart(0));
}

TEST_F(CallGroupsTest, SlicesOfWhatIsOverwrittenAreNotCopied) {
  uint32_t a = value(), b = value(), c = value();
  call("slice", {a}, b);
  call("other", {c}, valueAt(a));
  call("fused", {b}, value());
  EXPECT_EQ(find(), Found{});
}

/// The call that writes the input of a copied slice does not come before the group that has the
/// copy.
TEST_F(CallGroupsTest, NoWriterPassesACopiedSlice) {
  uint32_t a = value(), b = value(), c = value(), d = value(), e = value();
  call("slice", {a}, b);
  call("fused", {c}, d);
  call("other", {d}, e);
  call("fused", {b, e}, value());
  call("fused", {d}, valueAt(a)); // would go to the second one
  EXPECT_EQ(find(), (Found{{{0, 3}, 3}}));
}

} // namespace
