//===- ConflictResolutionTest.cpp - Agreement and conflicts, without IR ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/FactorMerge.h"

#include <gtest/gtest.h>

#include <cmath>

namespace conflictResolutionTest {

using namespace dtc;

namespace {

/// bi,io->bo with sizes 8, 4, 16, in f32, on x=2, y=2, z=3 and four microbatches. All links move
/// 1e6 bytes a second after 1 ms.
struct Product : testing::Test {
  LinkedMesh mesh{"mesh",
                  {{"x", 2, false, 1e6, 1e-3},
                   {"y", 2, false, 1e6, 1e-3},
                   {"z", 3, false, 1e6, 1e-3},
                   {"t", 4, true}}};
  enum { B, I, O };
  ShardingRule rule;
  Product() {
    rule.addFactor(8), rule.addFactor(4, ReductionKind::Sum), rule.addFactor(16);
    rule.operands = {{{B}, {I}}, {{I}, {O}}};
    rule.results = {{{B}, {O}}};
  }
  llvm::SmallVector<FactorTensor> tensors(const Layout &lhs, const Layout &rhs,
                                          const Layout &result) {
    return {{&rule.operands[0], &lhs, 128, 4, false},
            {&rule.operands[1], &rhs, 256, 4, false},
            {&rule.results[0], &result, 512, 4, true, closed}};
  }
  FactorAgreement agree(const Layout &lhs, const Layout &rhs, const Layout &result,
                        const FactorAxes &committed = FactorAxes(3)) {
    return agreeOnFactorAxes(mesh, rule, tensors(lhs, rhs, result), committed);
  }
  double seconds(const Layout &lhs, const Layout &rhs, const Layout &result, const FactorAxes &axes,
                 double flops = 0) {
    ReshardCache planner(mesh);
    return factorAxesSeconds(mesh, planner, rule, tensors(lhs, rhs, result), axes, flops);
  }
  ConflictResolution settle(const Layout &lhs, const Layout &rhs, const Layout &result,
                            const FactorAxes &committed = FactorAxes(3)) {
    ReshardCache planner(mesh);
    return resolveFactorAxes(mesh, planner, rule, tensors(lhs, rhs, result), committed, 1024);
  }
  const Layout whole = Layout::replicated(2);
  /// Which dimensions of the result must lie as they do.
  llvm::SmallVector<bool, 2> closed{true, true};
  const unsigned x = 0, y = 1, z = 2, t = 3;
};

} // namespace

//===----------------------------------------------------------------------===//
// agreeOnFactorAxes
//===----------------------------------------------------------------------===//

TEST_F(Product, TensorsAddUpToAnAgreement) {
  FactorAgreement found = agree({{{x}, {}}}, {{{}, {z}}}, {{{x, y}, {}}});
  EXPECT_FALSE(found.conflict);
  EXPECT_EQ(found.axes, (FactorAxes{{x, y}, {}, {z}}));
}

TEST_F(Product, AContradictionLeavesWhatComesBeforeIt) {
  FactorAgreement found = agree({{{x, y}, {}}}, whole, {{{x, z}, {}}});
  EXPECT_TRUE(found.conflict);
  EXPECT_EQ(found.axes, (FactorAxes{{x}, {}, {}}));
}

TEST_F(Product, AnAxisThatTwoFactorsWantIsNobodys) {
  FactorAgreement found = agree({{{x}, {}}}, {{{y}, {x}}}, whole);
  EXPECT_TRUE(found.conflict);
  EXPECT_EQ(found.axes, (FactorAxes{{}, {y}, {}}));
  // Nor is what comes after it.
  EXPECT_EQ(agree({{{x, z}, {}}}, {{{}, {x}}}, whole).axes, FactorAxes(3));
}

TEST_F(Product, WhatIsDecidedStands) {
  // An axis in use is lost for other factors, and another beginning is not heard: no conflicts.
  FactorAgreement found = agree({{{y, z}, {}}}, {{{}, {x}}}, {{{x, z}, {}}}, {{x}, {}, {}});
  EXPECT_FALSE(found.conflict);
  EXPECT_EQ(found.axes, (FactorAxes{{x, z}, {}, {}}));
}

TEST_F(Product, AWholeFactorWantsNothing) {
  rule.factors[I].whole = true;
  FactorAgreement found = agree({{{}, {x}}}, {{{y}, {x}}}, whole);
  EXPECT_FALSE(found.conflict);
  EXPECT_EQ(found.axes, (FactorAxes{{}, {}, {x}}));
}

//===----------------------------------------------------------------------===//
// factorAxesSeconds
//===----------------------------------------------------------------------===//

/// The seconds of 576 bytes of memory traffic on the device that the estimate assumes.
static constexpr double kTraffic = 576 / 1.5e12;

TEST_F(Product, NothingMovesWhereAllAgree) {
  // Shards of 4 x 4, 4 x 16 and 4 x 16 elements: 64 + 256 + 256 bytes.
  EXPECT_DOUBLE_EQ(seconds({{{x}, {}}}, whole, {{{x}, {}}}, {{x}, {}, {}}), kTraffic);
  // 1e9 operations on each of two devices outweigh that.
  EXPECT_DOUBLE_EQ(seconds({{{x}, {}}}, whole, {{{x}, {}}}, {{x}, {}, {}}, 2e9), 1e9 / 150e12);
}

TEST_F(Product, OperandsAndResultsMove) {
  // The result is gathered: each device sends its 256 bytes.
  EXPECT_NEAR(seconds({{{x}, {}}}, whole, whole, {{x}, {}, {}}), kTraffic + 1e-3 + 256e-6, 1e-12);
  // The left operand is gathered, 64 bytes, and so is the right one, 128 bytes.
  EXPECT_NEAR(seconds({{{x}, {}}}, {{{}, {x}}}, whole, FactorAxes(3)), 2e-3 + 192e-6, 1e-8);
  // A sum of 512 bytes over two devices is completed: 2 ms, and each sends two halves.
  EXPECT_NEAR(seconds({{{}, {x}}}, {{{x}, {}}}, whole, {{}, {x}, {}}), 2e-3 + 512e-6, 1e-8);
}

TEST_F(Product, AnOpenResultLiesAsItIsMade) {
  closed = {false, false};
  EXPECT_DOUBLE_EQ(seconds({{{x}, {}}}, whole, whole, {{x}, {}, {}}), kTraffic);
  closed = {false, true};
  EXPECT_DOUBLE_EQ(seconds({{{x}, {}}}, whole, whole, {{x}, {}, {}}), kTraffic);
  closed = {true, false};
  EXPECT_NEAR(seconds({{{x}, {}}}, whole, whole, {{x}, {}, {}}), kTraffic + 1e-3 + 256e-6, 1e-12);
  // Axes that it has otherwise are moved all the same, and sums are completed.
  closed = {false, false};
  EXPECT_NEAR(seconds({{{x}, {}}}, whole, {{{}, {x}}}, {{x}, {}, {}}), 1e-3 + 128e-6, 1e-8);
  EXPECT_NEAR(seconds({{{}, {x}}}, {{{x}, {}}}, whole, {{}, {x}, {}}), 2e-3 + 512e-6, 1e-8);
}

TEST_F(Product, SumsOverTimeAreFreeAndGathersOverItImpossible) {
  Layout lhs{{{t}, {}}}, rhs{{{}, {}}};
  EXPECT_TRUE(std::isinf(seconds(lhs, rhs, whole, FactorAxes(3))));
  EXPECT_TRUE(std::isinf(seconds(lhs, rhs, whole, {{t}, {}, {}})));
  // Microbatches split the summed dimension: 8 x 1, 1 x 16, and all of the result.
  EXPECT_DOUBLE_EQ(seconds({{{}, {t}}}, {{{t}, {}}}, whole, {{}, {t}, {}}),
                   (32 + 64 + 512) / 1.5e12);
}

TEST_F(Product, PaddingCounts) {
  // 8 rows in blocks of 3: 3 x 4, 4 x 16 and 3 x 16 elements.
  EXPECT_DOUBLE_EQ(seconds({{{z}, {}}}, whole, {{{z}, {}}}, {{z}, {}, {}}),
                   (48 + 256 + 192) / 1.5e12);
}

//===----------------------------------------------------------------------===//
// resolveFactorAxes
//===----------------------------------------------------------------------===//

TEST_F(Product, TheCheapestCombinationIsChosen) {
  // Columns of the right operand and of the result: the left operand, the smallest, is gathered.
  ConflictResolution found = settle({{{x}, {}}}, {{{}, {x}}}, {{{}, {x}}});
  EXPECT_EQ(found.axes, (FactorAxes{{}, {}, {x}}));
  EXPECT_NEAR(found.seconds, 1e-3 + 64e-6, 1e-8);
  // No split is next: it gathers both operands, and takes of the result what is asked.
  EXPECT_EQ(found.runnerUp, FactorAxes(3));
  EXPECT_NEAR(found.runnerUpSeconds, 2e-3 + 192e-6, 1e-8);
  // Rows where the result has them: only the right operand is gathered.
  found = settle({{{x}, {}}}, {{{}, {x}}}, {{{x}, {}}});
  EXPECT_EQ(found.axes, (FactorAxes{{x}, {}, {}}));
  EXPECT_NEAR(found.seconds, 1e-3 + 128e-6, 1e-8);
}

TEST_F(Product, AnOpenResultLeavesTheChoiceToTheOperands) {
  closed = {false, false};
  ConflictResolution found = settle({{{x}, {}}}, {{{}, {x}}}, whole);
  EXPECT_EQ(found.axes, (FactorAxes{{}, {}, {x}}));
  EXPECT_NEAR(found.seconds, 1e-3 + 64e-6, 1e-8);
  // With whole columns the result would have to be gathered; rows are left.
  closed = {false, true};
  found = settle({{{x}, {}}}, {{{}, {x}}}, whole);
  EXPECT_EQ(found.axes, (FactorAxes{{x}, {}, {}}));
  EXPECT_NEAR(found.seconds, 1e-3 + 128e-6, 1e-8);
}

TEST_F(Product, WhatIsDecidedIsInEveryCombination) {
  ConflictResolution found = settle({{{x}, {}}}, {{{}, {x}}}, {{{}, {x}}}, {{x}, {}, {}});
  EXPECT_EQ(found.axes, (FactorAxes{{x}, {}, {}}));
}

TEST_F(Product, WhatIsImpossibleIsNotChosen) {
  // Microbatches of the rows: gathering the large right operand is the only way.
  ConflictResolution found = settle({{{x, t}, {}}}, {{{}, {x}}}, {{{x, t}, {}}});
  EXPECT_EQ(found.axes, (FactorAxes{{x, t}, {}, {}}));
  EXPECT_TRUE(std::isfinite(found.seconds));
  EXPECT_TRUE(std::isinf(found.runnerUpSeconds));
}

TEST_F(Product, WhereNothingIsPossibleTheFirstFullestSplitIsTaken) {
  // Both operands are split over microbatches, and neither can be gathered.
  ConflictResolution found = settle({{{t}, {}}}, {{{}, {t}}}, whole);
  EXPECT_TRUE(std::isinf(found.seconds));
  EXPECT_EQ(found.axes, (FactorAxes{{t}, {}, {}}));
}

/// Sums of equal tensors that lie differently.
TEST_F(Product, TiesGoToTheFirstRequest) {
  rule = {};
  rule.addFactor(8), rule.addFactor(8);
  rule.operands = {{{0}, {1}}, {{0}, {1}}};
  rule.results = {{{0}, {1}}};
  ConflictResolution found = settle({{{x}, {}}}, {{{}, {x}}}, whole, FactorAxes(2));
  EXPECT_EQ(found.axes[0], AxisList({x}));
  EXPECT_TRUE(found.axes[1].empty());
  EXPECT_EQ(found.runnerUp[1], AxisList({x}));
  EXPECT_EQ(found.seconds, found.runnerUpSeconds);
  // Half of one operand is exchanged, the result of 256 bytes is gathered.
  EXPECT_NEAR(found.seconds, 2e-3 + 64e-6 + 128e-6, 1e-8);
  // In the other order it is the other factor's.
  ConflictResolution other = settle({{{}, {x}}}, {{{x}, {}}}, whole, FactorAxes(2));
  EXPECT_EQ(other.seconds, found.seconds);
}

TEST(ConflictResolution, TooManyCombinationsAreMergedByWeight) {
  LinkedMesh mesh{"mesh", {{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}, {"e", 2}, {"f", 2}}};
  ShardingRule rule;
  TensorFactors all;
  Layout ordered = Layout::replicated(6), rotated = ordered;
  for (unsigned i = 0; i < 6; ++i) {
    all.push_back({rule.addFactor(4)});
    ordered.dims[i] = {i};
    rotated.dims[i] = {(i + 1) % 6};
  }
  rule.operands = {all, all};
  rule.results = {all};
  Layout result = Layout::replicated(6);
  // Two requests and none for each of six factors: 3^6 = 729.
  static_assert(kMaxCombinations < 729);
  ReshardCache planner(mesh);
  auto found = resolveFactorAxes(mesh, planner, rule,
                                 {{&all, &ordered, 1, 4, false},
                                  {&all, &rotated, 2, 4, false},
                                  {&all, &result, 1, 4, true, {}}},
                                 FactorAxes(6), 0);
  for (unsigned i = 0; i < 6; ++i)
    EXPECT_EQ(found.axes[i], rotated.dims[i]);
  EXPECT_TRUE(std::isinf(found.runnerUpSeconds));
}

//===----------------------------------------------------------------------===//
// producedLayout
//===----------------------------------------------------------------------===//

TEST_F(Product, SummedFactorsLeavePartialAxes) {
  EXPECT_EQ(*producedLayout(mesh, rule, rule.results[0], {{x}, {z, y}, {}}),
            (Layout{{{x}, {}}, {y, z}, ReductionKind::Sum}));
  rule.factors[I].reduction = ReductionKind::Max;
  EXPECT_EQ(*producedLayout(mesh, rule, rule.results[0], {{}, {y}, {}}),
            (Layout{{{}, {}}, {y}, ReductionKind::Max}));
  rule.factors[I].reduction = ReductionKind::Min;
  EXPECT_EQ(*producedLayout(mesh, rule, rule.results[0], {{}, {y}, {}}),
            (Layout{{{}, {}}, {y}, ReductionKind::Min}));
}

TEST_F(Product, OneValueIsNotASumAndAMaximum) {
  unsigned extra = rule.addFactor(4, ReductionKind::Max);
  EXPECT_FALSE(producedLayout(mesh, rule, rule.results[0], {{}, {y}, {}, {x}}));
  EXPECT_TRUE(producedLayout(mesh, rule, rule.results[0], {{}, {}, {}, {x}}));
  rule.factors[extra].reduction = ReductionKind::Sum;
  EXPECT_EQ(producedLayout(mesh, rule, rule.results[0], {{}, {y}, {}, {x}})->partial,
            AxisList({x, y}));
}

//===----------------------------------------------------------------------===//
// dropInexpressible, and dimensions of several factors
//===----------------------------------------------------------------------===//

namespace {
/// [(g r)] -> [g, r] on x=2, y=2, z=3.
struct Merged : testing::Test {
  LinkedMesh mesh{"mesh", {{"x", 2}, {"y", 2}, {"z", 3}}};
  ShardingRule rule;
  FactorAxes drop(int64_t g, int64_t r, FactorAxes axes) {
    rule = {};
    rule.addFactor(g), rule.addFactor(r);
    rule.operands = {{{0, 1}}};
    rule.results = {{{0}, {1}}};
    dropInexpressible(mesh, rule, {{&rule.operands[0], nullptr, 0}, {&rule.results[0], nullptr, 0}},
                      axes);
    return axes;
  }
  const unsigned x = 0, y = 1, z = 2;
};
} // namespace

TEST_F(Merged, AMinorFactorIsSplitUnderACompletelySplitMajorOne) {
  EXPECT_EQ(drop(2, 4, {{x}, {y}}), (FactorAxes{{x}, {y}}));
  EXPECT_EQ(drop(2, 4, {{}, {y}}), FactorAxes(2));
  EXPECT_EQ(drop(4, 4, {{x}, {y}}), (FactorAxes{{x}, {}}));
  EXPECT_EQ(drop(1, 4, {{}, {y}}), (FactorAxes{{}, {y}}));
}

TEST_F(Merged, AFactorThatSharesADimensionIsNotPadded) {
  EXPECT_EQ(drop(6, 4, {{x, y}, {}}), (FactorAxes{{x}, {}}));
  EXPECT_EQ(drop(6, 4, {{x, z}, {y}}), (FactorAxes{{x, z}, {y}}));
  EXPECT_EQ(drop(6, 5, {{x, z}, {y}}), (FactorAxes{{x, z}, {}}));
}

TEST_F(Merged, ADimensionOfOneFactorMayBePadded) {
  rule.addFactor(5);
  rule.operands = {{{0}}};
  FactorAxes axes{{x, y}};
  dropInexpressible(mesh, rule, {{&rule.operands[0], nullptr, 0}}, axes);
  EXPECT_EQ(axes, (FactorAxes{{x, y}}));
}

TEST_F(Merged, GivingUpOneAxisMayCostAnother) {
  // [(g r)] is fine as long as g is split, and [(h g)] allows that only under a split h.
  for (unsigned size : {2, 2, 4})
    rule.addFactor(size);
  enum { H, G, R };
  rule.operands = {{{G, R}}, {{H, G}}};
  llvm::SmallVector<FactorTensor> tensors{{&rule.operands[0], nullptr, 0},
                                          {&rule.operands[1], nullptr, 0}};
  FactorAxes axes{{}, {x}, {y}};
  dropInexpressible(mesh, rule, tensors, axes);
  EXPECT_EQ(axes, FactorAxes(3));
}

//===----------------------------------------------------------------------===//
// extendLayout
//===----------------------------------------------------------------------===//

TEST_F(Product, ClosedDimensionsStay) {
  FactorAxes axes{{x, y}, {}, {z}};
  Layout layout{{{x}, {}}};
  EXPECT_FALSE(extendLayout(mesh, rule, rule.results[0], axes, layout, {true, true}));
  EXPECT_EQ(layout, (Layout{{{x}, {}}}));
  EXPECT_TRUE(extendLayout(mesh, rule, rule.results[0], axes, layout, {true, false}));
  EXPECT_EQ(layout, (Layout{{{x}, {z}}}));
  EXPECT_TRUE(extendLayout(mesh, rule, rule.results[0], axes, layout, {false, false}));
  EXPECT_EQ(layout, (Layout{{{x, y}, {z}}}));
}

TEST_F(Merged, ADimensionOfTwoFactorsIsExtendedInOrder) {
  rule.addFactor(2), rule.addFactor(4);
  rule.operands = {{{0, 1}}};
  Layout layout{{{}}};
  EXPECT_FALSE(extendLayout(mesh, rule, rule.operands[0], {{}, {y}}, layout));
  EXPECT_TRUE(extendLayout(mesh, rule, rule.operands[0], {{x}, {y}}, layout));
  EXPECT_EQ(layout, (Layout{{{x, y}}}));
  Layout closed{{{x}}};
  EXPECT_FALSE(extendLayout(mesh, rule, rule.operands[0], {{x}, {y}}, closed, {true}));
}

} // namespace conflictResolutionTest
