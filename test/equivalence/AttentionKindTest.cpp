//===- AttentionKindTest.cpp - Attention, fused and as einsums ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A model whose attention is written out, with scores in memory, is the same function as with the
// fused op, masks of dropout included, and gives the same with any strategy.
//
//===----------------------------------------------------------------------===//

#include "test/equivalence/Training.h"

#include <gtest/gtest.h>

namespace attentionKindTest {

using namespace dtc;
using namespace dtc::test;

namespace {

#define GPT2(RATES)                                                                                \
  R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 32, "n_embd": 32, "n_layer": 2, )"    \
  R"("n_head": 8, )" RATES "}"
/// With grouped heads.
#define LLAMA(KV, RATE)                                                                            \
  R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, )"      \
  R"("num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": )" KV                \
  R"(, "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "tie_word_embeddings": false, )"       \
  R"("attention_dropout": )" RATE "}"

/// AdamW divides by the root of the second moment: with this, less is made of gradients that are
/// all rounding.
constexpr double kEps = 1e-4;

Model makeModel(const char *name, const char *config, AttentionKind form, int64_t batch = 16,
                int64_t seq = 16) {
  Model model = {name, config, batch, seq, kEps};
  model.attention = form;
  return model;
}

const char *kGpt2Config = GPT2(R"("attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0)");
const char *kGpt2DropoutConfig =
    GPT2(R"("attn_pdrop": 0.1, "embd_pdrop": 0.2, "resid_pdrop": 0.3)");
const char *kLlamaConfig = LLAMA("4", "0.0");
const char *kLlamaDropoutConfig = LLAMA("4", "0.25");
const char *kLlamaOneKvConfig = LLAMA("1", "0.0");
/// Sizes that no mesh below divides.
const char *kLlamaOddConfig = R"({"model_type": "llama", "vocab_size": 61,
  "hidden_size": 36, "intermediate_size": 50, "num_hidden_layers": 2, "num_attention_heads": 6,
  "num_key_value_heads": 2, "max_position_embeddings": 15, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": true, "attention_dropout": 0.1})";

const AttentionKind kForm = AttentionKind::Decomposed;
const Model kGpt2 = makeModel("DecomposedGpt2", kGpt2Config, kForm);
const Model kGpt2Dropout = makeModel("DecomposedGpt2Dropout", kGpt2DropoutConfig, kForm);
const Model kLlama = makeModel("DecomposedLlama", kLlamaConfig, kForm);
const Model kLlamaDropout = makeModel("DecomposedLlamaDropout", kLlamaDropoutConfig, kForm);
const Model kLlamaOneKv = makeModel("DecomposedLlamaOneKv", kLlamaOneKvConfig, kForm);
const Model kLlamaOdd = makeModel("DecomposedLlamaOdd", kLlamaOddConfig, kForm, 14, 15);

class DecomposedAttention : public testing::TestWithParam<std::tuple<Model, const char *>> {};

} // namespace

/// Rounding aside, and that not much: nothing is summed over more than a head or a sequence.
TEST(AttentionForms, AreTheSameFunction) {
  for (Model model : {kGpt2, kGpt2Dropout, kLlama, kLlamaDropout, kLlamaOneKv, kLlamaOdd}) {
    SCOPED_TRACE(model.name);
    const TrainingRun &decomposed = trainOnce(model, "");
    model.attention = AttentionKind::Fused;
    TrainingRun fused = train(model, strategy(""));
    expectLossesNear(fused, decomposed, 1e-5);
  }
}

TEST_P(DecomposedAttention, EqualsOneDevice) {
  auto [model, mesh] = GetParam();
  expectEqualsOneDevice(model, mesh);
}

/// Recomputed values are the same, masks included.
TEST(AttentionForms, RecomputationKeepsTheBits) {
  for (const Model &model : {kGpt2Dropout, kLlamaDropout})
    for (const char *mesh : {"", "m=4", "dp=2,tp=2 m=2 sp", "dp=2,tp=2,pp=2 m=4"})
      for (const char *mode : {"elementwise", "selective", "full"}) {
        SCOPED_TRACE(std::string(model.name) + " " + mesh + " " + mode);
        expectSameBits(trainOnce(model, mesh),
                       train(model, strategy(std::string(mesh) + " recompute=" + mode)));
      }
}

TEST(AttentionForms, TrainIn16Bits) {
  for (const Model &model : {kGpt2, kLlama})
    for (const char *mesh : {"dtype=bf16", "dp=2,tp=2 m=2 recompute=selective sp dtype=bf16"}) {
      SCOPED_TRACE(std::string(model.name) + " " + mesh);
      expectLossesNear(trainOnce(model, ""), train(model, strategy(mesh)), kBf16Tolerance);
    }
}

static const char *kStrategies[] = {
    "dp=2",
    "dp=3 m=2",
    "tp=2",
    "tp=4 sp",
    "tp=8",
    "cp=2 shard:seq=cp",
    "dp=2,tp=2,pp=2 m=4 recompute=selective",
    "dp=2,tp=2,pp=2 m=4 recompute=full",
    "tp=2,pp=2 m=2 recompute=selective sp",
    "fsdp=2,tp=2 zero=3 m=2 recompute=selective sp",
};
static const char *kOddStrategies[] = {"dp=3", "tp=2", "tp=4", "dp=2,tp=3 recompute=selective sp"};

static std::string nameOf(const testing::TestParamInfo<DecomposedAttention::ParamType> &info) {
  return std::string(std::get<0>(info.param).name) + "_" + strategyName(std::get<1>(info.param));
}

using testing::Combine;
using testing::Values;
using testing::ValuesIn;

INSTANTIATE_TEST_SUITE_P(Attention, DecomposedAttention,
                         Combine(Values(kGpt2, kGpt2Dropout, kLlama, kLlamaDropout),
                                 ValuesIn(kStrategies)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(AttentionOdd, DecomposedAttention,
                         Combine(Values(kLlamaOneKv, kLlamaOdd), ValuesIn(kOddStrategies)), nameOf);

#undef GPT2
#undef LLAMA

} // namespace attentionKindTest
