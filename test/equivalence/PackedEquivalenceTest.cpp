//===- PackedEquivalenceTest.cpp - Packed documents, with any strategy ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Documents that share samples with others and with padding give the loss and the gradients that
// they give one by one, and with every strategy the same.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"
#include "test/equivalence/Training.h"
#include "test/lib/plans/TrainStep.h"

#include <gtest/gtest.h>

namespace packedEquivalenceTest {

using namespace dtc;
using namespace dtc::test;

namespace {

Model makeModel(const char *name, const char *config, int64_t batch, int64_t seq) {
  // AdamW divides by the root of the second moment: with this, less is made of gradients that are
  // all rounding.
  Model model = {name, config, batch, seq, /*eps=*/1e-4};
  model.packed = true;
  return model;
}

/// Learned positions.
const Model kGpt2 = makeModel("PackedGpt2", R"({"model_type": "gpt2", "vocab_size": 64,
  "n_positions": 32, "n_embd": 32, "n_layer": 4, "n_head": 8, "attn_pdrop": 0, "embd_pdrop": 0,
  "resid_pdrop": 0})",
                              16, 24);
/// Dropout, whose masks know nothing of documents.
const Model kGpt2Dropout = makeModel("PackedGpt2Dropout", R"({"model_type": "gpt2",
  "vocab_size": 64, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 8, "attn_pdrop": 0.2,
  "embd_pdrop": 0.1, "resid_pdrop": 0.1})",
                                     16, 24);
/// Rotary positions, grouped heads, and windows that end within documents.
const Model kMistral = makeModel("PackedMistral", R"({"model_type": "mistral", "vocab_size": 64,
  "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 8,
  "num_key_value_heads": 4, "max_position_embeddings": 32, "sliding_window": 5,
  "tie_word_embeddings": false})",
                                 16, 24);
/// Sizes that hardly any mesh divides.
const Model kLlamaOdd = makeModel("PackedLlamaOdd", R"({"model_type": "llama", "vocab_size": 61,
  "hidden_size": 36, "intermediate_size": 50, "num_hidden_layers": 2, "num_attention_heads": 6,
  "num_key_value_heads": 2, "max_position_embeddings": 23, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": true})",
                                  14, 23);

Model decomposed(Model model, const char *name) {
  model.name = name;
  model.attention = AttentionKind::Decomposed;
  return model;
}
const Model kGpt2Decomposed = decomposed(kGpt2Dropout, "PackedGpt2Decomposed");

class PackedEquivalence : public testing::TestWithParam<std::tuple<Model, const char *>> {};
class PackedBf16Equivalence : public PackedEquivalence {};

} // namespace

TEST_P(PackedEquivalence, EqualsOneDevice) {
  auto [model, mesh] = GetParam();
  expectEqualsOneDevice(model, mesh);
}

TEST_P(PackedBf16Equivalence, IsNearOneDevice) {
  auto [model, mesh] = GetParam();
  expectLossesNear(trainOnce(model, "dtype=bf16"),
                   train(model, strategy(std::string(mesh) + " dtype=bf16")), kBf16Tolerance);
}

TEST(PackedForms, AreTheSameFunction) {
  expectLossesNear(trainOnce(kGpt2Dropout, ""), trainOnce(kGpt2Decomposed, ""), 1e-5);
}

/// Training in 16 bits follows training in f32.
TEST(PackedForms, TrainIn16Bits) {
  for (const Model &model : {kGpt2, kMistral})
    for (const char *mesh :
         {"dtype=bf16", "dp=2,tp=2 m=2 recompute=selective sp zero=1 dtype=bf16"}) {
      SCOPED_TRACE(std::string(model.name) + " " + mesh);
      expectLossesNear(trainOnce(model, ""), train(model, strategy(mesh)), kBf16Tolerance);
    }
}

//===----------------------------------------------------------------------===//
// Documents one by one
//===----------------------------------------------------------------------===//

namespace {

/// Lengths of documents of each sample, which has 16 tokens; the rest is padding.
const std::vector<std::vector<int64_t>> kLengths = {{5, 8, 3}, {16}, {2, 2, 9},    {1, 3, 5, 5},
                                                    {8, 8},    {13}, {3, 3, 8, 2}, {4}};
constexpr int64_t kSeq = 16;

/// The loss and the gradients of some samples.
struct Result {
  double loss = 0;
  std::map<std::string, HostTensor> gradients;
};

Result gradientsOf(const Model &model, const char *mesh, bool packed, HostTensor tokens,
                   HostTensor labels, std::map<std::string, HostTensor> inputs = {}) {
  Result result;
  CompileOptions options = strategy(mesh);
  options.mode = CompileMode::Gradients;
  ImportOptions import;
  import.doublePrecision = true;
  import.packed = packed;
  import.ignoreIndex = -100;
  import.attention = model.attention;
  Compiler compiler;
  auto session = compiler.importAndOpen(model.config, tokens.type.shape[0], tokens.type.shape[1],
                                        options, import);
  EXPECT_TRUE(session) << compiler.diagnostics();
  if (!session)
    return result;
  EXPECT_FALSE(session->initializeStates(/*seed=*/7));
  inputs.emplace("tokens", std::move(tokens));
  inputs.emplace("labels", std::move(labels));
  for (auto &[name, value] : inputs)
    EXPECT_FALSE(session->setInput(name, std::move(value)));
  EXPECT_FALSE(trainStep(*session, 0));
  result.loss = element(*session->getOutput("loss"));
  for (const plan::State *state : distinctStates(session->plan()))
    if (state->kind() == plan::State::PARAMETER)
      result.gradients.emplace(state->name(), *session->getOutput("grad:" + state->name()));
  return result;
}

/// One document: its tokens, and the labels of those that count, which all but the first two are.
std::pair<HostTensor, HostTensor> documentOf(int64_t number, int64_t length) {
  TensorType type{DType::I32, {1, length}};
  HostTensor tokens = randomTensor(type, number, "document", 61), labels(type);
  for (int64_t i = 0; i < length; ++i)
    labels.as<int32_t>()[i] = i < length - 1 && i > 0 ? tokens.as<int32_t>()[i + 1] : -100;
  return {std::move(tokens), std::move(labels)};
}

/// The mean over all labels that count, from a run for each document.
Result oneByOne(const Model &model) {
  Result sum;
  int64_t number = 0, labels = 0;
  for (const auto &sample : kLengths)
    for (int64_t length : sample) {
      auto [documentTokens, documentLabels] = documentOf(number++, length);
      int64_t counted = std::max<int64_t>(0, length - 2);
      Result one = gradientsOf(model, "", /*packed=*/false, documentTokens, documentLabels);
      labels += counted;
      sum.loss += one.loss * double(counted);
      for (auto &[name, gradient] : one.gradients) {
        auto [it, fresh] = sum.gradients.try_emplace(name, gradient.type);
        for (int64_t i = 0; i < gradient.type.numElements(); ++i)
          setElement(it->second, i,
                     element(it->second, i) + element(gradient, i) * double(counted));
      }
    }
  sum.loss /= double(labels);
  for (auto &[name, gradient] : sum.gradients)
    for (int64_t i = 0; i < gradient.type.numElements(); ++i)
      setElement(gradient, i, element(gradient, i) / double(labels));
  return sum;
}

Result packedOf(const Model &model, const char *mesh) {
  TensorType type{DType::I32, {int64_t(kLengths.size()), kSeq}};
  HostTensor tokens(type), labels(type), segments(type), positions(type);
  int64_t number = 0;
  for (int64_t row = 0; row < type.shape[0]; ++row) {
    int64_t at = row * kSeq;
    for (int64_t length : kLengths[row]) {
      auto [documentTokens, documentLabels] = documentOf(number, length);
      for (int64_t i = 0; i < length; ++i, ++at) {
        tokens.as<int32_t>()[at] = documentTokens.as<int32_t>()[i];
        labels.as<int32_t>()[at] = documentLabels.as<int32_t>()[i];
        segments.as<int32_t>()[at] = static_cast<int32_t>(number);
        positions.as<int32_t>()[at] = static_cast<int32_t>(i);
      }
      ++number;
    }
    for (int32_t i = 0; at < (row + 1) * kSeq; ++at, ++i) {
      labels.as<int32_t>()[at] = -100;
      segments.as<int32_t>()[at] = -1;
      positions.as<int32_t>()[at] = i;
    }
  }
  std::map<std::string, HostTensor> inputs;
  inputs.emplace("segments", std::move(segments));
  inputs.emplace("positions", std::move(positions));
  return gradientsOf(model, mesh, /*packed=*/true, std::move(tokens), std::move(labels),
                     std::move(inputs));
}

} // namespace

/// In f64, where nothing but rounding may differ.
TEST(PackedDocuments, AreThoseOneByOne) {
  for (const Model &model : {kGpt2, kMistral, decomposed(kGpt2, "Decomposed"), kLlamaOdd}) {
    SCOPED_TRACE(model.name);
    Result expected = oneByOne(model);
    ASSERT_GT(expected.gradients.size(), 10u);
    for (const char *mesh : {"", "dp=2,tp=2 m=2 sp", "dp=3 m=2", "tp=2,pp=2 m=4 recompute=full"}) {
      SCOPED_TRACE(mesh);
      Result packed = packedOf(model, mesh);
      EXPECT_NEAR(packed.loss, expected.loss, 1e-12 * expected.loss);
      ASSERT_EQ(packed.gradients.size(), expected.gradients.size());
      for (const auto &[name, gradient] : expected.gradients)
        EXPECT_LT(relativeDifference(gradient, packed.gradients.at(name), 1e-6), 1e-10) << name;
    }
  }
}

//===----------------------------------------------------------------------===//
// Strategies
//===----------------------------------------------------------------------===//

static const char *kStrategies[] = {
    "m=4",
    "dp=2",
    "dp=3 m=2",
    "dp=4 m=4 accumulate",
    "tp=2",
    "tp=4 sp",
    "tp=8",
    "dp=2,tp=2 m=2 sp",
    "dp=3,tp=4 sp m=2",
    "cp=2 shard:seq=cp",
    "cp=2,tp=2 shard:seq=cp m=2",
    "dp=2 zero=1",
    "dp=4 zero=2 m=2",
    "fsdp=2,tp=2 zero=3 m=2",
    "dp=2,fsdp=2,tp=2 m=2 zero=3 sp",
    "pp=2 m=4",
    "pp=4 m=4 schedule=gpipe",
    "dp=2,tp=2,pp=2 m=4 zero=1",
    "dp=2,pp=2 m=4 schedule=zb-h1 zero=2",
    "pp=2 m=4 schedule=interleaved chunks=2 recompute=full",
    "tp=2,pp=2 m=2 recompute=selective sp",
    "dp=2,tp=2 m=2 recompute=full",
    "dp=8",
    "dp=2,tp=2,pp=2 m=4 schedule=zb-v chunks=2 sp",
};
/// For models on which the tests of other programs have tried all strategies.
static const char *kFewStrategies[] = {"dp=3 m=2", "tp=4 sp", "dp=2,fsdp=2,tp=2 m=2 zero=3 sp"};

static std::string nameOf(const testing::TestParamInfo<PackedEquivalence::ParamType> &info) {
  return std::string(std::get<0>(info.param).name) + "_" + strategyName(std::get<1>(info.param));
}

using testing::Combine;
using testing::Values;
using testing::ValuesIn;

INSTANTIATE_TEST_SUITE_P(Packed, PackedEquivalence,
                         Combine(Values(kMistral), ValuesIn(kStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(PackedBf16, PackedBf16Equivalence,
                         Combine(Values(kMistral), ValuesIn(kStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(PackedBf16More, PackedBf16Equivalence,
                         Combine(Values(kGpt2), ValuesIn(kFewStrategies)), nameOf);
INSTANTIATE_TEST_SUITE_P(PackedMore, PackedEquivalence,
                         Combine(Values(kGpt2, kGpt2Dropout, kLlamaOdd, kGpt2Decomposed),
                                 ValuesIn(kFewStrategies)),
                         nameOf);

} // namespace packedEquivalenceTest
