//===- GenerationTest.cpp - The same tokens with any strategy -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Generation with a cache gives the same tokens as going through the whole sequence again for each
// token. They depend neither on the strategy nor on the other prompts of a batch.
//
//===----------------------------------------------------------------------===//

#include "plan/plan.pb.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/generate/Generator.h"
#include "test/equivalence/Training.h"
#include "test/lib/plans/TrainStep.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>

namespace generationTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// Large initial parameters make the tokens differ, and the most likely one clear.
const Model kGpt2 = {"Gpt2",
                     R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 48, "n_embd": 32,
                         "n_layer": 4, "n_head": 8, "initializer_range": 0.5})",
                     4, 40};
const Model kGpt2OneLayer = {"Gpt2OneLayer",
                             R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 48,
                                 "n_embd": 32, "n_layer": 1, "n_head": 8,
                                 "initializer_range": 0.5})",
                             4, 40};
const Model kLlama = {"Llama",
                      R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 32,
                          "intermediate_size": 48, "num_hidden_layers": 4,
                          "num_attention_heads": 8, "num_key_value_heads": 4,
                          "max_position_embeddings": 48, "initializer_range": 0.5})",
                      4, 40};

using Tokens = std::vector<std::vector<int32_t>>;

/// More than a batch, of different lengths.
Tokens promptsOf(const Model &model) {
  Tokens prompts;
  for (int64_t length : {1, 5, 12, 3, 20, 8}) {
    auto drawn = randomTensor({DType::I32, {length}}, length, model.name, 64);
    prompts.emplace_back(drawn.as<int32_t>(), drawn.as<int32_t>() + length);
  }
  return prompts;
}

constexpr int64_t kNewTokens = 20;
const std::atomic<bool> kNeverStop = false;

std::unique_ptr<runtime::Session> open(Compiler &compiler, const Model &model,
                                       CompileOptions options) {
  options.mode = CompileMode::Generate;
  auto session = compiler.importAndOpen(model.config, model.batch, model.seq, options);
  EXPECT_TRUE(session) << compiler.diagnostics();
  if (session)
    EXPECT_FALSE(session->initializeStates(3));
  return session;
}

Tokens generate(const Model &model, const CompileOptions &strategy,
                const runtime::GeneratorOptions &options, const Tokens &prompts) {
  Compiler compiler;
  auto session = open(compiler, model, strategy);
  if (!session)
    return {};
  auto generator = runtime::Generator::create(*session);
  EXPECT_TRUE(bool(generator)) << generator.error().message;
  auto text = generator->run(prompts, options, kNeverStop);
  EXPECT_TRUE(bool(text)) << text.error().message;
  return text ? text->tokens : Tokens();
}

runtime::GeneratorOptions greedy() {
  runtime::GeneratorOptions options;
  options.maxNewTokens = kNewTokens;
  return options;
}

/// Without a cache: the most likely token after the whole sequence so far, by the first phase
/// alone.
Tokens generateAgainAndAgain(const Model &model, const Tokens &prompts) {
  Compiler compiler;
  auto session = open(compiler, model, {});
  Tokens result;
  for (const std::vector<int32_t> &prompt : prompts) {
    std::vector<int32_t> tokens = prompt;
    for (int64_t i = 0; i < kNewTokens; ++i) {
      HostTensor all(TensorType{DType::I32, {model.batch, model.seq}});
      HostTensor last(TensorType{DType::I32, {model.batch}});
      std::copy(tokens.begin(), tokens.end(), all.as<int32_t>());
      last.as<int32_t>()[0] = int32_t(tokens.size()) - 1;
      EXPECT_FALSE(session->setInput("tokens", std::move(all)));
      EXPECT_FALSE(session->setInput("positions", std::move(last)));
      EXPECT_FALSE(trainStep(*session, 0));
      auto logits = session->getOutput("logits");
      const float *first = logits->as<float>();
      tokens.push_back(int32_t(std::max_element(first, first + logits->type.shape[2]) - first));
    }
    result.emplace_back(tokens.begin() + std::ptrdiff_t(prompt.size()), tokens.end());
  }
  return result;
}

const Tokens &expectedOf(const Model &model) {
  static std::map<std::string, Tokens> known;
  auto [it, fresh] = known.try_emplace(model.name);
  if (fresh)
    it->second = generateAgainAndAgain(model, promptsOf(model));
  return it->second;
}

/// The error of a generator after a change of the plan.
std::string errorAfter(const std::function<void(plan::Plan &)> &change) {
  Compiler compiler;
  CompileOptions options;
  options.mode = CompileMode::Generate;
  auto module = compiler.importText(kGpt2OneLayer.config, "config.json", kGpt2OneLayer.batch,
                                    kGpt2OneLayer.seq);
  EXPECT_TRUE(module);
  std::shared_ptr<plan::Plan> plan = compiler.compileCopy(*module, options);
  EXPECT_TRUE(plan) << compiler.diagnostics();
  change(*plan);
  auto session = runtime::Session::create(plan, runtime::createCpuBackend());
  EXPECT_TRUE(bool(session)) << session.error().message;
  auto generator = runtime::Generator::create(**session);
  return generator ? "" : generator.error().message;
}

/// Something that the generator does not know of.
void addInput(plan::Plan &plan) {
  plan::Program &program = *plan.mutable_programs(0);
  plan::Input &input = *program.add_inputs();
  input.set_name("x");
  input.set_dtype(plan::F32);
  input.set_buffer(uint32_t(program.buffers_size()));
  plan::Buffer &buffer = *program.add_buffers();
  buffer.set_dtype(plan::F32);
  buffer.set_kind(plan::Buffer::INPUT);
  buffer.set_offset((program.arena_bytes() + 63) / 64 * 64);
  program.set_arena_bytes(buffer.offset() + 64);
}

class Generation : public testing::TestWithParam<std::tuple<Model, const char *>> {};

TEST_P(Generation, GivesTheTokensOfOneDeviceWithoutACache) {
  auto [model, text] = GetParam();
  EXPECT_EQ(generate(model, strategy(text), greedy(), promptsOf(model)), expectedOf(model));
}

INSTANTIATE_TEST_SUITE_P(
    Generation, Generation,
    testing::Combine(testing::Values(kGpt2, kLlama),
                     testing::Values("", "dp=2", "dp=4", "dp=3", "tp=2", "tp=4", "tp=8",
                                     "dp=2,tp=2", "tp=4 sp", "pp=2", "pp=4",
                                     "pp=2 schedule=interleaved chunks=2", "dp=2,pp=2", "tp=2,pp=2",
                                     "dp=2,tp=2,pp=2", "cp=2", "cp=2,tp=2 context_exchange=ring",
                                     "dp=2,cp=3 context_exchange=ring")),
    [](const auto &info) {
      return std::string(std::get<0>(info.param).name) + "_" +
             strategyName(std::get<1>(info.param));
    });

// The stages of a single layer: a cache is updated where it is read, in both phases.
INSTANTIATE_TEST_SUITE_P(GenerationOneLayer, Generation,
                         testing::Combine(testing::Values(kGpt2OneLayer),
                                          testing::Values("pp=2", "pp=4",
                                                          "pp=2 schedule=interleaved chunks=2",
                                                          "pp=2 schedule=zb-v", "dp=2,pp=3")),
                         [](const auto &info) { return strategyName(std::get<1>(info.param)); });
TEST(GenerationSettings, PipelinesCarryCachesOf16Bits) {
  Tokens prompts = promptsOf(kGpt2);
  Tokens expected = generate(kGpt2, strategy("dtype=bf16"), greedy(), prompts);
  EXPECT_EQ(generate(kGpt2, strategy("pp=2 dtype=bf16"), greedy(), prompts), expected);
}

TEST(GenerationSettings, SamplesWithoutRegardToBatchesAndStrategies) {
  runtime::GeneratorOptions options = greedy();
  options.sampler.temperature = 0.7;
  options.sampler.topK = 8;
  options.sampler.seed = 5;
  Tokens prompts = promptsOf(kGpt2);
  Tokens drawn = generate(kGpt2, {}, options, prompts);
  EXPECT_NE(drawn, expectedOf(kGpt2));
  EXPECT_EQ(generate(kGpt2, strategy("dp=2,tp=2,pp=2"), options, prompts), drawn);
  options.sampler.seed = 6;
  EXPECT_NE(generate(kGpt2, {}, options, prompts), drawn);
}

TEST(GenerationSettings, StopsBehindAToken) {
  Tokens prompts = promptsOf(kGpt2), expected = expectedOf(kGpt2);
  runtime::GeneratorOptions options = greedy();
  options.stopTokens = {expected[1][7]};
  for (std::vector<int32_t> &tokens : expected) {
    auto stop = std::find(tokens.begin(), tokens.end(), options.stopTokens.front());
    if (stop != tokens.end())
      tokens.erase(stop + 1, tokens.end());
  }
  EXPECT_LE(expected[1].size(), 8u);
  EXPECT_EQ(generate(kGpt2, {}, options, prompts), expected);
}

/// Batches, sequences and heads of one: the tokens are those of larger ones.
TEST(GenerationSettings, DimensionsOfSizeOne) {
  const char *sizes = R"("vocab_size": 64, "hidden_size": 16, "intermediate_size": 20,
      "num_hidden_layers": 1, "max_position_embeddings": 24, "initializer_range": 0.5, )";
  auto config = [&](const char *type, int64_t heads, int64_t keyHeads, int64_t headSize) {
    std::string text = R"({"model_type": ")" + std::string(type) + "\", " + sizes;
    return text + "\"head_dim\": " + std::to_string(headSize) +
           ", \"num_key_value_heads\": " + std::to_string(keyHeads) +
           ", \"num_attention_heads\": " + std::to_string(heads) + "}";
  };
  std::vector<std::string> configs = {
      R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 24, "n_embd": 12, "n_layer": 1,
          "n_head": 1, "initializer_range": 0.5})",
      R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 24, "n_embd": 4, "n_layer": 1,
          "n_head": 4, "initializer_range": 0.5})",
      config("olmo2", 2, 2, 8),
      config("olmo2", 1, 1, 16),
      config("olmo2", 8, 8, 2),
      config("llama", 2, 1, 8),
      config("llama", 1, 1, 16),
      config("qwen2", 2, 1, 8),
      config("qwen3", 2, 1, 6),
      config("qwen3", 1, 1, 2),
      config("mistral", 2, 2, 8),
      config("phi3", 2, 1, 8),
      config("smollm3", 2, 1, 8),
      config("gpt_neox", 1, 1, 16),
      config("gemma", 2, 1, 6)};
  Tokens prompts = {{5}, {17}, {3, 9, 21}};
  for (const std::string &text : configs) {
    SCOPED_TRACE(text);
    runtime::GeneratorOptions options;
    options.maxNewTokens = 4;
    auto tokens = [&](int64_t batch, int64_t seq, const Tokens &prompts) {
      return generate({"SizeOne", text.c_str(), batch, seq}, {}, options, prompts);
    };
    Tokens expected = tokens(2, 8, prompts);
    ASSERT_EQ(expected.size(), prompts.size());
    EXPECT_EQ(tokens(1, 8, prompts), expected);
    prompts.pop_back();
    expected.pop_back();
    for (std::vector<int32_t> &each : expected)
      each.resize(1);
    options.maxNewTokens = 1;
    EXPECT_EQ(tokens(2, 1, prompts), expected);
    EXPECT_EQ(tokens(1, 1, prompts), expected);
    prompts.push_back({3, 9, 21});
  }
}

/// The prompts have positions for fewer devices than tp, whose axis is cut, and one position for
/// each new token would not be cut at all.
TEST(GenerationSettings, SequencesShorterThanTheTensorAxis) {
  const Model model = {"Short",
                       R"({"model_type": "mistral", "vocab_size": 61, "hidden_size": 12,
                           "intermediate_size": 20, "num_hidden_layers": 2,
                           "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 4,
                           "max_position_embeddings": 24, "initializer_range": 0.5})",
                       2, 4};
  runtime::GeneratorOptions options;
  options.maxNewTokens = 3;
  Tokens prompts = {{5}, {17, 3}, {9}};
  Tokens expected = generate(model, {}, options, prompts);
  ASSERT_EQ(expected.size(), prompts.size());
  for (const char *text : {"tp=8 sp", "tp=6 sp", "dp=2,tp=8 sp"})
    EXPECT_EQ(generate(model, strategy(text), options, prompts), expected) << text;
  const Model two = {"Two", model.config, 2, 2};
  options.maxNewTokens = 1;
  expected = generate(two, {}, options, prompts);
  for (const char *text : {"tp=4 sp", "tp=8 sp", "pp=2,tp=4 sp"})
    EXPECT_EQ(generate(two, strategy(text), options, prompts), expected) << text;
}

TEST(GenerationSettings, RefusesWhatDoesNotFit) {
  Compiler compiler;
  auto session = open(compiler, kGpt2, {});
  auto generator = runtime::Generator::create(*session);
  ASSERT_TRUE(bool(generator));
  runtime::GeneratorOptions options = greedy();
  auto longest = size_t(generator->longest() - kNewTokens);
  EXPECT_TRUE(bool(generator->run({std::vector<int32_t>(longest, 1)}, options, kNeverStop)));
  auto tooLong = generator->run({{1}, std::vector<int32_t>(longest + 1, 1)}, options, kNeverStop);
  ASSERT_FALSE(bool(tooLong));
  EXPECT_NE(tooLong.error().message.find("prompt 2 has 22 tokens, and 20 more are asked for"),
            std::string::npos)
      << tooLong.error().message;
  EXPECT_FALSE(bool(generator->run({{}}, options, kNeverStop)));
}

TEST(GenerationSettings, SayWhichEntryPointDoesNotFit) {
  std::string problem = "has the input \"x\", f32[]; expected tokens and positions alone";
  EXPECT_EQ(errorAfter([](plan::Plan &) {}), "");
  EXPECT_EQ(errorAfter(addInput),
            "the plan's own entry point, which reads the prompts: " + problem);
  EXPECT_EQ(errorAfter([](plan::Plan &plan) { addInput(*plan.mutable_entry_points(0)); }),
            "entry point \"decode\": " + problem);
}

} // namespace

} // namespace generationTest
