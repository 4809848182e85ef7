//===- AccumulationTest.cpp - Gradient accumulation over several batches --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A step with gradient accumulation over several batches is one over a batch of all their samples.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"
#include "test/equivalence/Training.h"
#include "test/lib/plans/TrainStep.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace accumulationTest {

using namespace dtc;
using namespace dtc::test;

namespace {

constexpr int64_t kBatches = 3, kBatch = 8, kSeq = 16;
constexpr int kStepsHere = 4;

struct Case {
  const char *name;
  const char *config;
  bool ignoresLabels;
  bool firstIsEmpty = false; ///< no label of the first batch counts
};

void PrintTo(const Case &example, std::ostream *os) { *os << example.name; }

constexpr const char *kGpt2Config =
    R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 32, "n_embd": 32, "n_layer": 4,
        "n_head": 8, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})";
const Case kGpt2 = {"Gpt2", kGpt2Config, false};
/// The mean is over labels that count. The first batches have few of them.
const Case kGpt2Ignored = {"Gpt2Ignored", kGpt2Config, true};
const Case kGpt2Empty = {"Gpt2Empty", kGpt2Config, true, true};
const Case kLlama = {"Llama",
                     R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 32,
                         "intermediate_size": 48, "num_hidden_layers": 4,
                         "num_attention_heads": 8, "num_key_value_heads": 4,
                         "max_position_embeddings": 32, "rms_norm_eps": 1e-5})",
                     false};

/// Inputs of a step over all samples.
std::map<std::string, HostTensor> samplesOf(const Case &example, int step) {
  TensorType type{DType::I32, {kBatches * kBatch, kSeq}};
  std::map<std::string, HostTensor> inputs;
  inputs.emplace("tokens", randomTensor(type, step, "tokens", 64));
  HostTensor labels = randomTensor(type, step, "labels", 64);
  HostTensor chances = randomTensor(type, step, "counts", type.shape[0]);
  if (example.ignoresLabels)
    for (int64_t i = 0; i < type.numElements(); ++i)
      if (chances.as<int32_t>()[i] > i / kSeq || (example.firstIsEmpty && i / kSeq < kBatch))
        labels.as<int32_t>()[i] = -100;
  inputs.emplace("labels", std::move(labels));
  return inputs;
}

/// Trains on the same samples in steps of `batches` batches.
TrainingRun run(const Case &example, const CompileOptions &options, int64_t batches) {
  TrainingRun result;
  Compiler compiler;
  ImportOptions import;
  if (example.ignoresLabels)
    import.ignoreIndex = -100;
  int64_t batch = kBatches * kBatch / batches;
  auto session = compiler.importAndOpen(example.config, batch, kSeq, options, import, batches);
  EXPECT_TRUE(session) << compiler.diagnostics();
  if (!session)
    return result;
  EXPECT_FALSE(session->initializeStates(7));
  for (int step = 1; step <= kStepsHere; ++step) {
    for (const auto &[name, all] : samplesOf(example, step))
      for (int64_t index = 0; index < batches; ++index) {
        HostTensor part(TensorType{DType::I32, {batch, kSeq}});
        std::memcpy(part.bytes.data(), all.as<int32_t>() + index * batch * kSeq, part.bytes.size());
        EXPECT_FALSE(session->setInput(name, std::move(part), index));
      }
    if (options.dtype == ComputeType::F16)
      EXPECT_FALSE(setLossScale(*session, 1024));
    auto problem = trainStep(*session, 1e-2);
    EXPECT_FALSE(problem) << problem->message;
    result.losses.push_back(element(*session->getOutput("loss")));
    result.norms.push_back(element(*session->getOutput("grad_norm")));
  }
  for (const plan::State *state : distinctStates(session->plan()))
    if (state->kind() == plan::State::PARAMETER)
      result.parameters.emplace(state->name(), *session->getState(state->name()));
  return result;
}

const TrainingRun &runWhole(const Case &example, ComputeType dtype) {
  static std::map<std::string, TrainingRun> runs;
  auto [it, fresh] = runs.try_emplace(example.name + wordOf(dtype));
  CompileOptions options;
  options.dtype = dtype;
  options.eps = 1e-4;
  if (fresh)
    it->second = run(example, options, 1);
  return it->second;
}

class Accumulation : public testing::TestWithParam<std::tuple<Case, const char *>> {};

TEST_P(Accumulation, EqualsOneBatchOfAllSamples) {
  auto [example, text] = GetParam();
  CompileOptions options = strategy(text);
  options.eps = 1e-4;
  const TrainingRun &expected = runWhole(example, options.dtype);
  TrainingRun actual = run(example, options, kBatches);
  ASSERT_EQ(actual.losses.size(), expected.losses.size());
  double tolerance = options.dtype == ComputeType::F32 ? kTolerance : 1.0 / 128;
  for (int step = 0; step < kStepsHere; ++step) {
    EXPECT_NEAR(actual.losses[step], expected.losses[step], tolerance * expected.losses[step]);
    if (step == 0 || options.dtype == ComputeType::F32)
      EXPECT_NEAR(actual.norms[step], expected.norms[step], 10 * tolerance * expected.norms[step]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Accumulation, Accumulation,
    testing::Combine(testing::Values(kGpt2, kGpt2Ignored, kGpt2Empty, kLlama),
                     testing::Values("accumulate", "accumulate recompute=full", "m=2", "m=4",
                                     "dp=2 accumulate", "dp=2,tp=2 m=2", "dp=4 m=2 zero=2",
                                     "fsdp=2,tp=2 m=2 zero=3", "pp=2 accumulate", "pp=2 m=4",
                                     "pp=4 m=2 schedule=gpipe", "pp=2 m=4 schedule=zb-h1",
                                     "pp=2 m=4 schedule=zb-v",
                                     "pp=2 m=2 schedule=interleaved chunks=2 recompute=full",
                                     "dp=2,tp=2,pp=2 m=2 zero=1",
                                     "dp=2,tp=2,pp=2 m=2 zero=1 dtype=bf16", "m=2 dtype=f16")),
    [](const auto &info) {
      return std::string(std::get<0>(info.param).name) + "_" +
             strategyName(std::get<1>(info.param));
    });

/// A loss of sums: S of the data and Q of a parameter, what `last` makes of them.
std::string withPenalty(const std::string &last) {
  return R"(func.func @loss(
    %x: tensor<4x3xf64> {dtc.input = "x", dtc.axes = ["batch", ""]},
    %p: tensor<5xf64> {dtc.param = "p", dtc.init = #dtc.ones},
    %w: tensor<3xf64> {dtc.param = "w", dtc.init = #dtc.ones}) -> tensor<f64> {
  %b = dtc.einsum "bi,i->b" %x, %w : (tensor<4x3xf64>, tensor<3xf64>) -> tensor<4xf64>
  %s = dtc.einsum "b,b->" %b, %b : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %q = dtc.einsum "a,a->" %p, %p : (tensor<5xf64>, tensor<5xf64>) -> tensor<f64>
  %c = dtc.constant dense<0.25> : tensor<f64>
  %n = dtc.reduce sum %x dims [0, 1] : (tensor<4x3xf64>) -> tensor<f64>
  )" + last +
         R"(
  return %loss : tensor<f64>
})";
}

/// With x full of ones, S is 36, Q 5 and n 12 in each batch; the gradients of S and Q are 24 for
/// each of 3 elements of w and 2 for each of 5 of p. A loss without a divisor that depends on the
/// data is the mean over the batches; the sums in a loss with such a divisor are those of all
/// batches.
TEST(AccumulationOfPenalties, CountAsInOneBatch) {
  struct Example {
    const char *last;
    double loss, factor; // of the gradients
    double penalties = 1;
  };
  for (const Example &example : {
           Example{"%loss = dtc.add %s, %q : tensor<f64>", 41, 1},
           Example{"%l = dtc.add %s, %q : tensor<f64> %loss = dtc.mul %l, %c : tensor<f64>", 10.25,
                   0.25},
           Example{"%l = dtc.add %s, %q : tensor<f64> %loss = dtc.div %l, %c : tensor<f64>", 164,
                   4},
           Example{"%l = dtc.add %q, %s : tensor<f64> %m = dtc.mul %c, %l : tensor<f64> "
                   "%loss = dtc.neg %m : tensor<f64>",
                   -10.25, 0.25},
           Example{"%l = dtc.add %s, %q : tensor<f64> %loss = dtc.div %l, %n : tensor<f64>",
                   113.0 / 36, 1.0 / 12, 1.0 / 3},
       })
    for (const char *text : {"accumulate", "m=2", "dp=2 m=2", "m=4"}) {
      SCOPED_TRACE(std::string(example.last) + " " + text);
      CompileOptions options = strategy(std::string(text) + " optimizer=sgd");
      options.clip = 0;
      Compiler compiler;
      auto module = compiler.parse(withPenalty(example.last));
      ASSERT_TRUE(module) << compiler.diagnostics();
      auto session = compiler.open(*module, options, /*threadsPerDevice=*/1, kBatches);
      ASSERT_TRUE(session) << compiler.diagnostics();
      ASSERT_FALSE(session->initializeStates(7));
      for (int64_t index = 0; index < kBatches; ++index) {
        HostTensor ones(TensorType{DType::F64, {4, 3}});
        std::fill_n(ones.as<double>(), 12, 1.0);
        ASSERT_FALSE(session->setInput("x", std::move(ones), index));
      }
      auto problem = trainStep(*session, 0.0);
      ASSERT_FALSE(problem) << problem->message;
      EXPECT_NEAR(element(*session->getOutput("loss")), example.loss, 1e-9);
      EXPECT_NEAR(element(*session->getOutput("grad_norm")),
                  example.factor *
                      std::hypot(std::sqrt(3) * 24, example.penalties * std::sqrt(5) * 2),
                  1e-9);
    }
}

/// The mask of a parameter is another one in each batch. The loss of a step with two batches is the
/// mean of those of two steps with the same parameters.
TEST(AccumulationOfMasks, EachBatchDrawsItsOwn) {
  const char *text = R"(func.func @loss(
    %x: tensor<4x3xf64> {dtc.input = "x", dtc.axes = ["batch", ""]},
    %w: tensor<3x8xf64> {dtc.param = "w", dtc.init = #dtc.normal<0.5>},
    %key: tensor<2xi32> {dtc.scalar = "random_key"}) -> tensor<f64> {
  %d = dtc.dropout %w, %key {number = 0 : i64, rate = 3.0e-1 : f64} :
      (tensor<3x8xf64>, tensor<2xi32>) -> tensor<3x8xf64>
  %h = dtc.einsum "bi,ij->bj" %x, %d : (tensor<4x3xf64>, tensor<3x8xf64>) -> tensor<4x8xf64>
  %l = dtc.einsum "bj,bj->" %h, %h : (tensor<4x8xf64>, tensor<4x8xf64>) -> tensor<f64>
  return %l : tensor<f64>
})";
  auto lossesOf = [&](const char *how, int64_t batches, int steps) {
    CompileOptions options = strategy(std::string(how) + " optimizer=sgd");
    Compiler compiler;
    auto module = compiler.parse(text);
    EXPECT_TRUE(module) << compiler.diagnostics();
    auto session = compiler.open(*module, options, /*threadsPerDevice=*/1, batches);
    std::vector<double> losses;
    EXPECT_TRUE(session) << compiler.diagnostics();
    if (!session)
      return losses;
    EXPECT_FALSE(session->initializeStates(7));
    for (int64_t index = 0; index < batches; ++index)
      EXPECT_FALSE(session->setInput("x", randomTensor({DType::F64, {4, 3}}, 1, "x"), index));
    for (int step = 0; step < steps; ++step) {
      auto problem = trainStep(*session, 0.0);
      EXPECT_FALSE(problem) << problem->message;
      losses.push_back(element(*session->getOutput("loss")));
    }
    return losses;
  };
  std::vector<double> alone = lossesOf("", 1, 2);
  ASSERT_EQ(alone.size(), 2u);
  EXPECT_NE(alone[0], alone[1]);
  for (const char *how : {"accumulate", "dp=2 accumulate"}) {
    SCOPED_TRACE(how);
    std::vector<double> together = lossesOf(how, 2, 1);
    ASSERT_EQ(together.size(), 1u);
    EXPECT_NEAR(together[0], (alone[0] + alone[1]) / 2, 1e-12);
  }
}

TEST(AccumulationErrors, NeedsSums) {
  auto open = [](const char *text) {
    Compiler compiler;
    auto session =
        compiler.importAndOpen(kGpt2.config, kBatch, kSeq, strategy(text), {}, /*batches=*/2);
    EXPECT_FALSE(session);
    return compiler.diagnostics();
  };
  EXPECT_NE(open("").find("compile with --accumulate, or with --microbatches 2 or more"),
            std::string::npos);
  EXPECT_NE(open("pp=2").find("does not sum gradients"), std::string::npos);
}

} // namespace

} // namespace accumulationTest
