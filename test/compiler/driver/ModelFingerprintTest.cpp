//===- ModelFingerprintTest.cpp - Tests of fingerprints of models ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/compile/CompileAndRun.h"

#include "plan/plan.pb.h"

#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <gtest/gtest.h>

namespace modelFingerprintTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// A model that is compiled, and how.
struct Described {
  std::string config = R"({"model_type": "gpt2", "vocab_size": 19, "n_positions": 9, "n_embd": 16,
    "n_head": 2, "n_layer": 2, "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1})";
  int64_t batch = 8, seq = 8;
  ImportOptions import = {};
  std::string strategy;
  std::function<void(CompileOptions &)> change = nullptr;
  std::function<void(mlir::ModuleOp)> edit = nullptr;

  Described &replace(const std::string &text, const std::string &by) {
    config.replace(config.find(text), text.size(), by);
    return *this;
  }
};

const char *kLlama = R"({"model_type": "llama", "vocab_size": 17, "hidden_size": 16,
  "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 16, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": true})";

plan::Plan describe(const Described &model) {
  Compiler compiler;
  auto module =
      compiler.importText(model.config, "config.json", model.batch, model.seq, model.import);
  EXPECT_TRUE(module) << compiler.diagnostics();
  if (!module)
    return {};
  if (model.edit)
    model.edit(*module);
  CompileOptions options = strategy(model.strategy);
  if (model.change)
    model.change(options);
  std::shared_ptr<plan::Plan> plan = compiler.compileCopy(*module, options);
  EXPECT_TRUE(plan) << model.strategy << ": " << compiler.diagnostics();
  return plan ? *plan : plan::Plan();
}

std::string fingerprint(const Described &model) { return describe(model).model_fingerprint(); }

} // namespace

TEST(ModelFingerprint, HasThirtyTwoDigits) {
  EXPECT_EQ(fingerprint({}).size(), 32u);
  EXPECT_EQ(fingerprint({}).find_first_not_of("0123456789abcdef"), std::string::npos);
}

// They do not affect training; the treatment of tokens that find no row does.
TEST(ModelFingerprint, HasNoMetrics) {
  Described model = {.config = R"({"model_type": "mixtral", "vocab_size": 17, "hidden_size": 16,
    "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2})",
                     .import = {.balanceLoss = BalanceLoss::Sequence}};
  std::string expected = fingerprint(model);
  model.import.expertMetrics = true;
  EXPECT_EQ(fingerprint(model), expected);
  model.import.capacityFactor = 1.25;
  std::string dropping = fingerprint(model);
  EXPECT_NE(dropping, expected);
  model.import.mustFit = true;
  model.import.expertMetrics = false;
  EXPECT_EQ(fingerprint(model), dropping);
}

TEST(ModelFingerprint, IsThatOfEveryStrategy) {
  std::string expected = fingerprint({});
  for (const char *text :
       {"dp=2", "dp=2,tp=2 m=2 zero=1", "fsdp=2 zero=3 m=2", "tp=2 sp dtype=bf16", "dp=2 dtype=f16",
        "pp=2 m=4", "pp=2 m=4 schedule=auto", "pp=2 m=4 schedule=zb-h1 recompute=full",
        "dp=2 recompute=selective accumulate", "dp=4 shard:batch=dp", "optimizer=lion"})
    EXPECT_EQ(fingerprint({.strategy = text}), expected) << text;
  EXPECT_EQ(
      fingerprint(
          {.change = [](CompileOptions &options) { options.freeze = {"transformer.h.0.*"}; }}),
      expected);
  EXPECT_EQ(fingerprint({.change =
                             [](CompileOptions &options) {
                               options.clip = 0;
                               options.weightDecay = 0;
                               options.paramGroups = {"*.bias:lr_scale=0.5"};
                             }}),
            expected);
}

/// Also where the sequence is as long as the table of positions, and where there is one token.
TEST(ModelFingerprint, HasNoBatchSequenceAndElementType) {
  for (const std::string &config : {Described().config, std::string(kLlama)})
    for (bool ignores : {false, true})
      for (const char *lora : {"", "all-linear"}) {
        ImportOptions import;
        if (ignores)
          import.ignoreIndex = -100;
        import.zLoss = 1e-4;
        if (*lora)
          import.lora = LoraOptions{2, 4, 0.1, { lora }};
        std::string expected = fingerprint({.config = config, .import = import});
        for (auto [batch, seq] :
             {std::pair<int64_t, int64_t>{1, 8}, {6, 8}, {8, 9}, {3, 5}, {1, 1}, {2, 1}})
          EXPECT_EQ(fingerprint({.config = config, .batch = batch, .seq = seq, .import = import}),
                    expected)
              << config << " " << batch << " x " << seq;
        EXPECT_EQ(fingerprint({.config = config, .import = import, .edit = toDouble}), expected);
      }
}

TEST(ModelFingerprint, IsThatOfTheText) {
  Compiler compiler;
  Described model;
  auto built = compiler.importText(model.config, "config.json", model.batch, model.seq);
  ASSERT_TRUE(built);
  std::string text;
  llvm::raw_string_ostream(text) << *built;
  auto parsed = compiler.parse(text);
  ASSERT_TRUE(parsed) << compiler.diagnostics();
  EXPECT_EQ(compiler.compileCopy(*parsed, strategy("dp=2"))->model_fingerprint(), fingerprint({}));
}

TEST(ModelFingerprint, ShardingsDoNotCount) {
  const char *text = R"(
    dist.mesh @mesh <"dp"=2>
    func.func @loss(%x: tensor<8x16xf32> {dtc.input = "x" MARK},
                    %w: tensor<16x32xf32> {dtc.param = "w"}) -> tensor<f32> {
      %h = dtc.einsum "bi,ij->bj" %x, %w : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
      CONSTRAIN
      %s = dtc.reduce sum %USED dims [0, 1] : (tensor<8x32xf32>) -> tensor<f32>
      return %s : tensor<f32>
    })";
  auto with = [&](const std::string &mark, const std::string &constrain, const std::string &used) {
    std::string edited = text;
    for (const auto &[from, to] : {std::pair<std::string, std::string>{"MARK", mark},
                                   {"CONSTRAIN", constrain},
                                   {"USED", used}})
      edited.replace(edited.find(from), from.size(), to);
    Compiler compiler;
    auto module = compiler.parse(edited);
    EXPECT_TRUE(module) << compiler.diagnostics();
    auto plan = compiler.compileCopy(*module, {});
    EXPECT_TRUE(plan) << compiler.diagnostics();
    return plan->model_fingerprint();
  };
  EXPECT_EQ(
      with("", "", "h"),
      with(", dist.sharding = #dist.sharding<@mesh, [{\"dp\"}, {}]>, dtc.axes = [\"b\", \"\"]",
           "%c = dist.constrain %h to <@mesh, [{\"dp\"}, {}]> : tensor<8x32xf32>", "c"));
}

TEST(ModelFingerprint, DiffersWithTheModel) {
  std::string same = fingerprint({});
  EXPECT_NE(fingerprint(Described().replace("\"n_head\": 2", "\"n_head\": 4")), same);
  EXPECT_NE(fingerprint(Described().replace("}", ", \"activation_function\": \"relu\"}")), same);
  EXPECT_NE(fingerprint(Described().replace("}", ", \"layer_norm_epsilon\": 1e-6}")), same);
  EXPECT_NE(fingerprint(Described().replace("\"n_layer\": 2", "\"n_layer\": 3")), same);
  for (const char *rate : {"attn_pdrop", "embd_pdrop", "resid_pdrop"})
    EXPECT_NE(fingerprint(Described().replace(std::string("\"") + rate + "\": 0.1",
                                              std::string("\"") + rate + "\": 0.5")),
              same)
        << rate;
  ImportOptions changed;
  changed.dropout = false;
  EXPECT_NE(fingerprint({.import = changed}), same);
  changed = {};
  changed.labelSmoothing = 0.1;
  EXPECT_NE(fingerprint({.import = changed}), same);
  changed = {};
  changed.zLoss = 1e-4;
  std::string withZLoss = fingerprint({.import = changed});
  EXPECT_NE(withZLoss, same);
  changed.zLoss = 1e-3;
  EXPECT_NE(fingerprint({.import = changed}), withZLoss);
}

TEST(ModelFingerprint, DiffersWithAdapters) {
  auto adapted = [](double alpha, double dropout) {
    ImportOptions import;
    import.lora = LoraOptions{2, alpha, dropout, { "all-linear" }};
    return fingerprint({.import = import});
  };
  std::string same = adapted(4, 0.1);
  EXPECT_NE(same, fingerprint({}));
  EXPECT_NE(same, adapted(8, 0.1));
  EXPECT_NE(same, adapted(4, 0.2));
  EXPECT_EQ(same, adapted(4, 0.1));
}

TEST(UpdateSettings, SayWhatTheOptimizersDoNot) {
  auto settings = [](std::function<void(CompileOptions &)> change, CompileMode mode) {
    return describe({.change =
                         [&](CompileOptions &options) {
                           options.mode = mode;
                           change(options);
                         }})
        .update_settings();
  };
  auto change = [](CompileOptions &options) {
    options.clip = 0.01;
    options.paramGroups = {"*.bias:weight_decay=0.0,lr_scale=0.50", "*wte*:weight_decay=0.5",
                           "*wpe*:lr_scale=2"};
  };
  EXPECT_EQ(settings(change, CompileMode::Train),
            "clip=0.01, *.bias:lr_scale=0.5, *wpe*:lr_scale=2");
  EXPECT_EQ(settings([](CompileOptions &) {}, CompileMode::Train), "clip=1");
  EXPECT_EQ(settings(change, CompileMode::Forward), "");
}

} // namespace modelFingerprintTest
