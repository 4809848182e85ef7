//===- FactorMergeTest.cpp - Propagation without IR -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/FactorMerge.h"

#include <gtest/gtest.h>

namespace factorMergeTest {

using namespace dtc;

namespace {
/// bsd,df->bsf with sizes 8, 4, 6, 12, on x=2, y=2, z=3.
struct FactorMerge : testing::Test {
  LinkedMesh mesh{"mesh", {{"x", 2}, {"y", 2}, {"z", 3}}};
  ShardingRule rule;
  FactorMerge() {
    unsigned b = rule.addFactor(8), s = rule.addFactor(4),
             d = rule.addFactor(6, ReductionKind::Sum), f = rule.addFactor(12);
    rule.operands = {{{b}, {s}, {d}}, {{d}, {f}}};
    rule.results = {{{b}, {s}, {f}}};
  }
  FactorAxes merge(const Layout &lhs, const Layout &rhs, const Layout &result,
                   std::array<double, 3> weights = {3, 2, 1}) {
    return mergeFactorAxes(mesh, rule,
                           {{&rule.operands[0], &lhs, weights[0]},
                            {&rule.operands[1], &rhs, weights[1]},
                            {&rule.results[0], &result, weights[2]}});
  }
};
} // namespace

TEST_F(FactorMerge, TakesWhatAnyTensorKnows) {
  FactorAxes axes = merge({{{0}, {}, {}}}, {{{}, {1}}}, Layout::replicated(3));
  EXPECT_EQ(axes[0], AxisList({0}));
  EXPECT_EQ(axes[3], AxisList({1}));
  EXPECT_TRUE(axes[1].empty() && axes[2].empty());
}

TEST_F(FactorMerge, TheLongerListWinsWhereOneBeginsTheOther) {
  FactorAxes axes = merge({{{0}, {}, {}}}, Layout::replicated(2), {{{0, 1}, {}, {}}});
  EXPECT_EQ(axes[0], AxisList({0, 1}));
}

TEST_F(FactorMerge, TheHeavierTensorWinsAContradiction) {
  EXPECT_EQ(merge({{{0}, {}, {}}}, Layout::replicated(2), {{{1}, {}, {}}})[0], AxisList({0}));
  EXPECT_EQ(merge({{{0}, {}, {}}}, Layout::replicated(2), {{{1}, {}, {}}}, {1, 2, 3})[0],
            AxisList({1}));
}

TEST_F(FactorMerge, AnAxisSplitsOneFactor) {
  FactorAxes axes = merge({{{0}, {}, {}}}, {{{}, {0}}}, Layout::replicated(3));
  EXPECT_EQ(axes[0], AxisList({0})); // of the heavier operand
  EXPECT_TRUE(axes[3].empty());
}

TEST_F(FactorMerge, WholeFactorsStayWhole) {
  rule.factors[1].whole = true;
  EXPECT_TRUE(merge({{{}, {0}, {}}}, Layout::replicated(2), Layout::replicated(3))[1].empty());
}

TEST_F(FactorMerge, ExtendingOnlyAppends) {
  FactorAxes axes(4);
  axes[0] = {0, 1};
  axes[3] = {2};
  Layout layout{{{0}, {}, {}}};
  EXPECT_TRUE(extendLayout(mesh, rule, rule.results[0], axes, layout));
  EXPECT_EQ(layout, (Layout{{{0, 1}, {}, {2}}}));
  EXPECT_FALSE(extendLayout(mesh, rule, rule.results[0], axes, layout));
  Layout other{{{2}, {}, {}}}; // contradicts on b, and uses z already
  EXPECT_FALSE(extendLayout(mesh, rule, rule.results[0], axes, other));
}

TEST(Layouts, AMinorFactorNeedsItsMajorSplitCompletely) {
  LinkedMesh mesh{"mesh", {{"x", 2}, {"y", 2}}};
  ShardingRule rule;
  unsigned g = rule.addFactor(2), r = rule.addFactor(4);
  TensorFactors tensor = {{g, r}};
  EXPECT_FALSE(layoutFromFactors(mesh, rule, tensor, {{}, {0}}));
  EXPECT_EQ(*layoutFromFactors(mesh, rule, tensor, {{1}, {0}}), (Layout{{{1, 0}}}));
  FactorAxes axes(2);
  EXPECT_EQ(factorsFromDim(mesh, rule, {g, r}, {1, 0}, axes), 2u);
  EXPECT_EQ(axes[g], AxisList({1}));
  EXPECT_EQ(axes[r], AxisList({0}));
}

} // namespace factorMergeTest
