//===- ChangedRunTest.cpp - Tests of resuming after a change --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Adapters and frozen parts may change between two parts of a run: missing ones and superfluous
// ones are named. The batch, the data and the optimizer may not, unless a flag says so.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Safetensors.h"
#include "test/checkpoint/SavedTraining.h"
#include "test/lib/plans/Expect.h"

#include <gtest/gtest.h>

namespace changedRunTest {

using namespace dtc;
using namespace dtc::test;
using runtime::testing::contains;

namespace {

const char *kConfig = R"({"model_type": "gpt2", "vocab_size": 19, "n_positions": 9, "n_embd": 12,
  "n_head": 4, "n_layer": 2, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})";
const SavedModel kModel = {kConfig};
const LoraOptions kLora = {2, 4, 0, {"attn.c_attn", "attn.c_proj"}};
const char *kStrategy = "dp=2,tp=2 zero=1";

class ChangedRun : public testing::Test {
protected:
  ChangedRun() {
    saved.options.steps = 4;
    changed.options.steps = 8;
    for (SavedTraining *training : {&saved, &changed}) {
      training->options.decay = runtime::LearningRateDecay::Constant;
      training->options.warmupSteps = 0;
    }
    changed.options.resume = true;
  }

  /// Trains the one, and compiles the other, which has its checkpoints.
  void prepare(const SavedModel &from, const SavedModel &to,
               const std::string &strategy = kStrategy) {
    ASSERT_TRUE(saved.compile(from, kStrategy));
    ASSERT_OK(saved.run());
    ASSERT_TRUE(changed.compile(to, strategy));
    changed.copyFrom(saved);
  }

  /// That the run needs the flag and goes on with it.
  void expectNeeds(const std::string &flag, const std::string &before, const std::string &after) {
    changed.options.allowedChanges = {};
    auto refused = changed.run();
    EXPECT_ERROR(refused, "the run is not the one that was saved: ");
    EXPECT_ERROR(refused, before);
    EXPECT_ERROR(refused, after);
    EXPECT_ERROR(refused, "--allow-change " + flag);
    changed.options.allowedChanges = {flag};
    auto result = changed.run();
    ASSERT_OK(result);
    EXPECT_EQ(result->stepsDone, 8);
    EXPECT_TRUE(contains(changed.notes(), "--resume: ")) << changed.notes();
    EXPECT_TRUE(contains(changed.notes(), before));
    EXPECT_TRUE(contains(changed.notes(), after));
  }

  /// The weights that both have are those that were saved; none has changed in a run of no steps.
  void expectSameWeights(size_t common) {
    changed.options.steps = 4;
    ASSERT_OK(changed.run());
    auto before = runtime::SafetensorsFile::open(saved.dir.path("w.safetensors"));
    auto after = runtime::SafetensorsFile::open(changed.dir.path("w.safetensors"));
    ASSERT_OK(before);
    ASSERT_OK(after);
    size_t found = 0;
    for (const auto &[name, entry] : before->tensors())
      if (after->tensors().count(name)) {
        ++found;
        auto a = before->read(name, DType::F32), b = after->read(name, DType::F32);
        ASSERT_OK(a);
        ASSERT_OK(b);
        EXPECT_TRUE(a->bytes == b->bytes) << name;
      }
    EXPECT_EQ(found, common);
  }

  SavedTraining saved, changed;
};

} // namespace

TEST_F(ChangedRun, AdaptersMayBeAdded) {
  SavedModel adapted = kModel;
  adapted.lora = kLora;
  prepare(kModel, adapted, "dp=3 zero=3");
  expectSameWeights(28);
  // Two tensors of each of four adapters, and two moments of each. The base no longer trains.
  EXPECT_TRUE(contains(changed.notes(), "8 adapters of the plan are not in the checkpoint and keep "
                                        "their initial values: "));
  EXPECT_TRUE(contains(changed.notes(), "16 tensors of optimizer state are not in the checkpoint "
                                        "and start as zeros: "));
  EXPECT_TRUE(contains(changed.notes(), "56 tensors of optimizer state are not in the plan: "));
  changed.options.steps = 8;
  ASSERT_OK(changed.run());
}

TEST_F(ChangedRun, AdaptersMayBeRemoved) {
  SavedModel adapted = kModel;
  adapted.lora = kLora;
  prepare(adapted, kModel, "pp=2 m=2");
  expectSameWeights(28);
  EXPECT_TRUE(contains(changed.notes(), "8 adapters of the checkpoint are not in the plan: "));
  EXPECT_TRUE(contains(changed.notes(), "56 tensors of optimizer state are not in the checkpoint "
                                        "and start as zeros: "));
  EXPECT_TRUE(contains(changed.notes(), "16 tensors of optimizer state are not in the plan: "));
}

TEST_F(ChangedRun, AdaptersOfAnotherRankAreAnError) {
  SavedModel adapted = kModel, other = kModel;
  adapted.lora = other.lora = kLora;
  other.lora->rank = 3;
  prepare(adapted, other);
  EXPECT_ERROR(changed.run(), ", but the plan has ");
}

TEST_F(ChangedRun, FrozenPartsMayDiffer) {
  SavedModel frozen = kModel;
  frozen.freeze = {"transformer.h.0.*"};
  prepare(frozen, kModel, "tp=3 m=2");
  expectSameWeights(28);
  // The twelve parameters of a layer.
  EXPECT_TRUE(contains(changed.notes(), "24 tensors of optimizer state are not in the checkpoint "
                                        "and start as zeros: transformer.h.0."));
  EXPECT_FALSE(contains(changed.notes(), "are not in the plan"));
}

TEST_F(ChangedRun, PartsMayBeFrozen) {
  SavedModel frozen = kModel;
  frozen.freeze = {"transformer.h.0.*"};
  prepare(kModel, frozen);
  expectSameWeights(28);
  EXPECT_TRUE(contains(changed.notes(), "24 tensors of optimizer state are not in the plan: "
                                        "transformer.h.0."));
  EXPECT_FALSE(contains(changed.notes(), "are not in the checkpoint"));
}

TEST_F(ChangedRun, AnotherModelIsAnError) {
  SavedModel other = kModel;
  std::string config = kConfig;
  config.replace(config.find("\"n_layer\": 2"), 12, "\"n_layer\": 3");
  other.config = config.c_str();
  prepare(kModel, other);
  auto refused = changed.run();
  EXPECT_ERROR(refused,
               "12 parameters of the plan are not in the checkpoint and keep their initial "
               "values: transformer.h.2.");
  EXPECT_ERROR(refused, "--allow-change model");
  changed.options.allowedChanges = {"model"};
  ASSERT_OK(changed.run());
  EXPECT_TRUE(contains(changed.notes(), "12 parameters of the plan are not in the checkpoint"));
}

TEST_F(ChangedRun, TheOperationsAreChecked) {
  for (const auto &[from, to] :
       {std::pair<std::string, std::string>{"\"n_head\": 4", "\"n_head\": 2"},
        {"\"n_embd\": 12", "\"n_embd\": 12, \"activation_function\": \"relu\""},
        {"\"resid_pdrop\": 0", "\"resid_pdrop\": 0.5"}}) {
    SavedTraining whole, part;
    std::string config = kConfig;
    config.replace(config.find(from), from.size(), to);
    whole.options.steps = 2;
    part.options.steps = 4;
    part.options.resume = true;
    ASSERT_TRUE(whole.compile(kModel, kStrategy));
    ASSERT_OK(whole.run());
    ASSERT_TRUE(part.compile({config.c_str()}, kStrategy));
    part.copyFrom(whole);
    auto refused = part.run();
    EXPECT_ERROR(refused, "the operations of the model differ");
    EXPECT_ERROR(refused, "--allow-change model");
    part.options.allowedChanges = {"model"};
    ASSERT_OK(part.run());
    EXPECT_TRUE(contains(part.notes(), "--resume: the operations of the model differ"));
  }
}

TEST_F(ChangedRun, TheAlphaOfAdaptersIsChecked) {
  SavedModel adapted = kModel, other = kModel;
  adapted.lora = other.lora = kLora;
  other.lora->alpha = 8;
  prepare(adapted, other);
  auto refused = changed.run();
  EXPECT_ERROR(refused, "the operations of the model differ");
  EXPECT_ERROR(refused, "--allow-change model");
}

TEST_F(ChangedRun, ClippingIsChecked) {
  SavedModel other = kModel;
  other.change = [](CompileOptions &options) { options.clip = 0.01; };
  prepare(kModel, other);
  expectNeeds("optimizer", "what is done to gradients and learning rates was clip=1",
              "is clip=0.01");
}

TEST_F(ChangedRun, ScalesOfLearningRatesAreChecked) {
  SavedModel other = kModel;
  other.change = [](CompileOptions &options) { options.paramGroups = {"*.bias:lr_scale=0.5"}; };
  prepare(kModel, other);
  expectNeeds("optimizer", "what is done to gradients and learning rates was clip=1",
              "is clip=1, *.bias:lr_scale=0.5");
}

/// Which samples have been seen does not depend on the size of the batches.
TEST_F(ChangedRun, EpochsGoOnWhereTheyWere) {
  SavedModel other = kModel;
  other.batch = 4;
  for (SavedTraining *training : {&saved, &changed})
    training->options.sampling = runtime::Sampling::Epochs;
  prepare(kModel, other);
  expectNeeds("batch", "a step was 8 samples (a batch of 8)", "is 4 samples (a batch of 4)");
  EXPECT_FALSE(contains(changed.notes(), "seen twice"));
  // 4 batches of 8, and 4 of 4.
  EXPECT_EQ(changed.checkpointOf(8)->manifest().position.nextBatch, 12);
}

TEST_F(ChangedRun, SamplesOfAnUnevenBatchAreSeenTwice) {
  SavedModel other = kModel;
  other.batch = 6;
  for (SavedTraining *training : {&saved, &changed})
    training->options.sampling = runtime::Sampling::Epochs;
  prepare(kModel, other, "dp=2");
  changed.options.allowedChanges = {"batch"};
  ASSERT_OK(changed.run());
  EXPECT_TRUE(contains(changed.notes(),
                       "--resume: the 32 samples that the run has seen are no whole number of "
                       "batches of 6; the last 2 of them are seen twice"))
      << changed.notes();
  EXPECT_EQ(changed.checkpointOf(8)->manifest().position.nextBatch, 9);
}

/// A batch of a number, drawn at random, is not drawn again.
TEST_F(ChangedRun, RandomBatchesKeepTheirNumbers) {
  SavedModel other = kModel;
  other.batch = 16;
  prepare(kModel, other);
  changed.options.allowedChanges = {"batch"};
  ASSERT_OK(changed.run());
  EXPECT_EQ(changed.checkpointOf(8)->manifest().position.nextBatch, 8);
}

/// The losses of the steps are those of the undivided batches.
TEST_F(ChangedRun, AStepMayBeSplitInOtherBatches) {
  SavedModel other = kModel;
  other.batch = 4;
  for (SavedTraining *training : {&saved, &changed})
    training->options.sampling = runtime::Sampling::Epochs;
  prepare(kModel, other, "dp=2 accumulate");
  changed.options.batches = 2;
  ASSERT_OK(changed.run());
  EXPECT_TRUE(contains(changed.notes(), "a step was 8 samples (a batch of 8), and is 8 samples (2 "
                                        "batches of 4)"))
      << changed.notes();
  EXPECT_EQ(changed.checkpointOf(8)->manifest().position.nextBatch, 16);
  saved.options.steps = 8;
  saved.options.resume = true;
  ASSERT_OK(saved.run());
  std::vector<double> whole = saved.losses(5, 8), split = changed.losses(5, 8);
  ASSERT_EQ(whole.size(), 4u);
  ASSERT_EQ(split.size(), 4u);
  for (size_t i = 0; i < whole.size(); ++i)
    EXPECT_NEAR(whole[i], split[i], 1e-4) << "step " << 5 + i;
}

TEST_F(ChangedRun, TheGlobalBatchIsChecked) {
  SavedModel other = kModel;
  other.batch = 6;
  prepare(kModel, other);
  expectNeeds("batch", "a step was 8 samples (a batch of 8)", "is 6 samples (a batch of 6)");
}

TEST_F(ChangedRun, AccumulatedBatchesAreChecked) {
  prepare(kModel, kModel, "m=2");
  changed.options.batches = 2;
  expectNeeds("batch", "a step was 8 samples", "is 16 samples (2 batches of 8)");
}

TEST_F(ChangedRun, TheSequenceLengthIsChecked) {
  SavedModel other = kModel;
  other.seq = 5;
  prepare(kModel, other);
  expectNeeds("sequence", "a sequence was 8 tokens", "is 5 tokens");
}

TEST_F(ChangedRun, TheDataAreChecked) {
  prepare(kModel, kModel);
  // The same data under another name are the same.
  changed.options.dataPaths = {changed.dir.write("same.txt", changed.dir.read("text.txt"))};
  changed.options.steps = 5;
  ASSERT_OK(changed.run());
  changed.options.steps = 8;
  changed.options.dataPaths = {changed.dir.path("eval.txt")};
  expectNeeds("data", "the data set was ", "and is ");
}

TEST_F(ChangedRun, TheOptimizerIsChecked) {
  prepare(kModel, kModel, std::string(kStrategy) + " optimizer=lion");
  expectNeeds("optimizer",
              "the optimizer of transformer.h.0.attn.c_attn.bias and 27 more was adamw ",
              "and is lion ");
  EXPECT_TRUE(contains(changed.notes(), "tensors of optimizer state are not in the plan"));
}

TEST_F(ChangedRun, TheSeedIsChecked) {
  prepare(kModel, kModel);
  changed.options.seed = 8;
  expectNeeds("seed", "the seed was 7", "is 8");
}

} // namespace changedRunTest
