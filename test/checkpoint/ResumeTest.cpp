//===- ResumeTest.cpp - Bitwise tests of resumed runs ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// 20 steps at once, against 10, and 10 more from the checkpoint of the tenth in a new session:
// weights, optimizer state, position and metrics have the same bits, on every form of strategy.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/CheckpointFolder.h"
#include "test/checkpoint/SavedTraining.h"
#include "test/lib/plans/Expect.h"

#include <functional>
#include <gtest/gtest.h>
#include <ostream>

namespace resumeTest {

using namespace dtc;
using namespace dtc::test;

namespace {

#define GPT2(FIELDS)                                                                                 \
  R"({"model_type": "gpt2", "vocab_size": 19, "n_positions": 9, "n_embd": 12, "n_head": 4, )" FIELDS \
  "}"
#define DROPOUT R"("attn_pdrop": 0.1, "embd_pdrop": 0.2, "resid_pdrop": 0.3)"
#define NO_DROPOUT R"("attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0)"
const char *kGpt2 = GPT2(R"("n_layer": 2, )" NO_DROPOUT);
const char *kGpt2Deep = GPT2(R"("n_layer": 4, )" NO_DROPOUT);
const char *kGpt2Dropout = GPT2(R"("n_layer": 2, )" DROPOUT);
const char *kGpt2DeepDropout = GPT2(R"("n_layer": 4, )" DROPOUT);
const char *kLlama = R"({"model_type": "llama", "vocab_size": 17, "hidden_size": 24,
  "intermediate_size": 14, "num_hidden_layers": 3, "num_attention_heads": 6,
  "num_key_value_heads": 2, "max_position_embeddings": 9, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": true})";

struct Example {
  const char *name;
  SavedModel model;
  const char *strategy;
  std::function<void(runtime::TrainOptions &)> change = nullptr;
  int64_t leastSkipped = 0; ///< of the steps of each part
};

void PrintTo(const Example &example, std::ostream *os) { *os << example.strategy; }

/// Loss scales that overflow, fall, and rise again after two steps.
void overflow(runtime::TrainOptions &options) {
  options.lossScale = 16777216;
  options.lossScaleGrowthInterval = 2;
}

/// A gradient that is infinite in the fourth and in the fourteenth step.
void inject(runtime::TrainOptions &options) {
  options.lossScale = 1024;
  options.lossScaleGrowthInterval = 3;
  for (int64_t step : {4, 14}) {
    runtime::Injection injection;
    injection.op = options.injections.empty() ? "model.layers.0" : "model.layers.1";
    injection.match = -1;
    injection.step = step;
    injection.device = 1;
    options.injections.push_back(injection);
  }
}

void evaluate(runtime::TrainOptions &options) { options.evalEvery = 4; }

const LoraOptions kLora = {3, 10, 0.25, {"all-linear"}};

const Example kExamples[] = {
    {"OneDevice", {kGpt2Dropout}, "", evaluate},
    {"DataParallelF16", {kGpt2, 7, 9}, "dp=3 m=2 dtype=f16", overflow, 2},
    {"TensorParallel", {kLlama}, "tp=3"},
    {"SequenceParallelBf16", {kLlama, 7, 9}, "tp=4 sp dtype=bf16", evaluate},
    {"Zero1", {kGpt2Dropout}, "dp=2,tp=2 m=2 zero=1"},
    {"Zero2Bf16", {kGpt2Dropout}, "dp=4 zero=2 m=2 dtype=bf16 grads=bf16"},
    {"Zero3F16", {kLlama}, "fsdp=2,tp=2 zero=3 m=2 dtype=f16", inject, 1},
    {"Zero3Recomputed",
     {kLlama, 7, 7},
     "dp=2,fsdp=3 zero=3 m=2 recompute=selective",
     [](runtime::TrainOptions &options) { options.batches = 3; }},
    {"Pipeline", {kGpt2DeepDropout}, "pp=3 m=3"},
    {"GpipeBf16", {kGpt2Deep}, "pp=2 m=4 schedule=gpipe dtype=bf16", evaluate},
    {"InterleavedRecomputed",
     {kGpt2DeepDropout},
     "pp=2 m=4 schedule=interleaved chunks=2 recompute=full"},
    {"ZeroBubbleF16", {kGpt2Deep}, "dp=2,pp=2 m=4 schedule=zb-h1 zero=2 dtype=f16", overflow, 2},
    {"ZeroBubbleLora", {kGpt2Deep, 8, 8, kLora}, "dp=2,pp=2 m=2 schedule=zb-v"},
    {"LoraBf16", {kLlama, 8, 8, kLora}, "dp=2,tp=2 sp zero=2 dtype=bf16 recompute=full"},
    {"AllAtOnceBf16",
     {kGpt2Dropout},
     "dp=2,tp=2,pp=2 m=4 zero=1 dtype=bf16",
     [](runtime::TrainOptions &options) { options.batches = 2; }},
    {"LionFrozenEpochs",
     {kLlama, 7, 7, {}, {"model.embed_tokens.*"}},
     "dp=3 zero=1 optimizer=lion accumulate",
     [](runtime::TrainOptions &options) {
       options.sampling = runtime::Sampling::Epochs;
       options.batches = 2;
     }},
};

class Resume : public testing::TestWithParam<Example> {};

} // namespace

TEST_P(Resume, HasTheBitsOfOneRun) {
  const Example &example = GetParam();
  SavedTraining whole, parts;
  for (SavedTraining *training : {&whole, &parts}) {
    training->options.steps = 20;
    if (example.change)
      example.change(training->options);
    if (training->options.evalEvery)
      training->options.evalDataPaths = {training->dir.path("eval.txt")};
    ASSERT_TRUE(training->compile(example.model, example.strategy));
  }
  auto result = whole.run();
  ASSERT_OK(result);
  EXPECT_EQ(result->stepsDone, 20);

  auto first = parts.runUntil(10);
  ASSERT_OK(first);
  EXPECT_TRUE(first->interrupted);
  EXPECT_EQ(first->stepsDone, 10);
  parts.options.resume = true;
  auto second = parts.run();
  ASSERT_OK(second);
  EXPECT_TRUE(runtime::testing::contains(parts.notes(), "goes on after step 10, from "));
  EXPECT_EQ(second->stepsDone, 20);
  EXPECT_EQ(second->stepsSkipped, result->stepsSkipped);
  // Otherwise the test would show nothing of skipped steps.
  EXPECT_GE(first->stepsSkipped, example.leastSkipped);
  EXPECT_GE(second->stepsSkipped - first->stepsSkipped, example.leastSkipped);

  ASSERT_EQ(whole.metrics().size(), 20u);
  EXPECT_EQ(whole.metrics(), parts.metrics());
  EXPECT_TRUE(whole.dir.read("w.safetensors") == parts.dir.read("w.safetensors"));
  parts.expectSameCheckpoint(whole, 20);
  // And not because nothing has changed in between.
  EXPECT_NE(whole.metrics()[9]["loss"], whole.metrics()[19]["loss"]);
}

INSTANTIATE_TEST_SUITE_P(Strategies, Resume, testing::ValuesIn(kExamples),
                         [](const testing::TestParamInfo<Example> &info) {
                           return std::string(info.param.name);
                         });

/// Parameters that overflow in an update whose loss was finite, while each step has a checkpoint.
TEST(ResumeAfterDivergence, GoesOnFromTheLastGoodOne) {
  for (int64_t keep : {1, 2}) {
    SavedTraining whole, parts;
    for (SavedTraining *training : {&whole, &parts}) {
      training->options.steps = 6;
      training->options.warmupSteps = 0;
      training->options.decay = runtime::LearningRateDecay::Constant;
      training->options.checkpointEvery = {1, 0};
      training->options.keepCheckpoints = keep;
      SavedModel model = {kGpt2};
      model.change = [](CompileOptions &options) {
        options.optimizer = Optimizer::SGD;
        options.clip = 0;
      };
      ASSERT_TRUE(training->compile(model, "dp=2 zero=1"));
    }
    ASSERT_OK(whole.run());
    parts.options.steps = 3;
    ASSERT_OK(parts.run());
    parts.options.resume = true;
    parts.options.steps = 20;
    parts.options.learningRate = 1e39;
    auto diverged = parts.run();
    EXPECT_ERROR(diverged, "the checkpoint of step 4 is not complete: parameter \"");
    EXPECT_ERROR(diverged, "weights that are not finite are not saved; lower the learning rate");
    EXPECT_EQ(*runtime::checkpointSteps(parts.dir.path("ckpt")),
              keep == 1 ? std::vector<int64_t>{3} : std::vector<int64_t>({2, 3}));
    parts.options.learningRate = whole.options.learningRate;
    parts.options.steps = 6;
    ASSERT_OK(parts.run());
    parts.expectSameCheckpoint(whole, 6);
  }
}

#undef GPT2
#undef DROPOUT
#undef NO_DROPOUT

} // namespace resumeTest
