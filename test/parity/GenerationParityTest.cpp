//===- GenerationParityTest.cpp - Parity tests of generation --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The tokens of transformers' generate(), greedily and in f64, after prompts of several lengths,
// and the logits and probabilities of the first new token.
//
//===----------------------------------------------------------------------===//

#include "runtime/generate/Generator.h"
#include "test/lib/compile/CompileAndRun.h"
#include "test/lib/plans/TrainStep.h"
#include "test/parity/Reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace generationParityTest {

using namespace dtc;
using namespace dtc::test;

namespace {

constexpr int64_t kBatch = 4, kSeq = 96;

class GenerationParity : public testing::TestWithParam<std::tuple<std::string, std::string>> {
protected:
  void SetUp() override { open(std::nullopt); }

  /// Mixtures of experts are computed in f64: rounding must not choose another expert.
  void open(std::optional<double> capacityFactor) {
    open(std::get<1>(GetParam()), isMixture, ComputeType::F32, capacityFactor);
  }

  void open(const std::string &layout, bool doublePrecision, ComputeType dtype,
            std::optional<double> capacityFactor = std::nullopt) {
    ImportOptions import;
    import.doublePrecision = doublePrecision;
    import.capacityFactor = capacityFactor;
    module = compiler.import(reference.path("config.json"), kBatch, kSeq, import);
    ASSERT_TRUE(module) << compiler.diagnostics();
    CompileOptions options = strategy(layout);
    options.mode = CompileMode::Generate;
    options.dtype = dtype;
    session = compiler.open(*module, options);
    ASSERT_TRUE(session) << compiler.diagnostics();
    reference.setWeights(*session, "weights.safetensors");
    prompts.clear();
    for (const nlohmann::json &prompt : expected["prompts"])
      prompts.push_back(prompt["prompt"]);
  }

  /// What the session generates after the prompts.
  std::vector<std::vector<int32_t>> generate(const runtime::SamplerOptions &sampler) {
    auto generator = runtime::Generator::create(*session);
    EXPECT_TRUE(bool(generator)) << generator.error().message;
    if (!generator)
      return {};
    runtime::GeneratorOptions options;
    options.maxNewTokens = expected["new_tokens"];
    options.sampler = sampler;
    const std::atomic<bool> never = false;
    auto text = generator->run(prompts, options, never);
    EXPECT_TRUE(bool(text)) << text.error().message;
    return text ? text->tokens : std::vector<std::vector<int32_t>>();
  }

  Reference reference{std::get<0>(GetParam())};
  nlohmann::json expected = reference.json("generation.json");
  bool isMixture = reference.expected.contains("routing_margin");
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<runtime::Session> session;
  std::vector<std::vector<int32_t>> prompts;

  void compareTokens();
};

/// Experts with rows for a part of the tokens only, in training.
class CapacityGenerationParity : public GenerationParity {
protected:
  void SetUp() override { open(0.4); }
};

/// Other layouts beside one device.
class LayoutGeneration : public GenerationParity {
protected:
  void SetUp() override {}
};
class NarrowGeneration : public LayoutGeneration {};

} // namespace

void GenerationParity::compareTokens() {
  std::vector<std::vector<int32_t>> tokens = generate({});
  ASSERT_EQ(tokens.size(), prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(tokens[i], expected["prompts"][i]["generated"].get<std::vector<int32_t>>());
}

TEST_P(GenerationParity, Tokens) { compareTokens(); }

/// Tokens that are drawn are those of one device.
TEST_P(LayoutGeneration, DrawsTheTokensOfOneDevice) {
  runtime::SamplerOptions sampler;
  sampler.temperature = expected["temperature"];
  sampler.topK = expected["top_k"];
  sampler.seed = 7;
  open("", /*doublePrecision=*/true, ComputeType::F32);
  std::vector<std::vector<int32_t>> ofOne = generate(sampler);
  ASSERT_EQ(ofOne.size(), prompts.size());
  EXPECT_NE(ofOne, generate({})) << "what is drawn is what is most likely";
  open(std::get<1>(GetParam()), /*doublePrecision=*/true, ComputeType::F32);
  EXPECT_EQ(generate(sampler), ofOne);
}

/// In 16 bits, layouts that divide no sum choose the tokens of one device.
TEST_P(NarrowGeneration, ChoosesTheTokensOfOneDevice) {
  open("", /*doublePrecision=*/false, ComputeType::BF16);
  std::vector<std::vector<int32_t>> ofOne = generate({});
  ASSERT_EQ(ofOne.size(), prompts.size());
  open(std::get<1>(GetParam()), /*doublePrecision=*/false, ComputeType::BF16);
  EXPECT_EQ(generate({}), ofOne);
}

/// No token is dropped while tokens are generated.
TEST_P(CapacityGenerationParity, Tokens) { compareTokens(); }

TEST_P(GenerationParity, FirstLogits) {
  ASSERT_LE(prompts.size(), size_t(kBatch));
  HostTensor tokens(TensorType{DType::I32, {kBatch, kSeq}});
  HostTensor positions(TensorType{DType::I32, {kBatch}});
  for (size_t i = 0; i < prompts.size(); ++i) {
    std::copy(prompts[i].begin(), prompts[i].end(), tokens.as<int32_t>() + int64_t(i) * kSeq);
    positions.as<int32_t>()[i] = int32_t(prompts[i].size()) - 1;
  }
  ASSERT_FALSE(session->setInput("tokens", std::move(tokens)));
  ASSERT_FALSE(session->setInput("positions", std::move(positions)));
  ASSERT_FALSE(trainStep(*session, 0));
  auto logits = session->getOutput("logits");
  ASSERT_TRUE(bool(logits)) << logits.error().message;
  int64_t width = logits->type.shape[2];
  for (size_t i = 0; i < prompts.size(); ++i) {
    auto wanted = expected["prompts"][i]["first_logits"].get<std::vector<double>>();
    ASSERT_EQ(int64_t(wanted.size()), width);
    double largest = 0, difference = 0;
    for (int64_t token = 0; token < width; ++token) {
      largest = std::max(largest, std::abs(wanted[size_t(token)]));
      difference = std::max(difference, std::abs(wanted[size_t(token)] -
                                                 element(*logits, int64_t(i) * width + token)));
    }
    EXPECT_LT(difference, (isMixture ? 1e-9 : kTolerance) * largest);
  }
}

/// Tokens are drawn as often as their probabilities say: within 4 standard deviations.
TEST_P(GenerationParity, Probabilities) {
  constexpr int kDraws = 4000;
  runtime::SamplerOptions options;
  options.temperature = expected["temperature"];
  options.topK = expected["top_k"];
  for (const nlohmann::json &prompt : expected["prompts"]) {
    auto logits = prompt["first_logits"].get<std::vector<double>>();
    std::map<int32_t, int> counts;
    for (int draw = 0; draw < kDraws; ++draw)
      ++counts[runtime::sampleToken(logits, draw, 1, options)];
    int drawn = 0;
    for (const auto &[token, probability] : prompt["first_probabilities"].items()) {
      double p = probability, count = counts[std::stoi(token)];
      EXPECT_NEAR(count, kDraws * p, 4 * std::sqrt(kDraws * p * (1 - p)) + 1) << token;
      drawn += int(count);
    }
    EXPECT_EQ(drawn, kDraws) << "tokens beside the most likely ones were drawn";
  }
}

static std::string nameOf(const testing::TestParamInfo<GenerationParity::ParamType> &info) {
  std::string name = std::get<0>(info.param) + "_";
  for (char c : std::get<1>(info.param))
    if (c == ',')
      name += '_';
    else if (std::isalnum(static_cast<unsigned char>(c)))
      name += c;
  return name + (name.back() == '_' ? "one_device" : "");
}

INSTANTIATE_TEST_SUITE_P(Models, GenerationParity,
                         testing::Combine(testing::ValuesIn(findReferences("generation.json")),
                                          testing::Values("", "dp=2,tp=2", "tp=2,pp=2")),
                         nameOf);

static const auto kMixtures = testing::Values("gpt_oss_narrow", "gpt_oss_uneven", "mixtral_narrow");
INSTANTIATE_TEST_SUITE_P(Experts, GenerationParity,
                         testing::Combine(kMixtures, testing::Values("ep=2", "ep=2,tp=2",
                                                                     "dp=2,ep=2", "ep=2,pp=2")),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Experts, CapacityGenerationParity,
                         testing::Combine(kMixtures, testing::Values("", "dp=2,tp=2", "ep=2,tp=2",
                                                                     "ep=2,pp=2")),
                         nameOf);

INSTANTIATE_TEST_SUITE_P(Experts, LayoutGeneration,
                         testing::Combine(kMixtures,
                                          testing::Values("dp=2,tp=2", "ep=2,tp=2", "ep=2,pp=2")),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Experts, NarrowGeneration,
                         testing::Combine(kMixtures, testing::Values("dp=2", "pp=2", "dp=2,pp=2")),
                         nameOf);

TEST(GenerationReferences, AreFound) { EXPECT_GE(findReferences("generation.json").size(), 19u); }

} // namespace generationParityTest
