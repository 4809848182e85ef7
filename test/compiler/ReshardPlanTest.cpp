//===- ReshardPlanTest.cpp - From one layout to another -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/ReshardPlan.h"

#include <gtest/gtest.h>

#include <random>

using namespace dtc;

static const Mesh kMesh{"mesh", {{"x", 2}, {"y", 3}, {"z", 2}, {"t", 4, /*temporal=*/true}}};

static std::vector<ReshardStep::Kind> kinds(const Layout &from, const Layout &to) {
  std::vector<ReshardStep::Kind> result;
  auto steps = planReshard(kMesh, from, to);
  EXPECT_TRUE(steps);
  if (steps)
    for (const ReshardStep &step : *steps)
      result.push_back(step.kind);
  return result;
}

using Kinds = std::vector<ReshardStep::Kind>;

TEST(ReshardPlan, Nothing) { EXPECT_EQ(kinds({{{0}, {1}}}, {{{0}, {1}}}), Kinds()); }

TEST(ReshardPlan, OneStep) {
  EXPECT_EQ(kinds({{{}, {}}}, {{{0, 1}, {}}}), Kinds({ReshardStep::Slice}));
  EXPECT_EQ(kinds({{{0, 1}, {}}}, {{{}, {}}}), Kinds({ReshardStep::AllGather}));
  EXPECT_EQ(kinds({{{0}, {}}}, {{{}, {0}}}), Kinds({ReshardStep::AllToAll}));
  EXPECT_EQ(kinds({{{}, {}}, {0, 1}}, {{{}, {}}}), Kinds({ReshardStep::AllReduce}));
  EXPECT_EQ(kinds({{{}, {}}, {0}}, {{{0}, {}}}), Kinds({ReshardStep::ReduceScatter}));
}

TEST(ReshardPlan, APartialAxisMayStay) {
  EXPECT_EQ(kinds({{{}}, {0, 1}}, {{{}}, {0}}), Kinds({ReshardStep::AllReduce}));
}

TEST(ReshardPlan, TimeIsOnlySliced) {
  EXPECT_EQ(kinds({{{0}}}, {{{0, 3}}}), Kinds({ReshardStep::Slice}));
  EXPECT_FALSE(planReshard(kMesh, {{{0, 3}}}, {{{0}}}));
  EXPECT_FALSE(planReshard(kMesh, {{{}}, {3}}, {{{}}}));
}

/// What a device holds, as a function of its coordinates: the blocks of each dimension, and the
/// axes that are summed. The steps are applied to this description by their definition, so that any
/// wrong order of axes shows.
TEST(ReshardPlan, AnyPairEndsAtItsTarget) {
  for (unsigned seed = 1; seed <= 5000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 engine(seed);
    auto random = [&](bool partial) {
      AxisList free{0, 1, 2};
      std::shuffle(free.begin(), free.end(), engine);
      Layout layout = Layout::replicated(1 + seed % 3);
      for (unsigned axis : free)
        if (unsigned where = engine() % (layout.dims.size() + 1 + partial);
            where < layout.dims.size())
          layout.dims[where].push_back(axis);
        else if (where == layout.dims.size() + 1)
          layout.partial.push_back(axis);
      llvm::sort(layout.partial);
      return layout;
    };
    Layout now = random(true), to = random(false);
    auto steps = planReshard(kMesh, now, to);
    ASSERT_TRUE(steps);
    EXPECT_LE(steps->size(), 12u);
    for (const ReshardStep &step : *steps) {
      AxisList &dim = now.dims[step.dim];
      auto dropPartial = [&] {
        for (unsigned axis : step.axes) {
          ASSERT_TRUE(now.isPartialOver(axis));
          llvm::erase(now.partial, axis);
        }
      };
      auto takeFromEnd = [&](AxisList &list) {
        ASSERT_GE(list.size(), step.axes.size());
        EXPECT_EQ(AxisList(llvm::ArrayRef(list).take_back(step.axes.size())), step.axes);
        list.truncate(list.size() - step.axes.size());
      };
      switch (step.kind) {
      case ReshardStep::Slice:
        for (unsigned axis : step.axes)
          EXPECT_FALSE(now.mentions(axis));
        dim.append(step.axes);
        break;
      case ReshardStep::AllReduce:
        dropPartial();
        break;
      case ReshardStep::ReduceScatter:
        dropPartial();
        dim.append(step.axes);
        break;
      case ReshardStep::AllGather:
        takeFromEnd(dim);
        break;
      case ReshardStep::AllToAll:
        takeFromEnd(dim);
        now.dims[step.splitDim].append(step.axes);
        break;
      }
    }
    EXPECT_EQ(now, to);
  }
}
