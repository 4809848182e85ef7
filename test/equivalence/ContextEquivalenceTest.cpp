//===- ContextEquivalenceTest.cpp - Sequences split over devices ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Context parallelism in all forms, with everything else: losses and parameters are those of one
// device.
//
//===----------------------------------------------------------------------===//

#include "test/equivalence/Training.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace contextEquivalenceTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// Sizes that all meshes here divide, so that all forms are possible: 12 key-value heads, and 24
/// positions.
const Model kLlama = {"Llama", R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 48,
  "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 24,
  "num_key_value_heads": 12, "max_position_embeddings": 32, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": false})",
                      8, 24};
/// Learned positions.
const Model kGpt2 = {"Gpt2", R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 32,
  "n_embd": 48, "n_layer": 2, "n_head": 12, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})",
                     8, 24};
/// Masks belong to positions.
const Model kGpt2Dropout = {"Gpt2Dropout", R"({"model_type": "gpt2", "vocab_size": 64,
  "n_positions": 32, "n_embd": 48, "n_layer": 2, "n_head": 12, "attn_pdrop": 0.2,
  "embd_pdrop": 0.1, "resid_pdrop": 0.1})",
                            8, 24};
/// 15 positions and 2 key-value heads, which no mesh divides.
const Model kLlamaOdd = {"LlamaOdd", R"({"model_type": "llama", "vocab_size": 61,
  "hidden_size": 36, "intermediate_size": 50, "num_hidden_layers": 2, "num_attention_heads": 6,
  "num_key_value_heads": 2, "max_position_embeddings": 15, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": true})",
                         7, 15};
/// Windows in every other layer, and soft caps.
const Model kGemma2 = {"Gemma2", R"({"model_type": "gemma2", "vocab_size": 64, "hidden_size": 48,
  "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 12,
  "num_key_value_heads": 12, "head_dim": 4, "max_position_embeddings": 32, "sliding_window": 5,
  "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0, "query_pre_attn_scalar": 4})",
                       4, 24};
/// Windows in all layers: shorter than a piece of a sequence, or longer.
const Model kMistral = {"Mistral", R"({"model_type": "mistral", "vocab_size": 64,
  "hidden_size": 48, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 12,
  "num_key_value_heads": 12, "max_position_embeddings": 32, "sliding_window": 9,
  "tie_word_embeddings": false})",
                        4, 24};
/// Not causal: each token sees all.
const Model kBert = {"Bert", R"({"model_type": "bert", "vocab_size": 64, "hidden_size": 48,
  "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 12,
  "max_position_embeddings": 32, "type_vocab_size": 2, "hidden_dropout_prob": 0,
  "attention_probs_dropout_prob": 0})",
                     4, 24, /*eps=*/1e-4, /*losses=*/false,
                     // They have gradients of nothing but rounding.
                     /*freeze=*/{"*key.bias"}};
/// Experts, which take the first tokens of each sequence that choose them.
const Model kMixtral = {"Mixtral", R"({"model_type": "mixtral", "vocab_size": 64,
  "hidden_size": 48, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 12,
  "num_key_value_heads": 12, "max_position_embeddings": 32, "num_local_experts": 4,
  "num_experts_per_tok": 2, "rms_norm_eps": 1e-5, "tie_word_embeddings": false})",
                        8, 12};

/// Sinks, a window in the first layer, and experts with biases, whose gates and values are clamped.
const Model kGptOss = {"GptOss", R"({"model_type": "gpt_oss", "vocab_size": 64,
  "hidden_size": 48, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 12,
  "num_key_value_heads": 12, "head_dim": 4, "max_position_embeddings": 32, "sliding_window": 5,
  "num_local_experts": 4, "num_experts_per_tok": 2, "swiglu_limit": 0.1})",
                       8, 12, /*eps=*/1e-4};

/// Documents that share sequences, with padding.
Model packed(Model model, const char *name) {
  model.name = name;
  model.packed = true;
  model.eps = 1e-4;
  return model;
}

class ContextEquivalence
    : public testing::TestWithParam<std::tuple<Model, const char *, const char *>> {};
class ContextBf16 : public ContextEquivalence {};

} // namespace

TEST_P(ContextEquivalence, EqualsOneDevice) {
  auto [model, mesh, exchange] = GetParam();
  expectEqualsOneDevice(model, std::string(mesh) + " context_exchange=" + exchange);
}

TEST_P(ContextBf16, IsNearOneDevice) {
  auto [model, mesh, exchange] = GetParam();
  expectLossesNear(
      trainOnce(model, "dtype=bf16"),
      train(model, strategy(std::string(mesh) + " dtype=bf16 context_exchange=" + exchange)),
      kBf16Tolerance);
}

static const char *kForms[] = {"all-gather", "all-to-all", "ring"};
/// Those that ask nothing of the numbers of heads.
static const char *kByPosition[] = {"all-gather", "ring"};

static const char *kStrategies[] = {
    "cp=2",
    "cp=3",
    "cp=4",
    "cp=3 m=2",
    "dp=2,cp=2 zero=1",
    "dp=2,cp=2 zero=3 m=2",
    "cp=4 zero=2",
    "cp=2,tp=2",
    "cp=3,tp=2 sp",
    "cp=2,tp=3 sp m=2",
    "pp=2,cp=2 m=2 zero=1",
    "cp=4 recompute=full",
    "dp=2,cp=3 zero=2 m=2",
    "fsdp=2,cp=2,tp=2 sp m=2 zero=3 recompute=selective",
    "dp=2,pp=2,cp=2 m=2 schedule=zb-h1 zero=1",
    "pp=2,cp=2,tp=2 m=2 schedule=interleaved chunks=2 recompute=full",
};
static const char *kFewStrategies[] = {"cp=2", "cp=3 m=2", "cp=4", "dp=2,cp=2,tp=2 sp zero=1"};

static std::string nameOf(const testing::TestParamInfo<ContextEquivalence::ParamType> &info) {
  auto [model, mesh, exchange] = info.param;
  std::string name = std::string(model.name) + "_" + strategyName(mesh) + "_" + exchange;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

using testing::Combine;
using testing::Values;
using testing::ValuesIn;

INSTANTIATE_TEST_SUITE_P(ContextLlama, ContextEquivalence,
                         Combine(Values(kLlama), ValuesIn(kStrategies), ValuesIn(kForms)), nameOf);
INSTANTIATE_TEST_SUITE_P(ContextModels, ContextEquivalence,
                         Combine(Values(kGpt2, kGemma2, kMistral, kBert,
                                        packed(kLlama, "PackedLlama"),
                                        packed(kMistral, "PackedMistral")),
                                 ValuesIn(kFewStrategies), ValuesIn(kForms)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(ContextBf16, ContextBf16,
                         Combine(Values(kLlama, kMistral), ValuesIn(kFewStrategies),
                                 ValuesIn(kForms)),
                         nameOf);
/// Groups of devices split heads, and exchange keys and values between the groups.
static const char *kNestedStrategies[] = {
    "cp=4 context_heads=2",
    "cp=6 context_heads=3 m=2",
    "cp=6 context_heads=2 recompute=full",
    "dp=2,cp=4 context_heads=2 zero=3 m=2",
    "cp=4,tp=3 context_heads=2 sp zero=1",
    "pp=2,cp=4 context_heads=2 m=2 schedule=zb-h1",
};
INSTANTIATE_TEST_SUITE_P(ContextNested, ContextEquivalence,
                         Combine(Values(kLlama, kGemma2), ValuesIn(kNestedStrategies),
                                 ValuesIn(kByPosition)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(ContextNestedModels, ContextEquivalence,
                         Combine(Values(kGpt2, kMistral, kBert, packed(kLlama, "PackedLlama"),
                                        kMixtral, kGptOss),
                                 Values("cp=4 context_heads=2"), Values("auto")),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(ContextOdd, ContextEquivalence,
                         Combine(Values(kLlamaOdd, packed(kLlamaOdd, "PackedLlamaOdd")),
                                 ValuesIn(kFewStrategies), ValuesIn(kByPosition)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(ContextDropout, ContextEquivalence,
                         Combine(Values(kGpt2Dropout), ValuesIn(kFewStrategies),
                                 Values("all-gather", "all-to-all", "auto")),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(ContextExperts, ContextEquivalence,
                         Combine(Values(kMixtral, kGptOss),
                                 Values("cp=2", "cp=2,ep=2", "dp=2,cp=3,ep=2 m=2 zero=1",
                                        "ep=2,cp=2,tp=2 sp"),
                                 ValuesIn(kForms)),
                         nameOf);

} // namespace contextEquivalenceTest
