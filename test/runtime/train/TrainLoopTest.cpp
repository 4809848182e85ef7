//===- TrainLoopTest.cpp - Runs a plan over a data set --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainLoop.h"

#include "plan/PlanReader.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/CheckpointSaver.h"
#include "runtime/data/Safetensors.h"
#include "runtime/train/ProgressReport.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TempDir.h"
#include "test/lib/plans/TestPlans.h"
#include "test/lib/plans/TrainStep.h"

#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace trainLoopTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

/// Runs plans in a folder with a text to train on.
class TrainLoop : public ::testing::Test {
protected:
  TrainLoop() {
    std::string text;
    for (int i = 0; i < 100; ++i)
      text += "the quick brown fox jumps over the lazy dog\n";
    options.planPath = dir.path("m.plan");
    options.dataPaths = {dir.write("text.txt", text)};
    options.steps = 10;
    options.learningRate = 0.1;
    usePlan(*trainingPlan({2, 2, 2}));
  }

  void usePlan(const plan::Plan &plan) { EXPECT_OK(writePlan(plan, options.planPath)); }

  Expected<TrainResult> run() {
    std::FILE *out = std::fopen(dir.path("out.log").c_str(), "w");
    std::FILE *notes = std::fopen(dir.path("notes.log").c_str(), "w");
    Expected<TrainResult> result = train(options, createFakeBackend(), out, notes, stop);
    std::fclose(out);
    std::fclose(notes);
    return result;
  }

  /// Acts when the first step is done.
  Expected<TrainResult> runAnd(const std::function<void()> &action) {
    std::atomic<bool> hasEnded = false;
    std::thread actor([&] {
      while (!hasEnded && !contains(dir.read("out.log"), "step 1/"))
        std::this_thread::yield();
      action();
    });
    Expected<TrainResult> result = run();
    hasEnded = true;
    actor.join();
    return result;
  }

  std::vector<nlohmann::json> metrics() {
    std::vector<nlohmann::json> lines;
    std::istringstream stream(dir.read("m.jsonl"));
    for (std::string line; std::getline(stream, line);)
      lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  TempDir dir;
  TrainOptions options;
  std::atomic<bool> stop = false;
};

} // namespace

TEST_F(TrainLoop, TrainsAndWritesMetrics) {
  options.metricsPath = dir.path("m.jsonl");
  options.warmupSteps = 2;
  options.minLearningRate = 0.01;
  auto result = run();
  ASSERT_OK(result);
  EXPECT_EQ(result->stepsDone, 10);
  EXPECT_FALSE(result->interrupted);
  std::vector<nlohmann::json> lines = metrics();
  ASSERT_EQ(lines.size(), 10u);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["step"], i + 1);
    EXPECT_GT(lines[i]["tokens_per_second"], 0);
    EXPECT_GT(lines[i]["step_seconds"], 0);
    EXPECT_GT(lines[i]["peak_bytes"], 0);
    EXPECT_NEAR(lines[i]["grad_norm"].get<double>(), 2 * std::sqrt(lines[i]["loss"].get<double>()),
                1e-3);
  }
  EXPECT_NEAR(lines[0]["lr"].get<double>(), 0.05, 1e-9);
  EXPECT_NEAR(lines[1]["lr"].get<double>(), 0.1, 1e-9);
  EXPECT_NEAR(lines[9]["lr"].get<double>(), 0.01, 1e-9);
  EXPECT_LT(lines[9]["loss"], lines[0]["loss"]);
  EXPECT_NEAR(lines[9]["loss"], *result->lastLoss, 1e-6);
  std::string log = dir.read("out.log");
  EXPECT_TRUE(contains(log, "a square: 64 parameters, 4 devices (dp=2, tp=2, micro=2 temporal)"));
  EXPECT_TRUE(contains(log, "text.txt: 4400 bytes of text"));
  EXPECT_TRUE(contains(log, "step 10/10  loss "));
}

TEST_F(TrainLoop, ContinuesFromSavedWeights) {
  options.learningRate = 0;
  options.savePath = dir.path("w.safetensors");
  options.seed = 7;
  auto first = run();
  ASSERT_OK(first);
  EXPECT_TRUE(contains(dir.read("out.log"), "saved "));
  options.initPaths = {options.savePath};
  options.savePath.clear();
  options.seed = 8;
  usePlan(*trainingPlan({1, 4, 1}));
  auto second = run();
  ASSERT_OK(second);
  EXPECT_NEAR(*second->lastLoss, *first->lastLoss, 1e-3);
  options.initPaths.clear();
  auto other = run();
  ASSERT_OK(other);
  EXPECT_GT(std::abs(*other->lastLoss - *first->lastLoss), 1e-2);
}

TEST_F(TrainLoop, DefaultsWork) {
  options.steps.reset();
  auto result = run();
  ASSERT_OK(result);
  EXPECT_EQ(result->stepsDone, 100);
}

TEST_F(TrainLoop, StopsAfterTheStepAndSaves) {
  options.savePath = dir.path("w.safetensors");
  options.steps = 1'000'000'000;
  auto result = runAnd([&] { stop = true; });
  ASSERT_OK(result);
  EXPECT_TRUE(result->interrupted);
  EXPECT_GE(result->stepsDone, 1);
  EXPECT_TRUE(contains(dir.read("out.log"), "interrupted after step "));
  EXPECT_OK(SafetensorsFile::open(options.savePath));
}

TEST_F(TrainLoop, BeforeTheFirstStepThereIsNothingToSave) {
  stop = true;
  options.savePath = dir.write("w.safetensors", "from another run");
  auto result = run();
  ASSERT_OK(result);
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(result->stepsDone, 0);
  EXPECT_TRUE(contains(dir.read("out.log"), "interrupted before the first step"));
  EXPECT_EQ(dir.read("w.safetensors"), "from another run");
}

TEST_F(TrainLoop, ALateErrorSavesTheLastCompleteStep) {
  options.savePath = dir.path("expected.safetensors");
  options.steps = 1;
  options.decay = LearningRateDecay::Constant;
  options.warmupSteps = 0;
  ASSERT_OK(run());
  options.steps = 5;
  options.savePath = dir.path("w.safetensors");
  options.metricsPath = "/dev/full";
  EXPECT_ERROR(run(), "/dev/full: cannot write: No space left on device; what was trained up to "
                      "step 1 is saved: " +
                          options.savePath);
  EXPECT_EQ(dir.read("w.safetensors"), dir.read("expected.safetensors"));
  EXPECT_TRUE(contains(dir.read("out.log"), "saved " + options.savePath));
  // Without --save there is no word about it.
  options.savePath.clear();
  auto result = run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "/dev/full: cannot write: No space left on device");
}

TEST_F(TrainLoop, AFileThatBecomesShorterIsALateError) {
  options.savePath = dir.path("w.safetensors");
  options.steps = 1'000'000'000;
  auto result = runAnd([&] { std::filesystem::resize_file(options.dataPaths[0], 0); });
  EXPECT_ERROR(result, "text.txt: had 4400 bytes when it was opened, and has 0 now; do not");
  EXPECT_ERROR(result, "; what was trained up to step ");
  EXPECT_OK(SafetensorsFile::open(options.savePath));
}

TEST_F(TrainLoop, WeightsThatAreNotFiniteAreNotSaved) {
  // The loss of the only step is finite, and its update overflows.
  options.steps = 1;
  options.warmupSteps = 0;
  options.decay = LearningRateDecay::Constant;
  options.learningRate = 1e308;
  EXPECT_ERROR(run(),
               "the parameters after step 1 are not finite, and have not been since the update "
               "of step 1, as far as the losses tell: tensor \"w\" has ");
  options.savePath = dir.write("w.safetensors", "good");
  EXPECT_ERROR(run(), " at element 0; lower the learning rate (--lr 1e+308); nothing is saved, " +
                          options.savePath + " is as before");
  EXPECT_EQ(dir.read("w.safetensors"), "good");
  // Steps after it are skipped.
  options.steps = 4;
  EXPECT_ERROR(run(),
               "the parameters after step 4 are not finite, and have not been since the update "
               "of step 1,");
  EXPECT_EQ(dir.read("w.safetensors"), "good");
  // A run that goes on all the same does not save them.
  options.allowNonfinite = true;
  EXPECT_ERROR(run(), "the parameters after step 4 are not finite");
  EXPECT_EQ(dir.read("w.safetensors"), "good");
  options.savePath.clear();
  EXPECT_OK(run());
}

TEST_F(TrainLoop, InitialWeightsMustBeFinite) {
  HostTensor w(TensorType{DType::F32, {64}});
  w.as<float>()[63] = std::numeric_limits<float>::quiet_NaN();
  std::string path = dir.path("nan.safetensors");
  ASSERT_OK(writeSafetensors(path, std::map<std::string, HostTensor>{{"w", w}}));
  options.initPaths = {path};
  options.steps = 0;
  options.savePath = dir.path("w.safetensors");
  EXPECT_ERROR(run(), "--init " + path +
                          ": tensor \"w\" has nan at element 63, expected finite numbers only");
  options.allowNonfinite = true;
  EXPECT_ERROR(run(),
               "the parameters after step 0 are not finite, and have not been since the start");
  EXPECT_FALSE(std::filesystem::exists(options.savePath));
}

TEST_F(TrainLoop, GradientsThatStayNonfiniteAreAnError) {
  options.learningRate = 1e30;
  options.decay = LearningRateDecay::Constant;
  options.warmupSteps = 0;
  options.savePath = dir.path("w.safetensors");
  options.metricsPath = dir.path("m.jsonl");
  options.steps = 20;
  // The first step takes the parameter to where its gradient has no finite norm.
  EXPECT_ERROR(run(),
               "the norm of the gradient is inf and the loss is inf at step 11, and 10 "
               "consecutive steps were skipped because of such gradients; lower the learning rate "
               "(--lr 1e+30), look for values in the data");
  EXPECT_FALSE(std::filesystem::exists(options.savePath));
  EXPECT_EQ(metrics().size(), 11u);
  EXPECT_TRUE(metrics()[10]["loss"].is_null());
  EXPECT_EQ(metrics()[10]["skipped_steps"], 10);
  options.allowNonfinite = true;
  auto result = run();
  ASSERT_OK(result);
  EXPECT_EQ(result->stepsDone, 20);
  EXPECT_EQ(result->stepsSkipped, 19);
  EXPECT_TRUE(contains(dir.read("out.log"), "skipped 19 of 20 steps, whose gradients were not"));
}

TEST_F(TrainLoop, FindsUnwritablePathsBeforeTheFirstStep) {
  options.savePath = dir.path("missing/w.safetensors");
  EXPECT_ERROR(run(), "missing/w.safetensors: cannot write: No such file");
  EXPECT_EQ(dir.read("out.log"), "");
  options.savePath.clear();
  options.metricsPath = dir.path("missing/m.jsonl");
  EXPECT_ERROR(run(), "missing/m.jsonl: cannot write: No such file");
  EXPECT_EQ(dir.read("out.log"), "");
}

TEST_F(TrainLoop, ChecksItsOptions) {
  options.dataPaths.clear();
  EXPECT_ERROR(run(), "the plan needs data for tokens (i32[8,6]); give a file with --data");
  options.dataPaths = {dir.path("none.txt")};
  EXPECT_ERROR(run(), "none.txt: cannot open");
  options.dataPaths = {dir.path("text.txt")};
  options.steps = -1;
  EXPECT_ERROR(run(), "--steps is -1");
  options.steps = 5;
  options.warmupSteps = 6;
  EXPECT_ERROR(run(), "--warmup is 6; expected 0 to the 5 steps of the run");
  options.warmupSteps = 0;
  options.learningRate = NAN;
  EXPECT_ERROR(run(), "--lr is nan");
  options.learningRate = 0.1;
  options.minLearningRate = 0.2;
  EXPECT_ERROR(run(), "--min-lr is 0.2");
  options.minLearningRate = 0;
  options.initPaths = {dir.path("none.safetensors")};
  EXPECT_ERROR(run(), "none.safetensors: cannot open");
  options.initPaths.clear();
  options.planPath = dir.path("none.plan");
  EXPECT_ERROR(run(), "none.plan: cannot open");
}

TEST_F(TrainLoop, NoStepsSaveTheInitialWeights) {
  options.steps = 0;
  options.savePath = dir.path("w.safetensors");
  auto result = run();
  ASSERT_OK(result);
  EXPECT_FALSE(result->interrupted);
  EXPECT_OK(SafetensorsFile::open(options.savePath));
}

TEST_F(TrainLoop, APlanThatDoesNotTrainPrintsItsOutputs) {
  usePlan(*forwardPlan());
  options.dataPaths = {dir.write("a.txt", std::string(100, 'a'))};
  options.steps.reset();
  auto result = run();
  ASSERT_OK(result);
  EXPECT_EQ(result->stepsDone, 1);
  EXPECT_FALSE(result->lastLoss);
  std::string log = dir.read("out.log");
  EXPECT_TRUE(contains(log, "token_sum: f32[] = 2328\n"));
  EXPECT_TRUE(contains(log, "values: f32[4,6] = [97, 97, 97, 97, 97, 97, 97, 97, ...]  min 97"));
}

TEST_F(TrainLoop, APlanWithoutDataNeedsNone) {
  PlanBuilder builder;
  uint32_t x = builder.buffer(DType::F32, {});
  builder.task("t");
  builder.schedule(0);
  (*builder.kernel("fill", {}, {x}).mutable_attributes())["value"] = floatAttribute(2);
  builder.output("loss", DType::F32, {}, {}, x);
  usePlan(*builder.build());
  auto result = run();
  ASSERT_OK(result);
  EXPECT_EQ(*result->lastLoss, 2);
  EXPECT_EQ(dir.read("notes.log"), "note: the plan has no data inputs; --data is not used\n");
}

TEST_F(TrainLoop, PrintsTheProfile) {
  options.profile = true;
  ASSERT_OK(run());
  std::string log = dir.read("out.log");
  EXPECT_TRUE(contains(log, "kernel "));
  EXPECT_TRUE(contains(log, "sgd "));
  EXPECT_TRUE(contains(log, "all_reduce sent 480 B in all"));
  EXPECT_TRUE(contains(log, "collectives: "));
  EXPECT_TRUE(contains(log, "% overlapped with computation\n"));
}

TEST(ProgressReport, MeasuredCollectives) {
  EXPECT_EQ(formatMeasuredCollectives({2, 0.5}),
            "collectives: 2.000 s, 75% overlapped with computation\n");
  EXPECT_EQ(formatMeasuredCollectives({}), "");
}

TEST_F(TrainLoop, NamesTheFileAndTheValueThatIsOutOfRange) {
  auto plan = trainingPlan();
  plan->mutable_programs(0)->mutable_inputs(0)->set_index_limit(32);
  usePlan(*plan);
  EXPECT_ERROR(run(), "text.txt: token ");
  EXPECT_ERROR(run(), "takes tokens from 0 to 31");
  EXPECT_EQ(dir.read("out.log"), "");
  // One token at the end, which the batches of the run may never have.
  plan->mutable_programs(0)->mutable_inputs(0)->set_index_limit(123);
  usePlan(*plan);
  options.dataPaths = {dir.write("long.txt", std::string(1'000'000, 'a') + "{a")};
  EXPECT_ERROR(run(), "long.txt: token 123 at position 1000000 is out of range");
  EXPECT_EQ(dir.read("out.log"), "");
}

//===----------------------------------------------------------------------===//
// Checkpoints
//===----------------------------------------------------------------------===//

namespace {

/// Runs that end and go on.
class ResumedRun : public TrainLoop {
protected:
  ResumedRun() {
    options.steps = 20;
    options.metricsPath = dir.path("m.jsonl");
    options.savePath = dir.path("w.safetensors");
  }

  /// The metrics that do not depend on the clock.
  std::vector<nlohmann::json> numbers() {
    std::vector<nlohmann::json> lines = metrics();
    for (nlohmann::json &line : lines)
      for (const char *clock : {"step_seconds", "tokens_per_second", "checkpoint_wait_seconds",
                                "checkpoint_copy_seconds"})
        line.erase(clock);
    return lines;
  }

  /// Runs until `steps` steps are done, and leaves the checkpoint.
  void runUntil(int64_t steps) {
    std::optional<int64_t> all = std::exchange(options.steps, steps);
    options.checkpointPath = dir.path("ckpt");
    ASSERT_OK(run());
    options.steps = all;
  }
};

} // namespace

TEST_F(ResumedRun, HasTheBitsOfAnUninterruptedOne) {
  options.decay = LearningRateDecay::Constant;
  options.batches = 2;
  options.warmupSteps = 3;
  ASSERT_OK(run());
  std::vector<nlohmann::json> expected = numbers();
  std::string weights = dir.read("w.safetensors");
  runUntil(9);
  options.resume = true;
  // Of a run that went further than its checkpoint.
  std::ofstream(dir.path("m.jsonl"), std::ios::app) << "{\"step\": 10}\n{\"ste";
  usePlan(*trainingPlan({2, 2, 2}));
  auto result = run();
  ASSERT_OK(result);
  EXPECT_EQ(result->stepsDone, 20);
  EXPECT_EQ(numbers(), expected);
  EXPECT_EQ(dir.read("w.safetensors"), weights);
  EXPECT_TRUE(contains(dir.read("notes.log"), "goes on after step 9, from "));
  EXPECT_TRUE(contains(dir.read("out.log"), "step 10/20"));
}

TEST_F(ResumedRun, ExportsWithoutTraining) {
  runUntil(5);
  std::string weights = dir.read("w.safetensors"), lines = dir.read("m.jsonl");
  options.resume = true;
  options.dataPaths.clear();
  for (int64_t steps : {0, 3, 5}) {
    options.steps = steps;
    std::filesystem::remove(dir.path("w.safetensors"));
    auto result = run();
    ASSERT_OK(result);
    EXPECT_EQ(result->stepsDone, 5);
    EXPECT_EQ(dir.read("w.safetensors"), weights);
    EXPECT_EQ(dir.read("m.jsonl"), lines);
  }
  options.steps = 6;
  EXPECT_ERROR(run(), "the plan needs data");
}

TEST_F(ResumedRun, StartsAnewWhereThereIsNothing) {
  options.checkpointPath = dir.path("ckpt");
  options.resume = true;
  options.checkpointEvery = {5, 0};
  options.keepCheckpoints = 0;
  ASSERT_OK(run());
  EXPECT_TRUE(contains(dir.read("notes.log"), "has no checkpoint yet; the run starts anew"));
  for (int step : {5, 10, 15, 20})
    EXPECT_TRUE(std::filesystem::exists(dir.path(fmt::format("ckpt/step-{:07}", step))));
  EXPECT_TRUE(metrics()[4].contains("checkpoint_wait_seconds"));
  EXPECT_FALSE(metrics()[5].contains("checkpoint_wait_seconds"));
}

TEST_F(ResumedRun, StepsWhoseLossIsNotFiniteHaveNoCheckpoint) {
  options.checkpointPath = dir.path("ckpt");
  options.checkpointEvery = {1, 0};
  options.keepCheckpoints = 2;
  options.decay = LearningRateDecay::Constant;
  options.warmupSteps = 0;
  options.steps = 3;
  ASSERT_OK(run());
  // The fourth step takes the parameter to where its loss is infinite, and its gradient too.
  options.resume = true;
  options.learningRate = 1e30;
  options.steps = 20;
  EXPECT_ERROR(run(), "10 consecutive steps were skipped");
  EXPECT_EQ(*checkpointSteps(options.checkpointPath), (std::vector<int64_t>{3, 4}));
}

TEST_F(ResumedRun, WhatChangesIsAnErrorOrANote) {
  runUntil(5);
  EXPECT_ERROR(run(), "has checkpoints of another run, the last after step 5; give --resume");
  options.resume = true;
  options.seed = 3;
  options.batches = 2;
  EXPECT_ERROR(run(), "--allow-change batch,seed");
  options.allowedChanges = {"batch", "seed"};
  ASSERT_OK(run());
  EXPECT_TRUE(contains(dir.read("notes.log"), "the seed was 0, and is 3"));
  EXPECT_TRUE(contains(dir.read("notes.log"), "the learning rate was cosine from 0.1 to 0 in 5"));
}

TEST_F(ResumedRun, RefusesCountersOfAnotherStep) {
  {
    auto session = Session::create(trainingPlan(), createFakeBackend());
    ASSERT_OK(session);
    ASSERT_OK((*session)->initializeStates(1));
    ASSERT_OK(setStepState(**session, plan::State::APPLIED_STEPS, {3}));
    auto folder = CheckpointFolder::open(dir.path("ckpt"));
    ASSERT_OK(folder);
    auto saver = CheckpointSaver::create(**session, *folder, 0);
    ASSERT_OK(saver);
    ASSERT_OK((*saver)->copy());
    CheckpointManifest manifest;
    manifest.position.step = 5;
    (*saver)->write(std::move(manifest));
    ASSERT_OK((*saver)->finish());
  }
  options.checkpointPath = dir.path("ckpt");
  options.resume = true;
  options.steps = 5;
  EXPECT_ERROR(run(), "the checkpoint is of step 5, but its step state counts 3 applied and 0 "
                      "skipped steps");
}

TEST_F(ResumedRun, AnInterruptedRunHasACheckpoint) {
  options.checkpointPath = dir.path("ckpt");
  options.steps = 1000000;
  auto result = runAnd([&] { stop = true; });
  ASSERT_OK(result);
  EXPECT_TRUE(result->interrupted);
  EXPECT_TRUE(std::filesystem::exists(dir.path(fmt::format("ckpt/step-{:07}", result->stepsDone))));
  EXPECT_TRUE(contains(dir.read("out.log"), "checkpoint "));
}

TEST_F(ResumedRun, APlanThatDoesNotTrainHasNone) {
  usePlan(*forwardPlan());
  options.checkpointPath = dir.path("ckpt");
  EXPECT_ERROR(run(), "--checkpoint: the plan does not train");
}

} // namespace trainLoopTest
