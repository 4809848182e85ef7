//===- ShardingRuleTest.cpp - Tests of sharding rules ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/DtcOps.h"

#include "mlir/IR/BuiltinOps.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <map>
#include <random>

namespace shardingRuleTest {

using namespace mlir;
using namespace dtc;
using testing::HasSubstr;

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

namespace {

/// The digits of the parallel factors of the element at a row-major index.
std::map<unsigned, int64_t> getDigits(const ShardingRule &rule, const TensorFactors &dims,
                                      int64_t index) {
  std::map<unsigned, int64_t> digits;
  for (auto &group : llvm::reverse(dims))
    for (unsigned factor : llvm::reverse(group)) {
      if (!rule.factors[factor].whole)
        digits[factor] = index % rule.factors[factor].size;
      index /= rule.factors[factor].size;
    }
  EXPECT_EQ(index, 0);
  return digits;
}

/// A random factorization of `size` into dimensions, some of size 1.
SmallVector<int64_t> splitRandomly(int64_t size, std::mt19937 &random) {
  SmallVector<int64_t> dims;
  while (size > 1) {
    SmallVector<int64_t> divisors;
    for (int64_t divisor = 1; divisor <= size; ++divisor)
      if (size % divisor == 0)
        divisors.push_back(divisor);
    dims.push_back(divisors[random() % divisors.size()]);
    size /= dims.back();
  }
  return dims;
}

} // namespace

/// An element has the same digits before and after the reshape, so that the shards of a parallel
/// factor hold the same elements on both sides.
TEST(ReshapeRule, ParallelFactorsHoldTheSameElements) {
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    int64_t size = 1 + random() % 144;
    SmallVector<int64_t> from = splitRandomly(size, random), to = splitRandomly(size, random);
    ShardingRule rule = makeReshapeRule(from, to);
    for (auto [dims, shape] : {std::pair{rule.operands[0], from}, std::pair{rule.results[0], to}})
      for (auto [group, dimSize] : llvm::zip_equal(dims, shape)) {
        int64_t product = 1;
        for (unsigned factor : group)
          product *= rule.factors[factor].size;
        ASSERT_EQ(product, dimSize);
      }
    for (int64_t index = 0; index < size; ++index)
      ASSERT_EQ(getDigits(rule, rule.operands[0], index), getDigits(rule, rule.results[0], index));
  }
}

TEST(ReshapeRule, SplitsAndMergesAreParallel) {
  ShardingRule rule = makeReshapeRule({16, 768}, {16, 12, 64});
  ASSERT_EQ(rule.factors.size(), 3u);
  for (const Factor &factor : rule.factors)
    EXPECT_FALSE(factor.whole);
}

/// The dimensions of size 1 that a reshape keeps are followed as others are: a batch of one, one
/// position, one head.
TEST(ReshapeRule, DimensionsOfSizeOne) {
  /// For each dimension of `to` the dimension of `from` of the same single factor, or -1.
  auto sources = [](ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
    ShardingRule rule = makeReshapeRule(from, to);
    std::vector<int64_t> found;
    for (const auto &factors : rule.results[0]) {
      auto *same = llvm::find(rule.operands[0], factors);
      bool known = factors.size() == 1 && same != rule.operands[0].end();
      found.push_back(known ? same - rule.operands[0].begin() : -1);
    }
    return found;
  };
  using Dims = std::vector<int64_t>;
  EXPECT_EQ(sources({1, 8, 2, 6}, {1, 8, 12}), (Dims{0, 1, -1}));
  EXPECT_EQ(sources({1, 8, 12}, {1, 8, 2, 6}), (Dims{0, 1, -1, -1}));
  EXPECT_EQ(sources({2, 1, 12}, {2, 1, 2, 6}), (Dims{0, 1, -1, -1}));
  EXPECT_EQ(sources({1, 1, 2, 6}, {1, 1, 12}), (Dims{0, 1, -1}));
  // The heads are one: the first that are left are the same, and the new one has no factor.
  EXPECT_EQ(sources({2, 1, 1, 6}, {2, 1, 6}), (Dims{0, 1, 3}));
  EXPECT_EQ(sources({2, 1, 6}, {2, 1, 1, 6}), (Dims{0, 1, -1, 2}));
  EXPECT_EQ(sources({2, 8, 6, 1}, {2, 8, 6}), (Dims{0, 1, 2}));
  // One that is split off or goes is no other one's.
  EXPECT_EQ(sources({8, 6}, {1, 8, 6}), (Dims{-1, 0, 1}));
  EXPECT_EQ(sources({8, 1, 6}, {1, 8, 6}), (Dims{-1, 0, 2}));
}

//===----------------------------------------------------------------------===//
// The check
//===----------------------------------------------------------------------===//

namespace {

/// Checks rules of `embedding` : v d, s -> s d.
class CheckShardingRule : public testing::Test {
protected:
  void SetUp() override {
    context.loadDialect<DtcDialect>();
    OpBuilder builder(&context);
    auto loc = builder.getUnknownLoc();
    module = ModuleOp::create(loc);
    builder.setInsertionPointToEnd(module->getBody());
    Value table =
        ConstantOp::create(builder, loc, RankedTensorType::get({8, 4}, builder.getF32Type()), 1.0);
    Value ids =
        ConstantOp::create(builder, loc, RankedTensorType::get({6}, builder.getI32Type()), 1.0);
    op = EmbeddingOp::create(builder, loc, table, ids);
    rule = op.getShardingRule();
    v = rule.operands[0][0][0];
    d = rule.operands[0][1][0];
    s = rule.operands[1][0][0];
  }

  LogicalResult check() {
    return checkShardingRule(op, rule, [&] { return op->emitError(); });
  }
  void expectError(const char *error) {
    std::string found;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      found = diagnostic.str();
      return success();
    });
    EXPECT_TRUE(failed(check()));
    EXPECT_THAT(found, HasSubstr(error));
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  EmbeddingOp op;
  ShardingRule rule;
  unsigned v, d, s;
};

} // namespace

TEST_F(CheckShardingRule, Valid) { EXPECT_TRUE(succeeded(check())); }

TEST_F(CheckShardingRule, Size) {
  rule.factors[v].size = 0;
  expectError("has size 0, expected at least 1");
}

TEST_F(CheckShardingRule, WholeWithReduction) {
  rule.factors[v].whole = true;
  expectError("must stay whole and has a reduction");
}

TEST_F(CheckShardingRule, NumberOfTensors) {
  rule.operands.pop_back();
  expectError("the rule has 1 operands, expected the op's 2");
}

TEST_F(CheckShardingRule, NumberOfDimensions) {
  rule.results[0].pop_back();
  expectError("the rule has 1 dimensions for result 0, expected 2");
}

TEST_F(CheckShardingRule, FactorOutOfRange) {
  rule.results[0][0] = {9};
  expectError("result 0 has factor 9, expected less than 3");
}

TEST_F(CheckShardingRule, FactorTwice) {
  rule.operands[0][0] = {d};
  rule.operands[0][1] = {d};
  rule.factors[d].size = 8;
  expectError("operand 0 has factor");
}

TEST_F(CheckShardingRule, Product) {
  rule.factors[d].size = 5;
  expectError("multiply to 5, expected 4");
}

TEST_F(CheckShardingRule, MissingReduction) {
  rule.factors[v].reduction = std::nullopt;
  expectError("a result lacks factor");
}

TEST_F(CheckShardingRule, NeedlessReduction) {
  rule.factors[s].reduction = ReductionKind::Sum;
  expectError("has a reduction, expected an operand with it and a result without");
}

TEST_F(CheckShardingRule, UnusedFactor) {
  rule.addFactor(3);
  expectError("factor 3 is in no operand and no result");
}

TEST_F(CheckShardingRule, LinearOperands) {
  rule.linearOperands = {{2}};
  expectError("linear operand 2, expected less than 2");
  rule.linearOperands = {{0, 0}};
  expectError("linear operand 0 twice in a set");
  rule.linearOperands.assign(1, {});
  expectError("a set of linear operands is empty");
}

TEST_F(CheckShardingRule, IndexedFactors) {
  rule.indexedFactors = {{2, v}};
  expectError("indices in operand 2, expected less than 2");
  rule.indexedFactors = {{1, 7}};
  expectError("indices into factor 7, expected less than 3");
  rule.indexedFactors = {{0, s}};
  expectError("operand 0 holds indices, expected elements of i32");
  rule.indexedFactors = {{1, s}};
  expectError("operand 1 holds indices into its own factor");
}

} // namespace shardingRuleTest
