//===- LoraEquivalenceTest.cpp - Adapters, with any strategy --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Adapters train with any strategy as on one device, beside weights that keep their bits and have
// neither gradients nor state.
//
//===----------------------------------------------------------------------===//

#include "plan/AdapterNames.h"
#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"
#include "test/equivalence/Training.h"
#include "test/lib/plans/TrainStep.h"

#include <gtest/gtest.h>

namespace loraEquivalenceTest {

using namespace dtc;
using namespace dtc::test;

namespace {

const char *kGpt2Config =
    R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 32, "n_embd": 32, "n_layer": 2,
        "n_head": 8, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})";
const char *kLlamaConfig =
    R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4,
        "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "tie_word_embeddings": false})";
const char *kMixtralConfig =
    R"({"model_type": "mixtral", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4,
        "max_position_embeddings": 32, "num_local_experts": 4, "num_experts_per_tok": 2,
        "rms_norm_eps": 1e-5, "tie_word_embeddings": false})";
/// A number of experts that no axis divides, one that all tokens go to, and a layer without
/// experts.
const char *kDeepseekConfig =
    R"({"model_type": "deepseek_v3", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 24,
        "moe_intermediate_size": 10, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 4, "max_position_embeddings": 32, "n_routed_experts": 5,
        "num_experts_per_tok": 2, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
        "first_k_dense_replace": 1, "q_lora_rank": null, "kv_lora_rank": 8, "qk_nope_head_dim": 4,
        "qk_rope_head_dim": 4, "v_head_dim": 4, "rms_norm_eps": 1e-5})";

/// AdamW divides by the root of the second moment: with this, less is made of gradients that are
/// all rounding, which differs from one processor to another.
const double kEps = 1e-4;

Model withLora(const char *name, const char *config, LoraOptions lora) {
  Model model = {name, config, 16, 16, kEps};
  model.lora = std::move(lora);
  return model;
}

// 10 / 3 is no number that few binary digits hold. The first has adapters in every layer.
const Model kGpt2 = withLora("LoraGpt2", kGpt2Config, {3, 10, 0, {"all-linear", "lm_head"}});
const Model kLlama =
    withLora("LoraLlama", kLlamaConfig, {4, 8, 0, {"q_proj", "v_proj", "o_proj", "mlp.down_proj"}});
const Model kLlamaAll = withLora("LoraLlamaAll", kLlamaConfig, {2, 3, 0, {"all-linear"}});
const Model kGpt2Dropout =
    withLora("LoraGpt2Dropout", kGpt2Config, {4, 8, 0.25, {"all-linear", "lm_head"}});
const Model kMixtral = withLora("LoraMixtral", kMixtralConfig, {3, 10, 0, {"all-linear"}});
const Model kMixtralDropout =
    withLora("LoraMixtralDropout", kMixtralConfig, {4, 8, 0.25, {"w1", "w2", "w3"}});
const Model kDeepseek =
    withLora("LoraDeepseek", kDeepseekConfig, {2, 3, 0, {"up_proj", "down_proj", "o_proj"}});

/// Strategies of mixtures: on axes of their own the experts, or the tokens, or both.
constexpr const char *kMixtureStrategies[] = {
    "ep=2",
    "ep=4 m=2",
    "dp=2,ep=2 m=2 zero=1",
    "ep=2,tp=2 m=2",
    "ep=2,tp=2 sp zero=2",
    "fsdp=2,ep=2 zero=3 m=2",
    "dp=2,tp=2 m=2 zero=1",
    "pp=2,ep=2 m=4 zero=1",
    "pp=2,ep=2 m=4 schedule=zb-h1 recompute=full",
    "cp=2,ep=2 m=2 context_exchange=all-gather",
};

class LoraStrategies : public testing::TestWithParam<std::tuple<Model, const char *>> {};
class LoraBf16 : public LoraStrategies {};

std::unique_ptr<runtime::Session> open(Compiler &compiler, const Model &model,
                                       const std::string &text) {
  ImportOptions import;
  import.lora = model.lora;
  auto session =
      compiler.importAndOpen(model.config, model.batch, model.seq, strategy(text), import);
  EXPECT_TRUE(session) << compiler.diagnostics();
  return session;
}

} // namespace

TEST_P(LoraStrategies, EqualOneDevice) {
  auto [model, mesh] = GetParam();
  expectEqualsOneDevice(model, mesh);
}

TEST_P(LoraBf16, IsNearOneDevice) {
  auto [model, mesh] = GetParam();
  expectLossesNear(trainOnce(model, "dtype=bf16"),
                   train(model, strategy(std::string(mesh) + " dtype=bf16")), kBf16Tolerance);
}

TEST(Lora, Bf16FollowsF32) {
  for (const Model &model : {kGpt2, kLlama})
    expectLossesNear(trainOnce(model, ""),
                     train(model, strategy("dp=2,tp=2,pp=2 m=4 zero=1 dtype=bf16")),
                     kBf16Tolerance);
}

/// The base keeps its bits, whatever the strategy and the type; all adapters train, and the loss
/// falls.
TEST(Lora, AdaptersAloneTrain) {
  for (const Model &model : {kGpt2, kLlama, kGpt2Dropout, kMixtral})
    for (const char *mesh : {"", "fsdp=2,tp=2 zero=3 m=2", "dp=2,pp=2 m=4 zero=1 dtype=bf16"}) {
      SCOPED_TRACE(std::string(model.name) + " " + mesh);
      Compiler compiler;
      auto session = open(compiler, model, mesh);
      ASSERT_TRUE(session);
      ASSERT_FALSE(session->initializeStates(/*seed=*/7));
      std::map<std::string, HostTensor> before;
      for (const plan::State *state : distinctStates(session->plan()))
        if (state->kind() == plan::State::PARAMETER)
          before.emplace(state->name(), *session->getState(state->name()));
      // The same batch each time, which even a few steps learn.
      ASSERT_FALSE(setRandomInputs(*session, /*seed=*/1));
      ASSERT_FALSE(setStepState(*session, plan::State::RANDOM_KEY, {7, 1}));
      std::vector<double> losses;
      for (int step = 1; step <= kSteps; ++step) {
        auto problem = trainStep(*session, 1e-2);
        ASSERT_FALSE(problem) << problem->message;
        losses.push_back(element(*session->getOutput("loss")));
      }
      EXPECT_LT(losses.back(), losses.front() - 0.05);
      for (const auto &[name, tensor] : before)
        EXPECT_EQ(tensor.bytes == session->getState(name)->bytes, !isAdapterName(name)) << name;
    }
}

/// With lora_B at 0 a model starts as its base does.
TEST(Lora, StartsAsTheBaseDoes) {
  for (const Model &model : {kGpt2, kLlama, kMixtral}) {
    Model base = model;
    base.name = model.config == kGpt2Config    ? "LoraGpt2Base"
                : model.config == kLlamaConfig ? "LoraLlamaBase"
                                               : "LoraMixtralBase";
    base.lora.reset();
    EXPECT_EQ(trainOnce(model, "").losses.front(), trainOnce(base, "").losses.front());
    EXPECT_NE(trainOnce(model, "").losses.back(), trainOnce(base, "").losses.back());
  }
}

/// The optimizer's state has the bytes of the adapters: two moments of AdamW each in f32.
TEST(Lora, StateIsThatOfTheAdapters) {
  for (const Model &model : {kGpt2, kLlama})
    for (const char *dtype : {"f32", "bf16"}) {
      SCOPED_TRACE(std::string(model.name) + " " + dtype);
      Compiler compiler;
      auto session = open(compiler, model, dtype == std::string("bf16") ? "dtype=bf16" : "");
      ASSERT_TRUE(session);
      int64_t adapters = 0, base = 0, moments = 0, masters = 0;
      for (const plan::State *state : distinctStates(session->plan())) {
        int64_t elements = typeOf(*state).numElements();
        if (state->parameter().empty())
          (isAdapterName(state->name()) ? adapters : base) += elements;
        else
          (state->kind() == plan::State::MASTER_WEIGHTS ? masters : moments) += elements;
        if (!state->parameter().empty()) {
          EXPECT_TRUE(isAdapterName(state->parameter())) << state->name();
          EXPECT_EQ(state->dtype(), plan::F32);
        }
      }
      EXPECT_GT(adapters, 0);
      EXPECT_GT(base, 4 * adapters);
      EXPECT_EQ(moments, 2 * adapters);
      EXPECT_EQ(masters, dtype == std::string("bf16") ? adapters : 0);
      // And so it is in the arena, but for the rounding up of each buffer.
      int64_t bytes = 0, buffers = 0;
      const plan::Program &program = session->plan().programs(0);
      for (const plan::State &state : program.states())
        if (state.kind() == plan::State::OPTIMIZER) {
          bytes += typeOf(program.buffers(state.buffer())).numBytes();
          ++buffers;
          EXPECT_EQ(program.buffers(state.buffer()).kind(), plan::Buffer::OPTIMIZER_STATE);
        }
      EXPECT_EQ(bytes, 2 * 4 * adapters);
      int64_t planned = program.memory_by_kind().at("optimizer_state");
      EXPECT_GE(planned, bytes);
      EXPECT_LT(planned, bytes + 64 * buffers);
    }
}

static std::string nameOf(const testing::TestParamInfo<LoraStrategies::ParamType> &info) {
  return std::string(std::get<0>(info.param).name) + "_" + strategyName(std::get<1>(info.param));
}

using testing::Combine;
using testing::Values;
using testing::ValuesIn;

INSTANTIATE_TEST_SUITE_P(Lora, LoraStrategies,
                         Combine(Values(kGpt2, kLlama, kLlamaAll, kGpt2Dropout),
                                 ValuesIn(kSettingStrategies)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Lora, LoraBf16,
                         Combine(Values(kGpt2, kLlama), ValuesIn(kSettingStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(LoraMixtures, LoraStrategies,
                         Combine(Values(kMixtral, kMixtralDropout, kDeepseek),
                                 ValuesIn(kMixtureStrategies)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(LoraMixtures, LoraBf16,
                         Combine(Values(kMixtral), Values("dp=2,ep=2 zero=1")), nameOf);

} // namespace loraEquivalenceTest
