//===- DimensionClassesTest.cpp - Dimensions that are split together ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DimensionClasses.h"

#include "test/lib/compile/PlannerCases.h"

#include <gtest/gtest.h>

namespace dimensionClassesTest {

using namespace dtc;
using namespace dtc::test;

namespace {

class DimensionClassesOf : public testing::Test {
protected:
  DimensionClasses analyse(const char *text) {
    module = compiler.parse(text);
    EXPECT_TRUE(module) << compiler.diagnostics();
    function = *module->getOps<mlir::func::FuncOp>().begin();
    return DimensionClasses(function);
  }
  /// The class of a dimension of an argument.
  static DimensionClass find(const DimensionClasses &classes, unsigned argument, unsigned dim) {
    for (const DimensionClass &group : classes.classes())
      for (auto [a, d] : group.arguments)
        if (a == argument && d == dim)
          return group;
    ADD_FAILURE() << "dimension " << dim << " of argument " << argument << " has no class";
    return {};
  }
  using Dims = std::vector<std::pair<unsigned, unsigned>>;

  PlannerContext compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
};

TEST_F(DimensionClassesOf, HiddenDimensionsOfAnMlp) {
  DimensionClasses classes = analyse(R"(
func.func @loss(%w0: tensor<16x64xf32> {dtc.param = "w0", dtc.axes = ["", "hidden"]},
                %b0: tensor<64xf32> {dtc.param = "b0"},
                %w1: tensor<64x4xf32> {dtc.param = "w1"},
                %x: tensor<32x16xf32> {dtc.input = "x"},
                %y: tensor<32xi32> {dtc.input = "y"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,ih->bh" %x, %w0 : (tensor<32x16xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  %1 = dtc.broadcast %b0 dims [1] : (tensor<64xf32>) -> tensor<32x64xf32>
  %2 = dtc.add %0, %1 : tensor<32x64xf32>
  %3 = dtc.relu %2 : tensor<32x64xf32>
  %4 = dtc.einsum "bh,hc->bc" %3, %w1 : (tensor<32x64xf32>, tensor<64x4xf32>) -> tensor<32x4xf32>
  %5, %6 = dtc.cross_entropy %4, %y : (tensor<32x4xf32>, tensor<32xi32>) -> (tensor<32xf32>, tensor<32xf32>)
  %7 = dtc.reduce sum %5 dims [0] : (tensor<32xf32>) -> tensor<f32>
  return %7 : tensor<f32>
})");
  EXPECT_EQ(classes.classes().size(), 4u) << "features, hidden, classes, batch";
  DimensionClass hidden = find(classes, 0, 1);
  EXPECT_EQ(hidden.arguments, (Dims{{0, 1}, {1, 0}, {2, 0}}));
  EXPECT_EQ(hidden.names, std::set<std::string>{"hidden"});
  EXPECT_EQ(hidden.size, 64);
  EXPECT_FALSE(hidden.isTwiceInValue);
  EXPECT_EQ(find(classes, 0, 0).arguments, (Dims{{0, 0}, {3, 1}})) << "features";
  EXPECT_EQ(find(classes, 2, 1).arguments, (Dims{{2, 1}})) << "classes";
  EXPECT_EQ(find(classes, 3, 0).arguments, (Dims{{3, 0}, {4, 0}})) << "the batch";
}

TEST_F(DimensionClassesOf, Attention) {
  DimensionClasses classes = analyse(R"(
func.func @loss(%wq: tensor<8x16xf32> {dtc.param = "wq"},
                %wk: tensor<8x16xf32> {dtc.param = "wk"},
                %wo: tensor<16x8xf32> {dtc.param = "wo"},
                %x: tensor<2x6x8xf32> {dtc.input = "x"}) -> tensor<f32> {
  %q = dtc.reshape %wq : (tensor<8x16xf32>) -> tensor<8x4x4xf32>
  %k = dtc.reshape %wk : (tensor<8x16xf32>) -> tensor<8x4x4xf32>
  %o = dtc.reshape %wo : (tensor<16x8xf32>) -> tensor<4x4x8xf32>
  %0 = dtc.einsum "bsd,dhe->bshe" %x, %q : (tensor<2x6x8xf32>, tensor<8x4x4xf32>) -> tensor<2x6x4x4xf32>
  %1 = dtc.einsum "bsd,dhe->bshe" %x, %k : (tensor<2x6x8xf32>, tensor<8x4x4xf32>) -> tensor<2x6x4x4xf32>
  %2 = dtc.einsum "bshe,bthe->bhst" %0, %1 : (tensor<2x6x4x4xf32>, tensor<2x6x4x4xf32>) -> tensor<2x4x6x6xf32>
  %3 = dtc.softmax %2 : tensor<2x4x6x6xf32>
  %4 = dtc.einsum "bhst,bthe->bshe" %3, %1 : (tensor<2x4x6x6xf32>, tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32>
  %5 = dtc.einsum "bshe,hed->bsd" %4, %o : (tensor<2x6x4x4xf32>, tensor<4x4x8xf32>) -> tensor<2x6x8xf32>
  %6 = dtc.reduce sum %5 dims [0, 1, 2] : (tensor<2x6x8xf32>) -> tensor<f32>
  return %6 : tensor<f32>
})");
  DimensionClass heads = find(classes, 0, 1);
  EXPECT_EQ(heads.arguments, (Dims{{0, 1}, {1, 1}, {2, 0}}));
  EXPECT_EQ(heads.size, 4) << "a dimension of 16 is four heads of four";
  EXPECT_FALSE(heads.isTwiceInValue);
  DimensionClass sequence = find(classes, 3, 1);
  EXPECT_TRUE(sequence.isTwiceInValue) << "scores have queries and keys";
  EXPECT_EQ(sequence.arguments, (Dims{{3, 1}}));
  EXPECT_FALSE(find(classes, 3, 0).isTwiceInValue) << "the batch";
  EXPECT_EQ(find(classes, 0, 0).arguments, (Dims{{0, 0}, {1, 0}, {3, 2}}));
  mlir::Block &body = function.front();
  auto scores = std::next(body.begin(), 5)->getResult(0);
  EXPECT_TRUE(classes.areTogether(scores, 2, scores, 3));
  EXPECT_TRUE(classes.areTogether(scores, 1, body.getArgument(0), 1));
  EXPECT_FALSE(classes.areTogether(scores, 0, scores, 1));
}

/// The table of tokens is at both ends.
TEST_F(DimensionClassesOf, TiedEmbeddings) {
  DimensionClasses classes = analyse(R"(
func.func @loss(%wte: tensor<32x8xf32> {dtc.param = "wte"},
                %x: tensor<2x6xi32> {dtc.input = "x"}, %y: tensor<2x6xi32> {dtc.input = "y"}) -> tensor<f32> {
  %0 = dtc.embedding %wte, %x : (tensor<32x8xf32>, tensor<2x6xi32>) -> tensor<2x6x8xf32>
  %1 = dtc.einsum "bsd,vd->bsv" %0, %wte : (tensor<2x6x8xf32>, tensor<32x8xf32>) -> tensor<2x6x32xf32>
  %2, %3 = dtc.cross_entropy %1, %y : (tensor<2x6x32xf32>, tensor<2x6xi32>) -> (tensor<2x6xf32>, tensor<2x6xf32>)
  %4 = dtc.reduce sum %2 dims [0, 1] : (tensor<2x6xf32>) -> tensor<f32>
  return %4 : tensor<f32>
})");
  EXPECT_EQ(classes.classes().size(), 4u) << "vocabulary, width, batch, sequence";
  EXPECT_EQ(find(classes, 0, 0).arguments, (Dims{{0, 0}}));
  EXPECT_EQ(find(classes, 0, 0).size, 32);
  EXPECT_EQ(find(classes, 1, 1).arguments, (Dims{{1, 1}, {2, 1}}));
  mlir::Value logits = std::next(function.front().begin(), 1)->getResult(0);
  EXPECT_TRUE(classes.areTogether(logits, 2, function.getArgument(0), 0));
}

} // namespace

} // namespace dimensionClassesTest
