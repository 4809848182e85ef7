//===- TrainStepsInFlightTest.cpp - Training on asynchronous devices ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainLoop.h"

#include "plan/PlanReader.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "test/lib/plans/AsyncBackend.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/TempDir.h"
#include "test/lib/plans/TestPlans.h"

#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace trainStepsInFlightTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

/// The loss of the training plan, up to which its program is kept.
plan::Plan evaluationOf(const plan::Plan &plan) {
  plan::Plan evaluation = plan;
  evaluation.set_entry("evaluate");
  plan::Program &program = *evaluation.mutable_programs(0);
  auto *outputs = program.mutable_outputs();
  outputs->DeleteSubrange(1, outputs->size() - 1);
  auto *inputs = program.mutable_inputs();
  inputs->DeleteSubrange(1, inputs->size() - 1);
  for (plan::State &state : *program.mutable_states())
    state.clear_update();
  auto *instructions = program.mutable_tasks(1)->mutable_instructions();
  int end = 0;
  while (!instructions->Get(end).has_collective() ||
         instructions->Get(end).collective().tensors(0).output() != outputs->Get(0).buffer())
    ++end;
  instructions->DeleteSubrange(end + 1, instructions->size() - end - 1);
  return evaluation;
}

/// Trains the plan of one device: on the host, where each step is over before the next begins, or
/// on a device that waits at the gate once a step, for the norm of the gradient.
class TrainStepsInFlight : public ::testing::Test {
protected:
  TrainStepsInFlight() {
    std::string text;
    for (int i = 0; i < 100; ++i)
      text += "the quick brown fox jumps over the lazy dog\n";
    options.planPath = dir.path("m.plan");
    options.dataPaths = {dir.write("text.txt", text)};
    options.steps = 8;
    options.learningRate = 0.1;
    options.decay = LearningRateDecay::Constant;
    options.warmupSteps = 0;
    options.metricsPath = dir.path("m.jsonl");
    options.savePath = dir.path("w.safetensors");
    EXPECT_OK(writePlan(*trainingPlan(), options.planPath));
  }

  Expected<TrainResult> run(std::shared_ptr<const Backend> backend) {
    std::FILE *out = std::fopen(dir.path("out.log").c_str(), "w");
    Expected<TrainResult> result = train(options, std::move(backend), out, out, stop);
    std::fclose(out);
    return result;
  }
  Expected<TrainResult> runOnHost() { return run(createFakeBackend()); }
  Expected<TrainResult> runOnDevice() { return run(createAsyncBackend(gate)); }

  /// Runs on the device while `action` does something at the gate, which is open after that.
  template <typename Action> Expected<TrainResult> runAnd(const Action &action) {
    dir.write("out.log", ""); // of a run before
    Expected<TrainResult> result = Error{"has not run"};
    std::thread runner([&] { result = runOnDevice(); });
    action();
    gate->open();
    runner.join();
    return result;
  }

  void waitForLog(const std::string &text) {
    while (!contains(dir.read("out.log"), text))
      std::this_thread::yield();
  }

  /// The metrics that do not depend on the clock.
  std::vector<nlohmann::json> metrics() {
    std::vector<nlohmann::json> lines;
    std::istringstream stream(dir.read("m.jsonl"));
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(nlohmann::json::parse(line));
      EXPECT_GT(lines.back()["step_seconds"], 0);
      for (const char *clock : {"step_seconds", "tokens_per_second", "checkpoint_wait_seconds",
                                "checkpoint_copy_seconds"})
        lines.back().erase(clock);
    }
    return lines;
  }

  /// The weights of a run of `steps` steps on the host, which leaves its metrics.
  std::string weightsAfter(int64_t steps) {
    TrainOptions before = options;
    options.steps = steps;
    options.savePath = dir.path("expected.safetensors");
    options.checkpointPath.clear();
    EXPECT_OK(runOnHost());
    options = before;
    return dir.read("expected.safetensors");
  }

  TempDir dir;
  TrainOptions options;
  std::atomic<bool> stop = false;
  std::shared_ptr<KernelGate> gate = std::make_shared<KernelGate>("sqrt");
};

} // namespace

TEST_F(TrainStepsInFlight, AStepIsStartedBeforeTheOneBeforeIsTakenIn) {
  auto result = runAnd([&] {
    gate->waitForEnqueued(2);
    EXPECT_FALSE(contains(dir.read("out.log"), "step 1/8"));
    gate->let(1);
    waitForLog("step 1/8");
    gate->waitForEnqueued(3);
    EXPECT_FALSE(contains(dir.read("out.log"), "step 2/8"));
  });
  ASSERT_OK(result);
  EXPECT_EQ(result->stepsDone, 8);
  EXPECT_EQ(gate->enqueued(), 8u);
}

TEST_F(TrainStepsInFlight, HaveTheNumbersOfStepsOneByOne) {
  for (int64_t batches : {1, 2}) {
    options.batches = batches;
    options.decay = LearningRateDecay::Cosine;
    if (batches > 1) {
      EXPECT_OK(writePlan(*trainingPlan({1, 1, 4}), options.planPath));
    }
    std::string weights = weightsAfter(8);
    std::vector<nlohmann::json> expected = metrics();
    ASSERT_EQ(expected.size(), 8u);
    gate->open();
    ASSERT_OK(runOnDevice());
    EXPECT_EQ(metrics(), expected);
    EXPECT_EQ(dir.read("w.safetensors"), weights);
  }
}

TEST_F(TrainStepsInFlight, ACheckpointHasTheStatesOfItsStep) {
  std::string weights = weightsAfter(8);
  std::vector<nlohmann::json> expected = metrics();
  for (CheckpointInterval every : {CheckpointInterval{3, 0}, {0, 1e-9}}) {
    std::filesystem::remove_all(dir.path("ckpt"));
    options.checkpointPath = dir.path("ckpt");
    options.checkpointEvery = every;
    options.keepCheckpoints = 0;
    options.resume = false;
    gate->open();
    ASSERT_OK(runOnDevice());
    EXPECT_EQ(metrics(), expected);
    EXPECT_EQ(dir.read("w.safetensors"), weights);
    auto steps = checkpointSteps(options.checkpointPath);
    ASSERT_OK(steps);
    EXPECT_EQ(steps->back(), 8);
    EXPECT_GE(steps->size(), 3u);
    // Each of them is what a run of one step after the other goes on from to the same weights.
    options.resume = true;
    while (steps->size() > 1) {
      std::filesystem::remove_all(dir.path(fmt::format("ckpt/step-{:07}", steps->back())));
      steps->pop_back();
      if (steps->back() != 3 && steps->back() != 6)
        continue;
      options.checkpointEvery = {1000, 0};
      ASSERT_OK(runOnHost());
      EXPECT_TRUE(contains(dir.read("out.log"),
                           fmt::format("goes on after step {}, from ", steps->back())));
      EXPECT_EQ(metrics(), expected);
      EXPECT_EQ(dir.read("w.safetensors"), weights);
      std::filesystem::remove_all(dir.path("ckpt/step-0000008"));
    }
  }
}

TEST_F(TrainStepsInFlight, ACheckpointThatIsDueHoldsUpTheNextStep) {
  options.checkpointPath = dir.path("ckpt");
  options.checkpointEvery = {2, 0};
  auto result = runAnd([&] {
    gate->waitForEnqueued(2);
    gate->let(1);
    waitForLog("step 1/8");
    // The third step begins when the second is taken in.
    EXPECT_EQ(gate->enqueued(), 2u);
    gate->let(1);
    waitForLog("step 2/8");
    gate->waitForEnqueued(4);
  });
  ASSERT_OK(result);
}

TEST_F(TrainStepsInFlight, AnEvaluationHoldsUpTheNextStep) {
  auto plan = trainingPlan();
  *plan->add_entry_points() = evaluationOf(*plan);
  EXPECT_OK(writePlan(*plan, options.planPath));
  options.evalDataPaths = {dir.write("eval.txt", std::string(120, 'e'))};
  options.evalEvery = 3;
  ASSERT_OK(runOnHost());
  std::vector<nlohmann::json> expected = metrics();
  EXPECT_EQ(expected[2]["eval_loss"], expected[3]["loss"]);
  auto result = runAnd([&] {
    gate->waitForEnqueued(2);
    gate->let(1);
    gate->waitForEnqueued(3);
    gate->let(1);
    waitForLog("step 2/8");
    EXPECT_EQ(gate->enqueued(), 3u);
  });
  ASSERT_OK(result);
  EXPECT_EQ(metrics(), expected);
}

TEST_F(TrainStepsInFlight, AStopTakesInWhatIsInFlight) {
  std::string weights = weightsAfter(2);
  std::vector<nlohmann::json> expected = metrics();
  options.checkpointPath = dir.path("ckpt");
  options.checkpointEvery = {1000, 0};
  auto result = runAnd([&] {
    gate->waitForEnqueued(2);
    stop = true;
  });
  ASSERT_OK(result);
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(result->stepsDone, 2);
  EXPECT_EQ(gate->enqueued(), 2u);
  EXPECT_TRUE(contains(dir.read("out.log"), "interrupted after step 2"));
  EXPECT_TRUE(contains(dir.read("out.log"), "checkpoint " + dir.path("ckpt/step-0000002")));
  EXPECT_EQ(metrics(), expected);
  EXPECT_EQ(dir.read("w.safetensors"), weights);
}

TEST_F(TrainStepsInFlight, WhatComesAfterADivergenceIsNotTakenIn) {
  options.learningRate = 1e30;
  options.steps = 20;
  options.checkpointPath = dir.path("ckpt");
  options.checkpointEvery = {1000, 0};
  auto expected = runOnHost();
  ASSERT_FALSE(expected);
  EXPECT_ERROR(expected, "at step 11, and 10 consecutive steps were skipped");
  std::vector<nlohmann::json> lines = metrics();
  EXPECT_EQ(lines.size(), 11u);
  // The twelfth step is in flight when the eleventh is found to be one too many.
  auto result = runAnd([&] {
    gate->let(10);
    gate->waitForEnqueued(12);
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, expected.error().message);
  EXPECT_EQ(metrics(), lines);
  EXPECT_EQ(gate->enqueued(), 12u);
  EXPECT_FALSE(std::filesystem::exists(options.savePath));
  auto steps = checkpointSteps(options.checkpointPath);
  ASSERT_OK(steps);
  EXPECT_TRUE(steps->empty());
}

TEST_F(TrainStepsInFlight, ALateErrorSavesWhatWasInFlight) {
  std::string weights = weightsAfter(2);
  options.metricsPath = "/dev/full";
  auto result = runAnd([&] { gate->waitForEnqueued(2); });
  EXPECT_ERROR(result, "/dev/full: cannot write: No space left on device; what was trained up to "
                       "step 2 is saved: " +
                           options.savePath);
  EXPECT_EQ(gate->enqueued(), 2u);
  EXPECT_EQ(dir.read("w.safetensors"), weights);
}

TEST_F(TrainStepsInFlight, ADataErrorComesAfterWhatIsInFlight) {
  options.steps = 1'000'000'000;
  auto result = runAnd([&] {
    gate->waitForEnqueued(2);
    std::filesystem::resize_file(options.dataPaths[0], 0);
  });
  EXPECT_ERROR(result, "text.txt: had 4400 bytes when it was opened, and has 0 now; do not");
  EXPECT_ERROR(result,
               fmt::format("; what was trained up to step {} is saved: ", metrics().size()));
}

TEST_F(TrainStepsInFlight, AnErrorOfADeviceNamesItsStep) {
  weightsAfter(8);
  std::vector<nlohmann::json> expected = metrics();
  for (int failing : {1, 2, 5, 8}) {
    gate = std::make_shared<KernelGate>("sqrt");
    gate->failAt(static_cast<uint64_t>(failing));
    gate->open();
    EXPECT_ERROR(runOnDevice(), fmt::format("step {}: device 0: the kernel failed", failing));
    EXPECT_FALSE(std::filesystem::exists(options.savePath));
    // All that was computed before is told.
    if (failing > 1) {
      EXPECT_EQ(metrics(), std::vector(expected.begin(), expected.begin() + failing - 1));
    }
  }
}

TEST_F(TrainStepsInFlight, TimesOfStepsDoNotOverlap) {
  options.steps = 2;
  auto begin = std::chrono::steady_clock::now();
  auto result = runAnd([&] {
    gate->waitForEnqueued(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  ASSERT_OK(result);
  std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
  std::istringstream stream(dir.read("m.jsonl"));
  std::vector<double> seconds;
  for (std::string line; std::getline(stream, line);)
    seconds.push_back(nlohmann::json::parse(line)["step_seconds"]);
  ASSERT_EQ(seconds.size(), 2u);
  EXPECT_GE(seconds[0], 0.2);
  // The second lasts from the end of the first, not since it was enqueued.
  EXPECT_LE(seconds[0] + seconds[1], all.count());
}

} // namespace trainStepsInFlightTest
