//===- PrecisionEquivalenceTest.cpp - Precision settings, any strategy ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Dropout, 16-bit floats, losses with labels that do not count and frozen parameters: each gives on
// any strategy what it gives on one device.
//
//===----------------------------------------------------------------------===//

#include "test/equivalence/Training.h"

#include <cstring>
#include <gtest/gtest.h>

namespace precisionEquivalenceTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// The same but for what drops out.
#define GPT2(RATES)                                                                                \
  R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 32, "n_embd": 32, "n_layer": 2, )"    \
  R"("n_head": 8, )" RATES "}"
#define NO_DROPOUT R"("attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0)"
#define LLAMA(RATE)                                                                                \
  R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, )"      \
  R"("num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4, )"                \
  R"("max_position_embeddings": 32, "rms_norm_eps": 1e-5, "tie_word_embeddings": false, )"         \
  R"("attention_dropout": )" RATE "}"

const double kEps = CompileOptions().eps;
/// AdamW divides by the root of the second moment: with this, less is made of gradients that are
/// all rounding.
const double kLargeEps = 1e-4;
const Model kGpt2 = {"Gpt2", GPT2(NO_DROPOUT), 16, 16};
const Model kLlama = {"Llama", LLAMA("0.0"), 16, 16};
const Model kGpt2Dropout = {
    "Gpt2Dropout", GPT2(R"("attn_pdrop": 0.1, "embd_pdrop": 0.2, "resid_pdrop": 0.3)"), 16, 16};
const Model kLlamaDropout = {"LlamaDropout", LLAMA("0.25"), 16, 16, kLargeEps};
const Model kGpt2Losses = {"Gpt2Losses", GPT2(NO_DROPOUT), 16, 16, kEps, /*losses=*/true};
const Model kLlamaLosses = {"LlamaLosses", LLAMA("0.0"), 16, 16, kEps, /*losses=*/true};
const Model kGpt2Frozen = {"Gpt2Frozen",
                           GPT2(NO_DROPOUT),
                           16,
                           16,
                           kEps,
                           /*losses=*/false,
                           {"transformer.wte.*", "transformer.h.0.attn.*"}};

class PrecisionEquivalence : public testing::TestWithParam<std::tuple<Model, const char *>> {};
class Bf16Equivalence : public PrecisionEquivalence {};

} // namespace

TEST_P(PrecisionEquivalence, EqualsOneDevice) {
  auto [model, mesh] = GetParam();
  expectEqualsOneDevice(model, mesh);
}

TEST_P(Bf16Equivalence, IsNearOneDevice) {
  auto [model, mesh] = GetParam();
  expectLossesNear(trainOnce(model, "dtype=bf16"),
                   train(model, strategy(std::string(mesh) + " dtype=bf16")), kBf16Tolerance);
}

/// Which elements drop out does not depend on what is recomputed: the bits are the same.
TEST(DropoutEquivalence, RecomputationDrawsTheSameMasks) {
  for (const Model &model : {kGpt2Dropout, kLlamaDropout})
    for (const char *mesh : {"m=4", "dp=2,tp=2 m=2", "pp=2 m=4"})
      for (const char *mode : {"selective", "full"}) {
        SCOPED_TRACE(std::string(model.name) + " " + mesh + " " + mode);
        expectSameBits(trainOnce(model, mesh),
                       train(model, strategy(std::string(mesh) + " recompute=" + mode)));
      }
}

TEST(DropoutEquivalence, ChangesTheLoss) {
  EXPECT_NE(trainOnce(kGpt2, "").losses, trainOnce(kGpt2Dropout, "").losses);
}

/// A loss in chunks of tokens is the loss of all of them, and its gradients are the same.
TEST(LossChunks, EqualOneLoss) {
  for (const char *mesh :
       {"loss_chunks=16", "dp=2,tp=2 m=2 zero=1 loss_chunks=4 sp", "cp=2 loss_chunks=2",
        "pp=2 m=2 loss_chunks=2", "tp=2 m=2 recompute=full loss_chunks=2"}) {
    SCOPED_TRACE(mesh);
    expectEqualsOneDevice(kGpt2Losses, mesh);
  }
  expectEqualsOneDevice(kLlamaLosses, "dp=2,tp=4 loss_chunks=4");
}

/// Training in 16 bits follows training in f32.
TEST(MixedPrecision, FollowsF32) {
  for (const Model &model : {kGpt2, kLlama, kGpt2Losses})
    for (const char *dtype : {"bf16", "f16"}) {
      SCOPED_TRACE(std::string(model.name) + " " + dtype);
      expectLossesNear(
          trainOnce(model, ""),
          train(model, strategy(std::string("dp=2,tp=2,pp=2 m=4 zero=1 dtype=") + dtype)),
          kBf16Tolerance);
    }
}

TEST(MixedPrecision, SumsGradientsIn16BitsOnRequest) {
  expectLossesNear(trainOnce(kGpt2, "dtype=bf16"),
                   train(kGpt2, strategy("dp=4 zero=2 m=2 dtype=bf16 grads=bf16")), kBf16Tolerance);
}

/// All optimizers, on a strategy that splits everything.
TEST(Optimizers, EqualOneDevice) {
  for (const char *optimizer : {"adam", "sgd"}) {
    SCOPED_TRACE(optimizer);
    expectEqualsOneDevice(kLlama, "dp=2,tp=2,pp=2 m=4 zero=1",
                          std::string(" optimizer=") + optimizer);
  }
  // The sign that Lion takes of a gradient that is all rounding is as good as random.
  expectLossesNear(trainOnce(kLlama, "optimizer=lion"),
                   train(kLlama, strategy("dp=2,tp=2,pp=2 m=4 zero=1 optimizer=lion")), 1e-2);
}

/// A frozen parameter keeps its bits, has no state, and the others train.
TEST(FrozenParameters, KeepTheirBits) {
  const TrainingRun &frozen = trainOnce(kGpt2Frozen, "");
  const TrainingRun &other = trainOnce(kGpt2Frozen, "fsdp=2,tp=2 zero=3 m=2");
  const TrainingRun &all = trainOnce(kGpt2, "");
  for (const auto &[name, tensor] : frozen.parameters) {
    bool isFrozen =
        name.starts_with("transformer.wte.") || name.starts_with("transformer.h.0.attn.");
    if (isFrozen)
      EXPECT_TRUE(tensor.bytes == other.parameters.at(name).bytes) << name;
    EXPECT_FALSE(tensor.bytes == all.parameters.at(name).bytes) << name;
  }
}

static std::string nameOf(const testing::TestParamInfo<PrecisionEquivalence::ParamType> &info) {
  return std::string(std::get<0>(info.param).name) + "_" + strategyName(std::get<1>(info.param));
}

using testing::Combine;
using testing::Values;
using testing::ValuesIn;

INSTANTIATE_TEST_SUITE_P(Dropout, PrecisionEquivalence,
                         Combine(Values(kGpt2Dropout, kLlamaDropout), ValuesIn(kSettingStrategies)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Losses, PrecisionEquivalence,
                         Combine(Values(kGpt2Losses, kLlamaLosses), ValuesIn(kSettingStrategies)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Frozen, PrecisionEquivalence,
                         Combine(Values(kGpt2Frozen), ValuesIn(kSettingStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(Models, Bf16Equivalence,
                         Combine(Values(kGpt2, kLlama, kGpt2Losses, kGpt2Frozen),
                                 ValuesIn(kSettingStrategies)),
                         nameOf);

#undef GPT2
#undef NO_DROPOUT
#undef LLAMA

} // namespace precisionEquivalenceTest
