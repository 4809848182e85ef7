//===- RepeatedLayersTest.cpp - Models with fewer of their layers ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/RepeatedLayers.h"

#include "compiler/import/ImportModel.h"
#include "compiler/planner/SearchSpace.h"
#include "test/lib/compile/PlannerCases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace repeatedLayersTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// The ops of a model with their types, in order, and its arguments.
std::string shapeOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (auto function : module.getOps<mlir::func::FuncOp>()) {
    for (mlir::BlockArgument argument : function.getArguments())
      out << argument.getType() << " " << function.getArgAttr(argument.getArgNumber(), "dtc.param")
          << "\n";
    if (function.isDeclaration())
      continue;
    for (mlir::Operation &op : function.getBody().front()) {
      out << op.getName();
      for (mlir::Type type : op.getOperandTypes())
        out << " " << type;
      out << " ->";
      for (mlir::Type type : op.getResultTypes())
        out << " " << type;
      out << "\n";
    }
  }
  return text;
}

/// Layers of a product and a nonlinearity; each line of `layers` is their IR with "%in" for what
/// comes in and "#" for the layer's number, from 0.
struct Chain {
  std::string first = "%x", outside;
  std::string argument = "%w#: tensor<8x8xf32> {dtc.param = \"w#\", dtc.init = #dtc.normal<0.1>}";
  std::string body = "%m# = dtc.einsum \"bi,io->bo\" %in, %w# : (tensor<4x8xf32>, "
                     "tensor<8x8xf32>) -> tensor<4x8xf32> loc(\"h.#.mlp\")\n"
                     "%a# = dtc.tanh %m# : tensor<4x8xf32> loc(\"h.#.act\")\n";
  /// Ops that take the place of a layer's body.
  std::map<int, std::string> others, otherArguments;

  std::string str(int layers) const {
    auto number = [](std::string text, int layer, const std::string &in) {
      // "#dtc." begins an attribute.
      for (size_t at = 0; (at = text.find('#', at)) != text.npos; ++at)
        if (text.compare(at, 5, "#dtc.") != 0)
          text.replace(at, 1, std::to_string(layer));
      for (size_t at = 0; (at = text.find("%in", at)) != text.npos;)
        text.replace(at, 3, in);
      return text;
    };
    auto of = [](const std::map<int, std::string> &map, int layer, const std::string &otherwise) {
      auto it = map.find(layer);
      return it == map.end() ? otherwise : it->second;
    };
    std::string text = "func.func @loss(%x: tensor<4x8xf32> {dtc.input = \"x\"}", in = first;
    for (int layer = 0; layer < layers; ++layer)
      text += ",\n" + number(of(otherArguments, layer, argument), layer, in);
    text += ") -> tensor<f32> {\n";
    for (int layer = 0; layer < layers; ++layer) {
      text += number(of(others, layer, body), layer, in);
      in = "%a" + std::to_string(layer);
    }
    text += outside.empty() ? "%out = dtc.tanh " + in + " : tensor<4x8xf32>\n"
                            : number(outside, layers - 1, in);
    return text + "%sum = dtc.reduce sum %out dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>\n"
                  "return %sum : tensor<f32>\n}\n";
  }
};

class RepeatedLayers : public testing::Test {
protected:
  ReducedModel shorten(const std::string &text, int64_t kept = 3) {
    module = compiler.parse(text);
    EXPECT_TRUE(module) << compiler.diagnostics() << text;
    if (!module)
      return {};
    std::string before = shapeOf(*module);
    ReducedModel result = removeRepeatedLayers(*module, kept);
    EXPECT_EQ(shapeOf(*module), before) << "the model itself is left alone";
    EXPECT_TRUE(succeeded(mlir::verify(*result.module)));
    return result;
  }
  void expectWhole(const std::string &text) {
    ReducedModel result = shorten(text);
    ASSERT_TRUE(result.module);
    EXPECT_EQ(result.prefix, "") << text;
    EXPECT_EQ(shapeOf(*result.module), shapeOf(*module));
  }

  PlannerContext compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(RepeatedLayers, ImportedModelsAreLikeOnesOfThreeLayers) {
  for (const char *name : {"gpt2", "llama"})
    for (int64_t layers : {4, 7, 12}) {
      auto whole = importCase(compiler, {.name = name, .layers = layers});
      auto three = importCase(compiler, {.name = name, .layers = 3});
      ReducedModel result = removeRepeatedLayers(*whole, 3);
      EXPECT_TRUE(succeeded(mlir::verify(*result.module)));
      EXPECT_NE(result.prefix, "") << name;
      EXPECT_EQ(result.layers, layers) << name;
      EXPECT_EQ(result.keptLayers, 3);
      EXPECT_EQ(shapeOf(*result.module), shapeOf(*three)) << name << " " << layers;
    }
}

TEST_F(RepeatedLayers, WindowsAndPositionsMayDiffer) {
  ImportOptions options{.batch = 2, .seq = 16};
  ImportLog log;
  const char *config =
      R"({"model_type": "gemma3_text", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32,
          "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "num_hidden_layers": 8,
          "sliding_window": 4, "sliding_window_pattern": 3})";
  auto whole = importModel(compiler.context(), config, "config.json", options, log);
  ASSERT_TRUE(whole);
  ReducedModel result = removeRepeatedLayers(*whole, 3);
  EXPECT_TRUE(succeeded(mlir::verify(*result.module)));
  EXPECT_EQ(result.layers, 8);
  EXPECT_EQ(result.keptLayers, 3);
}

/// The op after the last layer, a choice of the class token's row, is no part of it.
TEST_F(RepeatedLayers, ImagesToo) {
  const char *config = R"({"model_type": "vit", "image_size": 8, "patch_size": 4,
    "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 6, "num_attention_heads": 2,
    "num_labels": 4})";
  ImportLog log;
  ImportOptions options;
  options.batch = 8;
  options.seq = 0;
  auto whole = importModel(compiler.context(), config, "config.json", options, log);
  ASSERT_TRUE(whole);
  ReducedModel reduced = removeRepeatedLayers(*whole, 3);
  EXPECT_EQ(reduced.layers, 6);
  EXPECT_EQ(reduced.keptLayers, 3);
}

TEST_F(RepeatedLayers, AModelWithNoMoreLayersStaysWhole) {
  for (int64_t layers : {1, 2, 3}) {
    auto whole = importCase(compiler, {.name = "gpt2", .layers = layers});
    ReducedModel result = removeRepeatedLayers(*whole, 3);
    EXPECT_EQ(result.prefix, "");
    EXPECT_EQ(shapeOf(*result.module), shapeOf(*whole));
  }
}

/// One layer without experts before those that have them: the model that stays is one of three
/// layers with experts.
TEST_F(RepeatedLayers, AFewUnlikeLayersAtTheBeginningAreTakenOut) {
  auto import = [&](int64_t layers, int64_t dense) {
    std::string config = R"({"model_type": "deepseek_v3", "vocab_size": 32, "hidden_size": 16,
      "intermediate_size": 32, "moe_intermediate_size": 8, "num_attention_heads": 2,
      "num_key_value_heads": 2, "q_lora_rank": null, "kv_lora_rank": 8, "qk_nope_head_dim": 4,
      "qk_rope_head_dim": 4, "v_head_dim": 4, "n_routed_experts": 4, "n_group": 2, "topk_group": 1,
      "num_experts_per_tok": 2, "num_hidden_layers": )" +
                         std::to_string(layers) +
                         ", \"first_k_dense_replace\": " + std::to_string(dense) + "}";
    ImportLog log;
    return importModel(compiler.context(), config, "config.json", {.batch = 2, .seq = 16}, log);
  };
  auto whole = import(16, 2), three = import(3, 0);
  ASSERT_TRUE(whole && three);
  for (bool hasTwoDense : {true, false}) {
    ReducedModel result = removeRepeatedLayers(hasTwoDense ? *whole : *import(9, 1), 3);
    EXPECT_TRUE(succeeded(mlir::verify(*result.module)));
    EXPECT_EQ(result.prefix, "layers.");
    EXPECT_EQ(result.layers, hasTwoDense ? 16 : 9);
    EXPECT_EQ(result.keptLayers, 3);
    EXPECT_EQ(shapeOf(*result.module), shapeOf(*three));
  }
  // More than an eighth of all layers.
  auto many = import(16, 3);
  ReducedModel result = removeRepeatedLayers(*many, 3);
  EXPECT_EQ(result.prefix, "");
  EXPECT_EQ(shapeOf(*result.module), shapeOf(*many));
}

/// The metrics of all layers are results of the function; the model stays without them.
TEST_F(RepeatedLayers, MetricsAreTakenOut) {
  auto import = [&](int64_t layers, bool hasMetrics) {
    std::string config = R"({"model_type": "mixtral", "vocab_size": 32, "hidden_size": 16,
      "intermediate_size": 24, "num_attention_heads": 2, "num_key_value_heads": 2,
      "num_local_experts": 4, "num_experts_per_tok": 2, "num_hidden_layers": )" +
                         std::to_string(layers) + "}";
    ImportOptions options{.batch = 2, .seq = 16};
    options.capacityFactor = 1;
    options.expertMetrics = hasMetrics;
    ImportLog log;
    return importModel(compiler.context(), config, "config.json", options, log);
  };
  for (int64_t layers : {2, 6}) {
    auto whole = import(layers, true), without = import(std::min<int64_t>(layers, 3), false);
    ASSERT_TRUE(whole && without);
    std::string before = shapeOf(*whole);
    ReducedModel result = removeRepeatedLayers(*whole, 3);
    EXPECT_TRUE(succeeded(mlir::verify(*result.module)));
    EXPECT_EQ(result.layers, layers == 6 ? 6 : 0);
    EXPECT_EQ(shapeOf(*result.module), shapeOf(*without));
    EXPECT_EQ(shapeOf(*whole), before) << "the model itself is left alone";
  }
}

TEST_F(RepeatedLayers, HandWrittenLayersLoseTheirParameters) {
  ReducedModel result = shorten(Chain().str(6));
  EXPECT_EQ(result.prefix, "h.");
  EXPECT_EQ(result.layers, 6);
  std::string cut = shapeOf(*result.module);
  shorten(Chain().str(3), 5);
  EXPECT_EQ(cut, shapeOf(*module));
}

TEST_F(RepeatedLayers, OneLayerIsLeftIfAskedFor) {
  ReducedModel result = shorten(Chain().str(4), 1);
  EXPECT_EQ(result.keptLayers, 1);
  std::string cut = shapeOf(*result.module);
  shorten(Chain().str(1));
  EXPECT_EQ(cut, shapeOf(*module));
  EXPECT_EQ(shorten(Chain().str(4), 0).prefix, "") << "none is not some";
}

TEST_F(RepeatedLayers, LayersThatDifferStayWhole) {
  Chain chain;
  std::string other = chain.body;
  other.replace(other.find("dtc.tanh"), 8, "dtc.relu");
  for (int layer : {0, 1, 2, 3, 4}) {
    chain.others = {{layer, other}};
    expectWhole(chain.str(5));
  }
  chain.others = {{4, chain.body + "%b4 = dtc.tanh %a4 : tensor<4x8xf32> loc(\"h.4.more\")\n"}};
  expectWhole(chain.str(5));
}

/// Parameters of the same type that are split in another way.
TEST_F(RepeatedLayers, ParametersThatDifferStayWhole) {
  Chain chain;
  chain.otherArguments[3] = "%w#: tensor<8x8xf32> {dtc.param = \"w#\", dtc.axes = [\"mlp\", \"\"], "
                            "dtc.init = #dtc.normal<0.1>}";
  expectWhole(chain.str(5));
  // The first of two parameters twice, and each once.
  chain = {};
  chain.argument = "%w#: tensor<8x8xf32> {dtc.param = \"w#\", dtc.init = #dtc.normal<0.1>}, "
                   "%v#: tensor<8x8xf32> {dtc.param = \"v#\", dtc.init = #dtc.normal<0.1>}";
  std::string product = "dtc.einsum \"bi,io->bo\" %in, %w# : (tensor<4x8xf32>, tensor<8x8xf32>) -> "
                        "tensor<4x8xf32> loc(\"h.#.mlp\")\n",
              second = product, sum = "%a# = dtc.add %p#, %q# : tensor<4x8xf32> loc(\"h.#.act\")\n";
  second.replace(second.find("%w"), 2, "%v");
  chain.body = "%p# = " + product + "%q# = " + second + sum;
  EXPECT_EQ(shorten(chain.str(5)).layers, 5);
  chain.others[3] = "%p# = " + product + "%q# = " + product + sum;
  expectWhole(chain.str(5));
}

TEST_F(RepeatedLayers, SkipsOverLayersStayWhole) {
  Chain chain;
  chain.others[4] = "%m4 = dtc.add %in, %a1 : tensor<4x8xf32> loc(\"h.4.mlp\")\n"
                    "%a4 = dtc.tanh %m4 : tensor<4x8xf32> loc(\"h.4.act\")\n";
  expectWhole(chain.str(5));
  // The ops after the layers see all of them.
  for (const char *layer : {"%a0", "%a3", "%m4"}) {
    chain = {};
    chain.outside = std::string("%out = dtc.add %in, ") + layer + " : tensor<4x8xf32>\n";
    bool isLast = std::string(layer) == "%m4";
    ReducedModel result = shorten(chain.str(5));
    EXPECT_EQ(result.prefix, isLast ? "h." : "") << layer;
  }
}

TEST_F(RepeatedLayers, AParameterOfAllLayersIsShared) {
  Chain chain;
  chain.argument = "%unused#: tensor<f32> {dtc.input = \"i#\"}";
  chain.otherArguments[0] = Chain().argument;
  std::string &body = chain.body;
  body.replace(body.find("%w#"), 3, "%w0");
  ReducedModel result = shorten(chain.str(5));
  EXPECT_EQ(result.layers, 5);
  EXPECT_NE(shapeOf(*result.module).find("tensor<8x8xf32>"), std::string::npos);
}

TEST_F(RepeatedLayers, NamesThatAreNoLayersStayWhole) {
  auto renamed = [](const std::string &name) {
    Chain chain;
    for (const char *part : {"h.#.mlp", "h.#.act"})
      chain.body.replace(chain.body.find(part), 7, name);
    return chain;
  };
  for (const char *name : {"", "h", "h.x.mlp", ".#", "#.h", "h.0#.mlp", "h.#x.mlp", "..", "h.-1.#",
                           "h.99999999999999999999.#", "h.9223372036854775807.mlp"}) {
    Chain chain = renamed(name);
    if (std::string(name).empty()) // no locations at all
      for (const char *part : {" loc(\"\")", " loc(\"\")"})
        chain.body.erase(chain.body.find(part), 8);
    ReducedModel result = shorten(chain.str(5));
    // Numbers that come before that of the layer make all ops one layer.
    EXPECT_TRUE(result.prefix.empty() || result.layers == 5) << name << ": " << result.prefix;
  }
  // Numbers from 1, with a gap, falling, and a layer in two pieces.
  for (auto [from, to] : {std::pair{0, 7}, {4, 5}, {4, 3}, {4, 0}, {2, 1}}) {
    Chain chain;
    std::string body = chain.body;
    for (size_t at; (at = body.find("h.#.")) != body.npos;)
      body.replace(at, 4, "h." + std::to_string(to) + ".");
    chain.others[from] = body;
    expectWhole(chain.str(5));
  }
}

TEST_F(RepeatedLayers, ModelsWithoutABodyOrWithTwoStayWhole) {
  expectWhole("func.func private @loss()");
  expectWhole("");
  std::string text = Chain().str(5), other = text;
  other.replace(other.find("@loss"), 5, "@more");
  expectWhole(text + other);
}

} // namespace

} // namespace repeatedLayersTest
