//===- StrategyEquivalenceTest.cpp - Equivalence of strategies ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Trains small models on one device and on meshes of virtual devices, from the same seed and on the
// same samples, and compares every loss and the final parameters.
//
//===----------------------------------------------------------------------===//

#include "test/equivalence/Training.h"

#include <gtest/gtest.h>

namespace strategyEquivalenceTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// Sizes that every mesh here divides, except meshes of 3 devices along an axis.
const Model kGpt2 = {"Gpt2", R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 32,
  "n_embd": 32, "n_layer": 2, "n_head": 8, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})",
                     16, 16};
const Model kLlama = {"Llama", R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 32,
  "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 8,
  "num_key_value_heads": 4, "max_position_embeddings": 32, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": false})",
                      16, 16};

/// Sizes that hardly any mesh divides: 61 words, 6 heads, 50 in the MLP, 14 samples of 15 tokens.
/// The embeddings are the other way round: GPT-2's are not tied, Llama's are.
const Model kGpt2Odd = {
    "Gpt2Odd", R"({"model_type": "gpt2", "vocab_size": 61, "n_positions": 15,
  "n_embd": 30, "n_layer": 2, "n_head": 6, "n_inner": 50, "attn_pdrop": 0, "embd_pdrop": 0,
  "resid_pdrop": 0, "tie_word_embeddings": false})",
    // AdamW divides by the root of the second moment: with this, less is made of
    // gradients that are all rounding, which differs from one processor to another.
    14, 15, /*eps=*/1e-4};
/// Fewer key-value heads than devices on most axes "tp" below.
const Model kLlamaOdd = {"LlamaOdd", R"({"model_type": "llama", "vocab_size": 61,
  "hidden_size": 36, "intermediate_size": 50, "num_hidden_layers": 2, "num_attention_heads": 6,
  "num_key_value_heads": 2, "max_position_embeddings": 15, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": true})",
                         14, 15};
/// One key-value head for all.
const Model kLlamaOneKv = {"LlamaOneKv", R"({"model_type": "llama", "vocab_size": 64,
  "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 8,
  "num_key_value_heads": 1, "max_position_embeddings": 16, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": true})",
                           13, 16};

/// Images, which their configurations say the sequences of: four patches and the class token, and
/// six of them. The second model has sizes that hardly any mesh divides. Neither has biases of
/// keys, which start at 0 and have gradients of nothing but rounding.
const Model kVit = {"Vit", R"({"model_type": "vit", "image_size": 8, "patch_size": 4,
  "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 8,
  "num_labels": 8, "qkv_bias": false})",
                    16, /*seq=*/0};
const Model kVitOdd = {"VitOdd", R"({"model_type": "vit", "image_size": [6, 9], "patch_size": 3,
  "hidden_size": 30, "intermediate_size": 50, "num_hidden_layers": 2, "num_attention_heads": 6,
  "num_labels": 7, "num_channels": 1, "qkv_bias": false})",
                       14, /*seq=*/0};

/// Widths and a vocabulary that ZeRO divides by padding, along two dimensions, or with shards of
/// nothing but padding.
const Model kGpt2Uneven = {"Gpt2Uneven", R"({"model_type": "gpt2", "vocab_size": 23,
  "n_positions": 6, "n_embd": 10, "n_layer": 2, "n_head": 2, "n_inner": 14, "attn_pdrop": 0,
  "embd_pdrop": 0, "resid_pdrop": 0})",
                           24, 6, /*eps=*/1e-4};

class StrategyEquivalence : public testing::TestWithParam<std::tuple<Model, const char *>> {};

} // namespace

TEST_P(StrategyEquivalence, EqualsOneDevice) {
  auto [model, mesh] = GetParam();
  expectEqualsOneDevice(model, mesh);
}

/// Strategies of any model.
static const char *kStrategies[] = {
    // Data parallelism and microbatches.
    "m=2",
    "m=3",
    "m=4",
    "dp=2",
    "dp=3",
    "dp=2 m=2",
    "dp=3 m=3",
    "dp=4 m=4",
    "dp=2,fsdp=2",
    "dp=2,fsdp=3 m=2",
    // Tensor parallelism, and with it the vocabulary.
    "tp=2",
    "tp=3",
    "tp=4",
    "tp=8",
    "tp=2 m=4",
    "dp=2,tp=2",
    "dp=2,tp=2 m=2",
    "dp=2,tp=4 m=3",
    "dp=3,tp=4",
    "tp=2,dp=2 m=4",
    "dp=4,tp=4",
    // Sequence parallelism.
    "tp=2 sp",
    "tp=3 sp m=2",
    "tp=4 sp",
    "dp=2,tp=4 sp m=2",
    // ZeRO.
    "dp=2 zero=1",
    "dp=3 zero=2",
    "dp=2,fsdp=2 zero=2 m=2",
    "dp=2,tp=2 zero=1 m=4",
    "fsdp=3,tp=4 zero=2",
    // All at once.
    "dp=2,tp=2 zero=1 sp",
    "fsdp=2,tp=3 zero=2 sp m=3",
};

/// ZeRO splits parameters as well: they are gathered for each layer, in buckets.
static const char *kZero3Strategies[] = {
    "dp=4 zero=3",
    "fsdp=4 zero=3 m=3",
    "dp=2,fsdp=3 zero=3",
    "dp=2,tp=2 m=2 zero=3 sp",
    "dp=2,fsdp=2,tp=2 m=2 zero=3 sp",
    "dp=2,fsdp=2,tp=4 m=3 zero=3 sp",
};

/// Numbers of devices that the model does not divide by, alone and with other kinds of parallelism.
static const char *kUnevenZeroStrategies[] = {
    "dp=3 zero=1",          "dp=4 zero=2",
    "dp=4 zero=3",          "dp=6 zero=1",
    "dp=6 zero=2 m=2",      "dp=7 zero=3",
    "dp=12 zero=3",         "dp=24 zero=1",
    "dp=2,fsdp=6 zero=3",   "dp=3,tp=2 zero=3 sp",
    "dp=6,tp=2 zero=2 m=2", "dp=6,pp=2 m=2 zero=1",
    "dp=4,pp=2 m=3 zero=3", "dp=4,tp=2,pp=2 m=2 zero=2 schedule=zb-h1",
    "dp=4,cp=3 zero=3 m=2",
};

/// Recomputed values have the same bits.
static const char *kRecomputeStrategies[] = {
    "recompute=full",
    "m=3 recompute=selective",
    "dp=2 m=2 recompute=full",
    "dp=2,tp=2 recompute=full sp",
    "dp=2 zero=2 m=2 recompute=selective",
    "dp=2,fsdp=2 zero=3 m=2 recompute=full",
    "fsdp=2,tp=3 zero=3 m=3 recompute=selective sp",
    "dp=2,tp=2 m=2 recompute=gathers sp",
};

/// 16 samples divide; with 13 or 14 the last devices have fewer, and the eighth one has none.
static const char *kEvenStrategies[] = {"dp=4",      "dp=8",         "dp=4,tp=2",
                                        "dp=2,tp=4", "dp=16 zero=1", "dp=16 zero=3"};
static const char *kOddStrategies[] = {"dp=5", "dp=8", "dp=7 zero=1", "dp=7,tp=2 zero=2",
                                       "dp=5,tp=3 sp"};

static std::string nameOf(const testing::TestParamInfo<StrategyEquivalence::ParamType> &info) {
  return std::string(std::get<0>(info.param).name) + "_" + strategyName(std::get<1>(info.param));
}

using testing::Combine;
using testing::Values;
using testing::ValuesIn;

INSTANTIATE_TEST_SUITE_P(Gpt2, StrategyEquivalence, Combine(Values(kGpt2), ValuesIn(kStrategies)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Gpt2Odd, StrategyEquivalence,
                         Combine(Values(kGpt2Odd), ValuesIn(kStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(Llama, StrategyEquivalence, Combine(Values(kLlama), ValuesIn(kStrategies)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(LlamaOdd, StrategyEquivalence,
                         Combine(Values(kLlamaOdd), ValuesIn(kStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(LlamaOneKv, StrategyEquivalence,
                         Combine(Values(kLlamaOneKv), ValuesIn(kStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(EvenBatch, StrategyEquivalence,
                         Combine(Values(kGpt2, kLlama), ValuesIn(kEvenStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(OddBatch, StrategyEquivalence,
                         Combine(Values(kGpt2Odd, kLlamaOdd, kLlamaOneKv, kVitOdd),
                                 ValuesIn(kOddStrategies)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Vit, StrategyEquivalence,
                         Combine(Values(kVit, kVitOdd), ValuesIn(kStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(Recompute, StrategyEquivalence,
                         Combine(Values(kGpt2, kLlama, kLlamaOdd, kVitOdd),
                                 ValuesIn(kRecomputeStrategies)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Zero3, StrategyEquivalence,
                         Combine(Values(kGpt2, kGpt2Odd, kLlama, kLlamaOdd, kLlamaOneKv, kVitOdd),
                                 ValuesIn(kZero3Strategies)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(UnevenZero, StrategyEquivalence,
                         Combine(Values(kGpt2Uneven), ValuesIn(kUnevenZeroStrategies)), nameOf);

} // namespace strategyEquivalenceTest
