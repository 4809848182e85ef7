//===- AxisMapsTest.cpp - Tests of the search for axis maps ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/AxisMaps.h"

#include "compiler/planner/RepeatedLayers.h"
#include "compiler/planner/SearchSpace.h"
#include "test/lib/compile/PlannerCases.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <gtest/gtest.h>

namespace axisMapsTest {

using namespace dtc;
using namespace dtc::test;

namespace {

using Strings = std::vector<std::string>;

mlir::func::FuncOp functionOf(mlir::ModuleOp module) {
  return *module.getOps<mlir::func::FuncOp>().begin();
}

/// The decisions of an imported model, as a search finds them.
class AxisDecisions : public testing::Test {
protected:
  std::vector<AxisDecision> decisionsOf(const PlannedModel &model, bool isNamed,
                                        const Strings &fixed = {}) {
    module = importCase(compiler, model);
    EXPECT_TRUE(module) << compiler.diagnostics();
    if (!isNamed)
      removeNames(*module);
    ReducedModel shortened = removeRepeatedLayers(*module, 1);
    int64_t layers = shortened.layers;
    return findAxisDecisions(functionOf(*module), fixed, shortened.prefix, layers, layers);
  }
  /// The dimensions of each decision.
  static Strings dimsOf(const std::vector<AxisDecision> &decisions) {
    Strings result;
    for (const AxisDecision &decision : decisions)
      result.push_back(llvm::join(decision.isDefault() ? decision.names : decision.dims, " "));
    llvm::sort(result);
    return result;
  }

  PlannerContext compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(AxisDecisions, NamesOfTheDefaultMapAreOffAndOn) {
  auto decisions = decisionsOf({.name = "gpt2"}, /*isNamed=*/true);
  // Dimensions without a name in a model that has some are decisions as well: queries, keys and
  // values.
  llvm::erase_if(decisions, [](const AxisDecision &decision) {
    return decision.dims == Strings{"transformer.h.*.attn.c_attn.weight#1"} ||
           decision.dims == Strings{"transformer.h.*.attn.c_attn.bias#0"};
  });
  EXPECT_EQ(dimsOf(decisions), (Strings{"heads", "mlp", "vocab"}));
  for (const AxisDecision &decision : decisions) {
    EXPECT_TRUE(decision.isDefault());
    EXPECT_TRUE(decision.entries(true).empty());
    EXPECT_EQ(decision.entries(false), Strings{decision.names.front() + "="});
    EXPECT_GT(decision.bytes, 0);
  }
}

/// Query heads and those of keys and values are split together.
TEST_F(AxisDecisions, NamesOfOneClassAreOneDecision) {
  EXPECT_EQ(dimsOf(decisionsOf({.name = "llama"}, true)),
            (Strings{"heads kv_heads", "mlp", "vocab"}));
}

/// Without names the same dimensions are found, once for all layers, and the model's width, which
/// excludes the others.
TEST_F(AxisDecisions, LayersThatRepeatAreOneDecision) {
  auto decisions = decisionsOf({.name = "gpt2", .layers = 4}, /*isNamed=*/false);
  Strings dims = dimsOf(decisions);
  auto contains = [&](const char *text) { return llvm::is_contained(dims, text); };
  EXPECT_TRUE(contains("transformer.h.*.attn.c_proj.weight#0")) << llvm::join(dims, "\n");
  EXPECT_TRUE(contains("transformer.h.*.mlp.c_fc.bias#0 transformer.h.*.mlp.c_fc.weight#1 "
                       "transformer.h.*.mlp.c_proj.weight#0"))
      << llvm::join(dims, "\n");
  EXPECT_TRUE(contains("transformer.wte.weight#0")) << llvm::join(dims, "\n");
  for (const AxisDecision &decision : decisions) {
    EXPECT_FALSE(decision.isDefault());
    EXPECT_TRUE(decision.entries(false).empty());
    EXPECT_EQ(decision.entries(true).front(), decision.dims.front() + "=tp");
    if (decision.dims.front() == "transformer.h.*.attn.c_proj.weight#0") {
      EXPECT_EQ(decision.size, 4) << "heads, not what they are long";
      EXPECT_EQ(decision.bytes, 4.0 * 64 * 64 * 4) << "of four layers";
    }
  }
}

/// The user's entries stay as they are.
TEST_F(AxisDecisions, WhatIsFixedIsNone) {
  PlannedModel gpt2{.name = "gpt2"};
  auto namesBeside = [&](const Strings &fixed) {
    auto decisions = decisionsOf(gpt2, true, fixed);
    llvm::erase_if(decisions, [](const AxisDecision &decision) { return !decision.isDefault(); });
    return dimsOf(decisions);
  };
  EXPECT_EQ(namesBeside({"mlp=", "batch=dp"}), (Strings{"heads", "vocab"}));
  EXPECT_EQ(namesBeside({"transformer.h.2.mlp.c_fc.weight#1=tp"}), (Strings{"heads", "vocab"}));
  size_t all = decisionsOf(gpt2, false).size();
  for (const char *entry :
       {"transformer.h.*.mlp.c_fc.weight#1=tp", "transformer.h.2.mlp.c_proj.weight#0=dp"})
    EXPECT_EQ(decisionsOf(gpt2, false, {entry}).size(), all - 1) << entry;
}

/// Layers that hand one dimension on are no repetition of it: each has a decision of its own.
TEST_F(AxisDecisions, DimensionsBetweenLayers) {
  module = compiler.parse(R"(
func.func @loss(%a: tensor<8x8xf32> {dtc.param = "layers.0.w"},
                %b: tensor<8x8xf32> {dtc.param = "layers.1.w"},
                %x: tensor<4x8xf32> {dtc.input = "x"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,ij->bj" %x, %a : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("layers.0")
  %1 = dtc.einsum "bi,ij->bj" %0, %b : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("layers.1")
  %2 = dtc.reduce sum %1 dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %2 : tensor<f32>
})");
  ASSERT_TRUE(module) << compiler.diagnostics();
  ReducedModel shortened = removeRepeatedLayers(*module, 1);
  EXPECT_EQ(shortened.prefix, "layers.");
  auto decisions = findAxisDecisions(functionOf(*module), {}, shortened.prefix, 2, 2);
  EXPECT_EQ(dimsOf(decisions),
            (Strings{"layers.0.w#0 x#1", "layers.0.w#1 layers.1.w#0", "layers.1.w#1"}));
}

TEST_F(AxisDecisions, TheBatchIsTheFirstDimensionOfInputs) {
  module = importCase(compiler, {.name = "gpt2", .layers = 2, .batch = 6});
  removeNames(*module);
  EXPECT_EQ(findBatchDims(functionOf(*module)), (Strings{"tokens#0", "labels#0"}));
  ModelProperties traits = findProperties(*module, 2);
  EXPECT_TRUE(traits.hasBatch);
  EXPECT_EQ(traits.batch, 6);
  EXPECT_EQ(traits.samplePositions, 32);
  EXPECT_FALSE(traits.hasTensorAxes) << "none that has a name";
  Strings dims = {"x#0", "y#0"};
  EXPECT_EQ(batchEntries(dims, {{"pp", 2}, {"dp", 2}, {"fsdp", 4}, {"tp", 2}}),
            (Strings{"x#0=dp+fsdp", "y#0=dp+fsdp"}));
  EXPECT_EQ(batchEntries(dims, {{"tp", 2}}), (Strings{"x#0=", "y#0="}));
}

/// A dimension that a parameter has as well is no batch, nor is one of two sizes, or one that a
/// value has twice, one without elements, one of another name, or one that an axis map cannot name.
TEST_F(AxisDecisions, WhatIsNoBatch) {
  for (
      const char *text : {
          R"(func.func @loss(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
  %0 = dtc.mul %x, %w : tensor<4xf32>
  return %0 : tensor<4xf32>
})",
          R"(func.func @loss(%x: tensor<4xf32> {dtc.input = "x"}, %y: tensor<5xf32> {dtc.input = "y"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
})",
          R"(func.func @loss(%x: tensor<4x4xf32> {dtc.input = "x"}) -> tensor<4x4xf32> {
  %0 = dtc.transpose %x permutation [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = dtc.add %x, %0 : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
})",
          R"(func.func @loss(%x: tensor<0x8xf32> {dtc.input = "x"}, %y: tensor<4xf32> {dtc.input = "y"}) -> tensor<4xf32> {
  return %y : tensor<4xf32>
})",
          R"(func.func @loss(%x: tensor<4xf32> {dtc.input = "x", dtc.axes = ["seq"]}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
})",
          R"(func.func @loss(%x: tensor<4xf32> {dtc.input = "a=b"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
})",
          R"(func.func @loss(%w: tensor<4xf32> {dtc.param = "x"}, %x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
})"}) {
    module = compiler.parse(text);
    ASSERT_TRUE(module) << compiler.diagnostics();
    EXPECT_TRUE(findBatchDims(functionOf(*module)).empty()) << text;
    EXPECT_FALSE(findProperties(*module, 0).hasBatch) << text;
  }
}

/// The descent, with costs that are written down.
class AxisMapSearch : public testing::Test {
protected:
  static AxisDecision named(const char *name) {
    AxisDecision decision;
    decision.names = {name};
    decision.size = 8;
    return decision;
  }
  static AxisDecision unnamed(const char *dim, std::set<unsigned> arguments, int64_t size = 8) {
    AxisDecision decision;
    decision.dims = {dim};
    decision.arguments = std::move(arguments);
    decision.size = size;
    return decision;
  }
  /// Seconds from the entries; 0: does not compile.
  Strings choose(llvm::function_ref<double(const std::set<std::string> &)> seconds, int64_t tp = 2,
                 int64_t most = 100) {
    looked = 0;
    return chooseAxisMap(decisions, tp, most,
                         [&](llvm::ArrayRef<std::string> entries) -> std::optional<AxisMapCost> {
                           ++looked;
                           double cost = seconds({entries.begin(), entries.end()});
                           if (cost == 0)
                             return std::nullopt;
                           return AxisMapCost{cost, 0};
                         });
  }

  std::vector<AxisDecision> decisions;
  int looked = 0;
};

TEST_F(AxisMapSearch, LeavesTheDefaultForAHundredth) {
  decisions = {named("heads"), named("vocab")};
  auto gaining = [](double gain) {
    return [gain](const std::set<std::string> &entries) {
      return entries.contains("heads=") ? 2 : entries.contains("vocab=") ? 1 - gain : 1;
    };
  };
  EXPECT_EQ(choose(gaining(0.05)), Strings{"vocab="});
  EXPECT_EQ(choose(gaining(0.005)), Strings{});
  EXPECT_EQ(choose(gaining(-0.05)), Strings{});
}

/// Devices of tp that all do the same are no axis map, though they need not talk.
TEST_F(AxisMapSearch, SplitsSomething) {
  decisions = {named("heads"), named("vocab")};
  auto cost = [](const std::set<std::string> &entries) { return 3.0 - double(entries.size()); };
  EXPECT_EQ(choose(cost), Strings{"heads="});
}

/// The decision that gains most by itself excludes those that gain more together.
TEST_F(AxisMapSearch, StartsFromEachWhereNothingIsSplit) {
  decisions = {unnamed("embed#0", {0, 1}), unnamed("heads#0", {0}), unnamed("mlp#0", {1})};
  auto cost = [](const std::set<std::string> &entries) {
    EXPECT_LE(entries.count("embed#0=tp") * entries.size(), 1u) << "dimensions of one argument";
    return 10.0 - (entries.contains("embed#0=tp") ? 4 : 0) -
           (entries.contains("heads#0=tp") ? 3 : 0) - (entries.contains("mlp#0=tp") ? 3 : 0);
  };
  EXPECT_EQ(choose(cost), (Strings{"heads#0=tp", "mlp#0=tp"}));
  int all = looked;
  EXPECT_EQ(all, 5) << "no map is looked at twice";
  EXPECT_EQ(choose(cost, 2, /*most=*/2), Strings{"embed#0=tp"});
  EXPECT_EQ(looked, 2);
}

TEST_F(AxisMapSearch, LeavesOutWhatDoesNotCompileOrDivide) {
  decisions = {unnamed("a#0", {0}), unnamed("b#0", {1}, /*size=*/3)};
  auto cost = [](const std::set<std::string> &entries) {
    return entries.contains("a#0=tp") ? 0 : entries.contains("b#0=tp") ? 1 : 2;
  };
  EXPECT_EQ(choose(cost, /*tp=*/2), Strings{}) << "three elements on two devices";
  EXPECT_EQ(choose(cost, /*tp=*/3), Strings{"b#0=tp"});
}

} // namespace

} // namespace axisMapsTest
