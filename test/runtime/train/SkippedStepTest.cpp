//===- SkippedStepTest.cpp - Steps whose gradients are not finite ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/data/Safetensors.h"
#include "runtime/data/Sampling.h"
#include "runtime/train/TrainLoop.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/StepStatePlan.h"
#include "test/lib/plans/TempDir.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

namespace skippedStepTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

/// Runs plans whose outputs show the inputs from the loop: "grad_norm" is a number of the file;
/// each step draws one.
class SkippedStep : public ::testing::Test {
protected:
  SkippedStep() {
    options.planPath = dir.path("m.plan");
    options.dataPaths = {dir.path("x.safetensors")};
    options.metricsPath = dir.path("m.jsonl");
    options.savePath = dir.path("w.safetensors");
    options.steps = 20;
  }

  /// "loss" is the number of the step as the optimizer counts, or another of the file's numbers.
  void usePlan(bool scalesLoss, bool lossFromFile = false) {
    PlanBuilder builder;
    uint32_t x = builder.input("x", DType::F32, {1}, {{}}).buffer();
    uint32_t y = builder.input("y", DType::F32, {1}, {{}}).buffer();
    StepStatePlan stepState(builder, scalesLoss);
    uint32_t norm = builder.buffer(DType::F32, {}), loss = builder.buffer(DType::F32, {});
    uint32_t size = builder.buffer(DType::F32, {}), infinity = builder.buffer(DType::F32, {});
    uint32_t apply = builder.buffer(DType::Bool, {});
    builder.task("t");
    builder.kernel("copy", {x}, {norm});
    builder.kernel("copy", {y}, {loss});
    stepState.computeScalars();
    builder.kernel("mul", {norm, norm}, {size});
    (*builder.kernel("fill", {}, {infinity}).mutable_attributes())["value"] =
        floatAttribute(std::numeric_limits<float>::max());
    (*builder.kernel("compare", {size, infinity}, {apply}).mutable_attributes())["predicate"] =
        stringAttribute("le");
    stepState.update(apply);
    builder.schedule(0);
    builder.output("grad_norm", DType::F32, {}, {}, norm);
    builder.output("loss", DType::F32, {}, {}, lossFromFile ? loss : stepState.step());
    EXPECT_OK(writePlan(*builder.build(), options.planPath));
  }

  void useNumbers(const std::vector<float> &xs, float y = 0) {
    HostTensor x(TensorType{DType::F32, {static_cast<int64_t>(xs.size())}}), ys = x;
    std::copy(xs.begin(), xs.end(), x.as<float>());
    std::fill_n(ys.as<float>(), xs.size(), y);
    EXPECT_OK(writeSafetensors(options.dataPaths[0], {{"x", x}, {"y", ys}}));
  }

  Expected<TrainResult> run() {
    std::FILE *out = std::fopen(dir.path("out.log").c_str(), "w");
    Expected<TrainResult> result = train(options, createFakeBackend(), out, out, false);
    std::fclose(out);
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
};

} // namespace

TEST_F(SkippedStep, IsCountedAndIsNoneToTheOptimizer) {
  for (float bad : {INFINITY, -INFINITY, NAN}) {
    usePlan(/*scalesLoss=*/false);
    useNumbers({1, bad, 2, 3});
    auto result = run();
    ASSERT_OK(result);
    std::vector<nlohmann::json> lines = metrics();
    ASSERT_EQ(lines.size(), 20u);
    int64_t skipped = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(lines[i]["step"], i + 1);
      EXPECT_EQ(lines[i]["loss"], static_cast<int64_t>(i + 1) - skipped);
      skipped += lines[i]["grad_norm"].is_null();
      EXPECT_EQ(lines[i]["skipped_steps"], skipped);
      EXPECT_FALSE(lines[i].contains("loss_scale"));
    }
    EXPECT_GT(skipped, 0);
    EXPECT_LT(skipped, 15);
    EXPECT_EQ(result->stepsDone, 20);
    EXPECT_EQ(result->stepsSkipped, skipped);
    std::string log = dir.read("out.log");
    EXPECT_TRUE(contains(log, "  skipped 1  "));
    EXPECT_TRUE(contains(log, "skipped " + std::to_string(skipped) + " of 20 steps, whose"));
    EXPECT_FALSE(contains(log, "loss scale"));
  }
}

TEST_F(SkippedStep, HalvesTheLossScale) {
  usePlan(/*scalesLoss=*/true);
  useNumbers({1, INFINITY, 2});
  options.lossScale = 1024;
  options.lossScaleGrowthInterval = 2;
  ASSERT_OK(run());
  double scale = 1024;
  int good = 0;
  for (const nlohmann::json &line : metrics()) {
    EXPECT_EQ(line["loss_scale"], scale);
    if (line["grad_norm"].is_null()) {
      scale /= 2;
      good = 0;
    } else if (++good == 2) {
      scale *= 2;
      good = 0;
    }
  }
  EXPECT_TRUE(contains(dir.read("out.log"), "  loss scale 1024  "));
}

TEST_F(SkippedStep, TenInARowEndTheRun) {
  usePlan(/*scalesLoss=*/false);
  useNumbers({INFINITY});
  EXPECT_ERROR(run(),
               "the norm of the gradient is inf and the loss is 1 at step 10, and 10 consecutive "
               "steps were skipped because of such gradients; lower the learning rate");
  EXPECT_EQ(metrics().size(), 10u);
  EXPECT_FALSE(std::filesystem::exists(options.savePath));
  options.steps = 9;
  EXPECT_OK(run());
  options.steps = 20;
  options.allowNonfinite = true;
  auto result = run();
  ASSERT_OK(result);
  EXPECT_EQ(result->stepsSkipped, 20);
}

TEST_F(SkippedStep, TenAtTheLowestLossScaleEndTheRun) {
  usePlan(/*scalesLoss=*/true);
  useNumbers({NAN});
  options.lossScale = 4;
  // With 4 and 2 in two steps, with 1 in ten.
  auto result = run();
  EXPECT_ERROR(result,
               "at step 12, and 10 consecutive steps were skipped because of such gradients "
               "although the loss scale is at its minimum of 1; lower the learning rate");
  EXPECT_ERROR(result, "compile with --dtype bf16");
  EXPECT_EQ(metrics().back()["loss_scale"], 1);
}

TEST_F(SkippedStep, ALossThatIsNotFiniteInAnotherStepEndsTheRun) {
  usePlan(/*scalesLoss=*/false, /*lossFromFile=*/true);
  useNumbers({1}, INFINITY);
  EXPECT_ERROR(run(), "the loss is inf at step 1; lower the learning rate (--lr 0.001)");
  EXPECT_FALSE(std::filesystem::exists(options.savePath));
  // Where the gradient says the same, the step is skipped.
  useNumbers({INFINITY}, NAN);
  EXPECT_ERROR(run(), "the loss is nan at step 10, and 10 consecutive steps were skipped");
}

TEST_F(SkippedStep, LossScaleFlagsNeedAPlanThatScales) {
  usePlan(/*scalesLoss=*/false);
  useNumbers({1});
  options.lossScale = 1024;
  EXPECT_ERROR(run(), "--loss-scale: the plan does not scale its loss; compile with --dtype f16");
  usePlan(/*scalesLoss=*/true);
  EXPECT_OK(run());
  options.lossScale = 0;
  EXPECT_ERROR(run(), "--loss-scale is 0; expected a number from 1 to 16777216");
}

TEST(RandomKey, IsOfTheSeedAndTheBatch) {
  TempDir dir;
  PlanBuilder builder;
  plan::State &state = builder.state("dtc.random_key", DType::I32, {2}, {{}});
  state.set_kind(plan::State::RANDOM_KEY);
  uint32_t key = state.buffer(), given = builder.buffer(DType::I32, {2});
  uint32_t step = builder.buffer(DType::I32, {2});
  builder.task("t");
  builder.kernel("copy", {key}, {given});
  (*builder.kernel("constant", {}, {step}).mutable_attributes())["data"].set_data(
      std::string("\0\0\0\0\1\0\0\0", 8));
  builder.kernel("add", {key, step}, {key});
  builder.schedule(0);
  builder.output("key", DType::I32, {2}, {{}}, given);
  TrainOptions options;
  options.planPath = dir.path("m.plan");
  ASSERT_OK(writePlan(*builder.build(), options.planPath));
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32})
    for (int64_t steps : {1, 4}) {
      options.seed = seed;
      options.steps = steps;
      std::FILE *out = std::fopen(dir.path("out.log").c_str(), "w");
      EXPECT_OK(train(options, createCpuBackend(), out, out, false));
      std::fclose(out);
      // Tensors are shown with nine digits.
      double word = static_cast<int32_t>(randomMaskKey(seed, 0)[0]);
      EXPECT_TRUE(contains(dir.read("out.log"),
                           fmt::format("key: i32[2] = [{:.9g}, {}]", word, steps - 1)));
    }
  EXPECT_NE(randomMaskKey(0, 0)[0], randomMaskKey(1, 0)[0]);
  EXPECT_NE(randomMaskKey(0, 0)[0], randomMaskKey(uint64_t{1} << 32, 0)[0]);
  EXPECT_EQ(randomMaskKey(5, 3)[0], randomMaskKey(5, 9)[0]);
  EXPECT_EQ(randomMaskKey(5, (int64_t{1} << 32) + 3), randomMaskKey(5, 3));
}

} // namespace skippedStepTest
