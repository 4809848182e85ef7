//===- PipelineEquivalenceTest.cpp - Equivalence of pipelines -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// As StrategyEquivalenceTest.cpp, for models that are cut into the stages of a pipeline. A pipeline
// moves work and changes no sum: it is compared to the same strategy without one bit by bit, too.
// But the table that GPT-2 and some Llamas use at both ends has a gradient of two parts. Where its
// two uses are in different stages, each sums its part over the microbatches and these two are
// added; without stages, the parts are added for each microbatch. So models with such a table are
// compared bit by bit to the two-stage pipeline of the same strategy.
//
//===----------------------------------------------------------------------===//

#include "test/equivalence/Training.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <gtest/gtest.h>

namespace pipelineEquivalenceTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// With AdamW's usual eps, elements of deep models whose gradients are nearly zero take steps that
/// rounding decides, and any two strategies with other sums differ by more than the bound. This is
/// small against nearly all other gradients still.
constexpr double kEps = 1e-4;

/// Seven layers, a number that no number of stages here divides. The embeddings are tied.
const Model kGpt2 = {"Gpt2", R"({"model_type": "gpt2", "vocab_size": 48, "n_positions": 16,
  "n_embd": 16, "n_layer": 7, "n_head": 4, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})",
                     16, 8, kEps};
/// Five layers; the embeddings are not tied.
const Model kLlama = {"Llama", R"({"model_type": "llama", "vocab_size": 48, "hidden_size": 16,
  "intermediate_size": 24, "num_hidden_layers": 5, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 16, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": false})",
                      16, 8, kEps};
/// The embeddings are the other way round, and hardly any mesh divides sizes.
const Model kGpt2Odd = {"Gpt2Odd", R"({"model_type": "gpt2", "vocab_size": 61, "n_positions": 15,
  "n_embd": 18, "n_layer": 5, "n_head": 6, "n_inner": 50, "attn_pdrop": 0, "embd_pdrop": 0,
  "resid_pdrop": 0, "tie_word_embeddings": false})",
                        14, 9, kEps};
const Model kLlamaOdd = {"LlamaOdd", R"({"model_type": "llama", "vocab_size": 61,
  "hidden_size": 24, "intermediate_size": 50, "num_hidden_layers": 3, "num_attention_heads": 6,
  "num_key_value_heads": 2, "max_position_embeddings": 15, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": true})",
                         14, 9, kEps};
/// One layer, which stages share, and one key-value head.
const Model kLlamaOneKv = {"LlamaOneKv", R"({"model_type": "llama", "vocab_size": 64,
  "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 8,
  "num_key_value_heads": 1, "max_position_embeddings": 16, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": false})",
                           13, 16, kEps};

bool isTied(const Model &model) {
  return model.config == kGpt2.config || model.config == kLlamaOdd.config;
}

/// The strategy without its pipeline and without recomputation; `pipeline` takes its place: "" or
/// "pp=2".
std::string withoutPipeline(const std::string &text, const std::string &pipeline) {
  std::string mesh = pipeline, rest;
  llvm::SmallVector<llvm::StringRef> parts, axes;
  llvm::StringRef(text).split(parts, ' ', -1, /*KeepEmpty=*/false);
  parts.front().split(axes, ',');
  for (llvm::StringRef axis : axes)
    if (!axis.starts_with("pp="))
      mesh += (mesh.empty() ? "" : ",") + axis.str();
  for (llvm::StringRef part : llvm::drop_begin(parts))
    if (!part.starts_with("schedule=") && !part.starts_with("chunks=") &&
        !part.starts_with("stages=") && !part.starts_with("recompute="))
      rest += " " + part.str();
  return mesh + rest;
}

class PipelineEquivalence : public testing::TestWithParam<std::tuple<Model, const char *>> {};
/// Where a pipeline changes the order of a sum.
class PipelineRounding : public PipelineEquivalence {};

} // namespace

TEST_P(PipelineEquivalence, EqualsOneDevice) {
  auto [model, text] = GetParam();
  bool oneSum = strategy(text).microbatches == 1 || !isTied(model);
  for (const Model &each : inBothPrecisions(model)) {
    SCOPED_TRACE(each.f64 ? "f64" : "f32");
    TrainingRun run = train(each, strategy(text));
    expectClose(trainOnce(each, ""), run);
    SCOPED_TRACE("bit by bit");
    expectSameBits(trainOnce(each, withoutPipeline(text, oneSum ? "" : "pp=2")), run);
  }
}

TEST_P(PipelineRounding, EqualsOneDevice) {
  auto [model, text] = GetParam();
  expectEqualsOneDevice(model, text);
}

// Where dp is slow, ZeRO 3 gathers some parameters once a step, in buckets before the loop over
// microbatches: a bucket reads what its ops read, and has no operands.
TEST(PipelineOfSlowLinks, EqualsOneDevice) {
  const Model model = {"LlamaThreeHeads", R"({"model_type": "llama", "vocab_size": 64,
    "hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 3,
    "num_key_value_heads": 3, "max_position_embeddings": 16, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": false})",
                       4, 8, kEps};
  for (const char *text : {"pp=2,dp=2,tp=2 zero=3", "pp=2,dp=2,tp=2 m=2 zero=3"}) {
    SCOPED_TRACE(text);
    CompileOptions options = strategy(text);
    options.links = {{"dp", {1e8, 1e-6}}, {"tp", {3e11, 1e-8}}};
    expectClose(trainOnce(model, ""), train(model, options));
  }
}

// Nothing depends on which device is faster: both runs have the same bits.
TEST(PipelineRepetition, HasTheSameBits) {
  for (const char *text :
       {"pp=4 m=4", "dp=2,pp=2,tp=2 m=3 zero=3 sp schedule=zb-v",
        "pp=3,dp=2 m=4 zero=2 schedule=interleaved chunks=2", "pp=4,tp=2 m=8 schedule=zb-h1"}) {
    SCOPED_TRACE(text);
    expectSameBits(train(kGpt2, strategy(text)), train(kGpt2, strategy(text)));
  }
}

/// Strategies of any model with at least three layers.
static const char *kStrategies[] = {
    // Every schedule, with more microbatches than stages, and as many, and fewer.
    "pp=2 m=4",
    "pp=3 m=4",
    "pp=4 m=2",
    "pp=2",
    "pp=2 m=4 schedule=naive",
    "pp=3 schedule=naive",
    "pp=4 m=4 schedule=gpipe",
    "pp=3 m=2 schedule=gpipe",
    "pp=2 m=4 schedule=interleaved chunks=2",
    "pp=4 m=2 schedule=interleaved chunks=2",
    "pp=2 m=3 schedule=interleaved chunks=3",
    "pp=3 m=7 schedule=interleaved chunks=3",
    "pp=2 m=4 schedule=zb-h1",
    "pp=4 m=1 schedule=zb-h1",
    "pp=5 m=3 schedule=zb-h1",
    "pp=2 m=4 schedule=zb-v",
    "pp=3 m=2 schedule=zb-v",
    "pp=4 m=7 schedule=zb-v",
    // More stages than layers.
    "pp=8 m=3",
    "pp=16 m=2 schedule=gpipe",
    // With data parallelism and ZeRO.
    "pp=2,dp=2 m=4",
    "dp=3,pp=2 m=2 schedule=zb-h1",
    "dp=2,pp=4 m=3 zero=1",
    "pp=3,dp=2 m=3 zero=1 schedule=interleaved chunks=2",
    "dp=4,pp=2 zero=2 schedule=gpipe",
    "dp=4,pp=4 zero=3 schedule=zb-v",
    // With tensor and sequence parallelism.
    "tp=2,pp=2 m=4",
    "pp=4,tp=4 m=2 schedule=gpipe",
    "pp=3,tp=3 m=3 schedule=zb-h1",
    "pp=2,tp=2 m=4 sp schedule=zb-v",
    "tp=4,pp=2 sp m=2 schedule=interleaved chunks=2",
    // All at once.
    "dp=2,pp=2,tp=2 m=2 zero=1 sp schedule=naive",
    "pp=2,dp=2,tp=3 zero=2 sp schedule=zb-h1",
    "dp=2,tp=2,pp=2 m=3 schedule=zb-v shard:batch=dp+tp",
    "dp=2,fsdp=2,pp=2,tp=2 zero=3 sp schedule=interleaved chunks=3",
};

/// ZeRO with microbatches: gradients are scattered, and with stage 3 parameters gathered, for each
/// of them.
static const char *kZeroStrategies[] = {
    "dp=2,pp=2 m=4 zero=2",
    "pp=3,dp=2 m=4 zero=3",
    "pp=2,dp=2 m=3 zero=3 schedule=naive",
    "pp=2,dp=2 m=4 zero=3 schedule=gpipe",
    "dp=2,pp=2 m=4 zero=2 schedule=interleaved chunks=3",
    "dp=2,pp=3 m=2 zero=3 schedule=interleaved chunks=2",
    "dp=3,pp=2 m=2 zero=2 schedule=zb-h1",
    "dp=2,pp=4 m=2 zero=3 schedule=zb-h1",
    "dp=2,pp=2,tp=2 m=4 zero=2 schedule=zb-v",
    "dp=2,pp=2,tp=2 m=2 zero=3 sp schedule=zb-v",
    "dp=2,fsdp=2,tp=2,pp=2 m=2 zero=3 sp",
};

/// Recomputation in stages, in all forms and with several schedules; fewer microbatches than
/// stages, and uneven stages.
static const char *kRecomputeStrategies[] = {
    "pp=2 m=4 recompute=full",
    "pp=4 m=2 recompute=selective",
    "pp=3 m=7 recompute=full schedule=interleaved chunks=3",
    "pp=4 m=3 recompute=full schedule=zb-h1",
    "pp=2,dp=2 m=4 zero=1 recompute=selective schedule=zb-v",
    "dp=2,pp=4 zero=3 recompute=full",
    "dp=2,pp=2,tp=2 m=3 sp recompute=full",
    "dp=2,pp=2,tp=2 zero=2 m=1 sp recompute=selective schedule=gpipe",
};
static const char *kGpt2RecomputePins[] = {
    "pp=2 m=3 stages=h.0|h.1-h.6 recompute=full",
    "pp=4,dp=2 m=3 stages=wte|h.0-h.4|h.5|h.6 zero=1 recompute=selective schedule=zb-h1",
};
static const char *kLlamaRecomputePins[] = {
    "pp=2,dp=2 m=4 zero=3 stages=layers.0-layers.3|layers.4 recompute=full",
    "pp=3,tp=2 m=2 stages=embed_tokens|layers.0-layers.4|norm,lm_head,loss recompute=full",
};

/// The user's stages: uneven ones, cuts around the embedding and before the loss, one layer each.
static const char *kGpt2Pins[] = {
    "pp=2 m=3 stages=h.0|h.1-h.6",
    "pp=2 m=4 stages=wte|wpe schedule=zb-h1",
    "pp=3 m=4 stages=wte,wpe|h.0-h.6|ln_f,lm_head,loss schedule=gpipe",
    "pp=4 m=5 stages=h.0|h.1|h.2-h.5|loss",
    "pp=2,dp=2 m=4 zero=1 stages=h.0-h.1|h.2|h.3-h.6|lm_head schedule=zb-v",
    "pp=2,tp=2 m=2 sp stages=wte|h.0|h.1-h.5|h.6|ln_f|loss schedule=interleaved chunks=3",
};
static const char *kLlamaPins[] = {
    "pp=2 m=3 stages=layers.0-layers.3|layers.4",
    "pp=3 m=4 stages=embed_tokens|layers.0-layers.4|norm,lm_head,loss schedule=zb-h1",
    "pp=2,dp=2 m=2 zero=3 stages=layers.0|layers.1|layers.2|layers.3-layers.4 schedule=zb-v",
    "pp=7 m=4 stages=embed_tokens|layers.0|layers.1|layers.2|layers.3|layers.4|norm,lm_head",
};

/// A single layer in several stages.
static const char *kShallowStrategies[] = {
    "pp=2 m=3",
    "pp=4 m=2 schedule=zb-h1",
    "pp=2 m=2 schedule=interleaved chunks=3",
    "pp=2,dp=2,tp=2 m=2 zero=1 schedule=zb-v",
};

static std::string nameOf(const testing::TestParamInfo<PipelineEquivalence::ParamType> &info) {
  return std::string(std::get<0>(info.param).name) + "_" + strategyName(std::get<1>(info.param));
}

using testing::Combine;
using testing::Values;
using testing::ValuesIn;

INSTANTIATE_TEST_SUITE_P(PipelineGpt2, PipelineEquivalence,
                         Combine(Values(kGpt2), ValuesIn(kStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(PipelineLlama, PipelineEquivalence,
                         Combine(Values(kLlama), ValuesIn(kStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(PipelineOdd, PipelineEquivalence,
                         Combine(Values(kGpt2Odd, kLlamaOdd), ValuesIn(kStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(PipelineZero, PipelineEquivalence,
                         Combine(Values(kLlama, kLlamaOdd), ValuesIn(kZeroStrategies)), nameOf);
// A cut may separate queries, keys and values, whose weight is one tensor in GPT-2: the parts of
// its gradient are joined when all microbatches are summed, and not for each of them.
INSTANTIATE_TEST_SUITE_P(PipelineZero, PipelineRounding,
                         Combine(Values(kGpt2, kGpt2Odd), ValuesIn(kZeroStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(PipelineRecompute, PipelineEquivalence,
                         Combine(Values(kGpt2, kLlama), ValuesIn(kRecomputeStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(PipelineRecomputePinsGpt2, PipelineEquivalence,
                         Combine(Values(kGpt2), ValuesIn(kGpt2RecomputePins)), nameOf);
INSTANTIATE_TEST_SUITE_P(PipelineRecomputePinsLlama, PipelineEquivalence,
                         Combine(Values(kLlama), ValuesIn(kLlamaRecomputePins)), nameOf);
INSTANTIATE_TEST_SUITE_P(PipelinePinsGpt2, PipelineEquivalence,
                         Combine(Values(kGpt2), ValuesIn(kGpt2Pins)), nameOf);
INSTANTIATE_TEST_SUITE_P(PipelinePinsLlama, PipelineEquivalence,
                         Combine(Values(kLlama), ValuesIn(kLlamaPins)), nameOf);
INSTANTIATE_TEST_SUITE_P(PipelineShallow, PipelineEquivalence,
                         Combine(Values(kLlamaOneKv), ValuesIn(kShallowStrategies)), nameOf);

} // namespace pipelineEquivalenceTest
