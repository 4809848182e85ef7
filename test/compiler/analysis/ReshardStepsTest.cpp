//===- ReshardStepsTest.cpp - Tests of the steps of a reshard --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/CollectiveTime.h"
#include "test/compiler/analysis/ReshardReference.h"

#include <gtest/gtest.h>

namespace reshardStepsTest {

using namespace dtc;
using namespace dtc::testing;

static const LinkedMesh kMesh{"mesh", {{"x", 2}, {"y", 3}, {"z", 2}, {"t", 4, /*temporal=*/true}}};
/// Divides by all axes, and is large enough for bytes to matter.
static const std::vector<int64_t> kVector{12 << 20}, kMatrix{1200, 2400};

static const int64_t kBytes = 4;

static std::vector<ReshardStep> steps(llvm::ArrayRef<int64_t> shape, const Layout &from,
                                      const Layout &to) {
  auto plan = findReshardSteps(kMesh, kBytes, shape, from, to);
  EXPECT_TRUE(plan);
  return plan ? std::vector(plan->steps.begin(), plan->steps.end()) : std::vector<ReshardStep>();
}

/// The kinds of the steps; none stands for a slice.
using Kinds = std::vector<std::optional<CollectiveKind>>;
static constexpr std::optional<CollectiveKind> kSlice = std::nullopt;

static Kinds kinds(llvm::ArrayRef<int64_t> shape, const Layout &from, const Layout &to) {
  Kinds result;
  for (const ReshardStep &step : steps(shape, from, to))
    result.push_back(step.collective);
  return result;
}

TEST(LinkedMesh, GroupsCostWhatTheirLinksDo) {
  LinkedMesh mesh{"mesh",
                  {{"a", 2, false, 10., .5}, {"b", 4, false, 5., .25}, {"c", 1, false, 1., 9.}}};
  auto cost = [&](CollectiveKind kind, llvm::ArrayRef<unsigned> axes) {
    GroupShape group = mesh.groupOver(axes);
    return std::pair(dtc::sentBytes(kind, 80, group.members),
                     dtc::collectiveTime(kind, 80, group).seconds);
  };
  EXPECT_EQ(cost(CollectiveKind::AllGather, {1}), std::pair(240., 48.75));
  EXPECT_EQ(cost(CollectiveKind::ReduceScatter, {1}), std::pair(60., 12.75));
  EXPECT_EQ(cost(CollectiveKind::AllToAll, {1}), std::pair(60., 12.75));
  EXPECT_EQ(cost(CollectiveKind::AllReduce, {1}), std::pair(120., 25.5));
  EXPECT_EQ(cost(CollectiveKind::Permute, {1}), std::pair(80., 16.25));
  // 80 * 7 bytes at 5 a second; a ring of 2 and then one of 4: 1 * .5 + 3 * .25 seconds of delay.
  EXPECT_EQ(cost(CollectiveKind::AllGather, {0, 1, 2}), std::pair(560., 112 + 1.25));
  EXPECT_EQ(cost(CollectiveKind::ReduceScatter, {0, 1}), std::pair(70., 14 + 1.25));
  EXPECT_EQ(cost(CollectiveKind::AllReduce, {0, 1}), std::pair(140., 28 + 2.5));
  EXPECT_EQ(cost(CollectiveKind::Permute, {0, 1}), std::pair(80., 16 + .5));
  EXPECT_EQ(cost(CollectiveKind::AllReduce, {2}), std::pair(0., 0.));
}

TEST(ReshardSteps, Nothing) {
  EXPECT_EQ(kinds(kMatrix, {{{0}, {1}}}, {{{0}, {1}}}), Kinds());
  EXPECT_EQ(kinds({}, {{}}, {{}}), Kinds());
}

TEST(ReshardSteps, OneStep) {
  EXPECT_EQ(kinds(kMatrix, {{{}, {}}}, {{{0, 1}, {}}}), Kinds({kSlice}));
  EXPECT_EQ(kinds(kMatrix, {{{0}, {}}}, {{{}, {}}}), Kinds({CollectiveKind::AllGather}));
  EXPECT_EQ(kinds(kMatrix, {{{0}, {}}}, {{{}, {0}}}), Kinds({CollectiveKind::AllToAll}));
  EXPECT_EQ(kinds(kMatrix, {{{}, {}}, {0}}, {{{0}, {}}}), Kinds({CollectiveKind::ReduceScatter}));
  EXPECT_EQ(kinds({}, {{}, {0}}, {{}}), Kinds({CollectiveKind::AllReduce}));
}

TEST(ReshardSteps, SizesOfShards) {
  ReshardStep step = steps({7}, {{{}}}, {{{0}}}).front();
  EXPECT_EQ(step.splitSize, 4);
  step = steps({7}, {{{0}}}, {{{}}}).front();
  EXPECT_EQ(step.gatheredSize, 7);
  step = steps({7, 4001}, {{{0}, {}}}, {{{}, {0}}}).front();
  EXPECT_EQ(step.collective, CollectiveKind::AllToAll);
  EXPECT_EQ(step.gatheredSize, 7);
  EXPECT_EQ(step.splitSize, 2001);
  EXPECT_EQ((Layout{{{0, 1}, {2}}}).localShape(kMesh, {7, 4}), (llvm::SmallVector<int64_t>{2, 2}));
  EXPECT_FALSE((Layout{{{0, 1}, {2}}}).divides(kMesh, {7, 4}));
  EXPECT_TRUE((Layout{{{0, 1}, {2}}}).divides(kMesh, {6, 4}));
}

/// Blocks of blocks that are padded are not contiguous: rank 2 of {x, z} on 5 elements starts at 3.
TEST(ReshardSteps, PaddedDimensionsAreSplitAxisByAxis) {
  EXPECT_EQ(kinds({5}, {{{}}}, {{{0, 2}}}), Kinds({kSlice, kSlice}));
  EXPECT_EQ(kinds({6}, {{{}}}, {{{1, 0}}}), Kinds({kSlice}));
  // 7 elements over x are blocks of 4, which z divides.
  EXPECT_EQ(kinds({7}, {{{}}}, {{{0, 2}}}), Kinds({kSlice}));
  std::vector<ReshardStep> gathers = steps({5}, {{{0, 2}}}, {{{}}});
  ASSERT_EQ(gathers.size(), 2u);
  EXPECT_EQ(gathers[0].axes, AxisList{2});
  EXPECT_EQ(gathers[0].gatheredSize, 3);
  EXPECT_EQ(gathers[1].axes, AxisList{0});
  EXPECT_EQ(gathers[1].gatheredSize, 5);
}

TEST(ReshardSteps, APartialAxisMayStay) {
  EXPECT_EQ(kinds({1}, {{{}}, {0, 1}}, {{{}}, {0}}), Kinds({CollectiveKind::AllReduce}));
  EXPECT_FALSE(findReshardSteps(kMesh, kBytes, kVector, {{{}}}, {{{}}, {0}}));
}

TEST(ReshardSteps, SumsAreScatteredWhereTheyAreNeededInParts) {
  EXPECT_EQ(kinds(kMatrix, {{{}, {}}, {0}}, {{{1, 0}, {}}}),
            Kinds({kSlice, CollectiveKind::ReduceScatter}));
}

TEST(ReshardSteps, AMovedAxisIsExchanged) {
  EXPECT_EQ(kinds(kMatrix, {{{0, 1}, {}}}, {{{0}, {1}}}), Kinds({CollectiveKind::AllToAll}));
  std::vector<ReshardStep> both = steps(kMatrix, {{{0, 1}, {}}}, {{{}, {0, 1}}});
  ASSERT_EQ(both.size(), 1u);
  EXPECT_EQ(both[0].collective, CollectiveKind::AllToAll);
  EXPECT_EQ(both[0].axes, (AxisList{0, 1}));
}

TEST(ReshardSteps, OtherOrdersArePermuted) {
  std::vector<ReshardStep> swap = steps(kVector, {{{0, 1}}}, {{{1, 0}}});
  ASSERT_EQ(swap.size(), 1u);
  EXPECT_EQ(swap[0].collective, CollectiveKind::Permute);
  EXPECT_EQ(swap[0].axes, (AxisList{0, 1}));
  EXPECT_EQ(swap[0].sourceAxes, (AxisList{1, 0}));
  EXPECT_EQ(kinds(kMatrix, {{{0}, {2}}}, {{{2}, {0}}}), Kinds({CollectiveKind::Permute}));
  EXPECT_EQ(kinds(kVector, {{{0}}}, {{{2}}}), Kinds({CollectiveKind::Permute}));
  // The axis between two that change places stays where it is.
  std::vector<ReshardStep> around = steps(kVector, {{{0, 1, 2}}}, {{{2, 1, 0}}});
  ASSERT_EQ(around.size(), 1u);
  EXPECT_EQ(around[0].axes, (AxisList{0, 2}));
  EXPECT_EQ(around[0].sourceAxes, (AxisList{2, 0}));
}

TEST(ReshardSteps, ACommonPrefixIsNotGathered) {
  for (const ReshardStep &step : steps(kMatrix, {{{0, 1}, {}}}, {{{0}, {}}}))
    EXPECT_EQ(step.axes, AxisList{1});
  for (const ReshardStep &step : steps(kMatrix, {{{0, 1}, {}}}, {{{0, 2}, {}}}))
    EXPECT_FALSE(llvm::is_contained(step.axes, 0u));
}

/// A sum over x of what is the same along z: each device of z sums a half, and they put the halves
/// together over their faster link.
TEST(ReshardSteps, CopiesShareTheWork) {
  LinkedMesh mesh = kMesh;
  mesh.axes[2].bandwidth *= 10;
  auto plan = findReshardSteps(mesh, kBytes, kVector, {{{}}, {1}}, {{{}}});
  ASSERT_TRUE(plan);
  ASSERT_FALSE(plan->steps.empty());
  EXPECT_EQ(plan->steps.front().collective, kSlice);
  double simple =
      dtc::collectiveTime(CollectiveKind::AllReduce, 4. * (12 << 20), mesh.groupOver({1})).seconds;
  EXPECT_LT(plan->seconds, .7 * simple);
}

TEST(ReshardSteps, TimeIsOnlySliced) {
  EXPECT_EQ(kinds(kVector, {{{0}}}, {{{0, 3}}}), Kinds({kSlice}));
  EXPECT_FALSE(findReshardSteps(kMesh, kBytes, kVector, {{{0, 3}}}, {{{0}}}));
  EXPECT_FALSE(findReshardSteps(kMesh, kBytes, kVector, {{{}}, {3}}, {{{}}}));
  EXPECT_FALSE(findReshardSteps(kMesh, kBytes, kVector, {{{}}, {3}}, {{{3}}}));
  EXPECT_FALSE(findReshardSteps(kMesh, kBytes, kVector, {{{0, 3}}}, {{{3}}}));
  // The data of one microbatch can still move between devices.
  EXPECT_EQ(kinds(kVector, {{{0, 3}}}, {{{2, 3}}}), Kinds({CollectiveKind::Permute}));
}

TEST(ReshardSteps, AxesOfSizeOneNeedNoStep) {
  LinkedMesh mesh{"mesh", {{"a", 1}, {"b", 2}}};
  auto plan = findReshardSteps(mesh, kBytes, kVector, {{{0, 1}}}, {{{1}}, {}});
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->steps.empty());
}

TEST(ReshardSteps, CostsAddUp) {
  auto plan = findReshardSteps(kMesh, kBytes, kVector, {{{0}}}, {{{}}});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->bytes, 4. * (6 << 20));
  EXPECT_EQ(plan->seconds, plan->bytes / kAssumedLink.bandwidth + kAssumedLink.latency);
}

TEST(ReshardCache, RemembersPlans) {
  ReshardCache planner(kMesh);
  const auto &first = planner.plan(kBytes, kVector, {{{0}}}, {{{}}});
  ASSERT_TRUE(first);
  const auto &refused = planner.plan(kBytes, kVector, {{{3}}}, {{{}}});
  EXPECT_FALSE(refused);
  EXPECT_EQ(&planner.plan(kBytes, kVector, {{{0}}}, {{{}}}), &first);
  EXPECT_EQ(&planner.plan(kBytes, kVector, {{{3}}}, {{{}}}), &refused);
  EXPECT_NE(&planner.plan(8, kVector, {{{0}}}, {{{}}}), &first);
  EXPECT_NE(&planner.plan(kBytes, {12}, {{{0}}}, {{{}}}), &first);
  EXPECT_NE(&planner.plan(kBytes, kVector, {{{1}}}, {{{}}}), &first);
}

} // namespace reshardStepsTest
