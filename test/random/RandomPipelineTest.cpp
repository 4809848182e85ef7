//===- RandomPipelineTest.cpp - Pipelines equal one device ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Random models are trained as random pipelines. A session checks when it opens that no plan reads
// a value too early, receives a message that nobody sends, or waits without end; these tests check
// the numbers.
//
// DTC_RANDOM_SEED=n runs the one case of that seed and prints it; DTC_RANDOM_CASES=n sets the
// number of cases.
//
//===----------------------------------------------------------------------===//

#include "test/random/RandomPipeline.h"
#include "plan/plan.pb.h"
#include "test/lib/RandomCases.h"
#include "test/random/RunProgram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace randomPipelineTest {

using namespace dtc;
using namespace dtc::test;

/// The session of a pipeline. A model that has fewer places to cut than the pipeline has stages
/// gets fewer devices and chunks.
static std::unique_ptr<runtime::Session> openPipeline(Compiler &compiler, mlir::ModuleOp module,
                                                      CompileOptions &options) {
  auto session = compiler.open(module, options);
  while (!session && compiler.diagnostics().find("ask for fewer") != std::string::npos) {
    auto axis = std::find_if(options.mesh.begin(), options.mesh.end(),
                             [](const auto &each) { return each.first == kPipelineAxis; });
    bool needsChunks = options.schedule == "interleaved" || options.schedule == "zb-v";
    if (options.chunks > (needsChunks ? 2 : 1))
      --options.chunks;
    else if (axis->second > 2)
      --axis->second;
    else
      break;
    session = compiler.open(module, options);
  }
  return session;
}

/// Trains on one device and as a pipeline, and compares all outputs and states.
static void compare(RandomPipeline pipeline, uint64_t seed) {
  SCOPED_TRACE(pipeline.describe());
  Compiler compiler;
  CompileOptions plain;
  plain.optimizer = pipeline.options.optimizer =
      Optimizer::SGD; // AdamW makes full steps of what is rounding
  auto module = compiler.parse(pipeline.loss);
  ASSERT_TRUE(module) << compiler.diagnostics() << pipeline.loss;
  auto expected = compiler.open(*module, plain);
  ASSERT_TRUE(expected) << compiler.diagnostics() << pipeline.loss;
  auto actual = openPipeline(compiler, *module, pipeline.options);
  ASSERT_TRUE(actual) << compiler.diagnostics() << pipeline.loss;
  ASSERT_EQ(actual->numDevices(), devicesOf(pipeline.options));
  for (runtime::Session *session : {expected.get(), actual.get()}) {
    auto problem = runProgram(*session, pipeline.indexLimits, CompileMode::Train, seed);
    ASSERT_FALSE(problem) << problem->message << pipeline.loss;
  }
  auto results = resultsOf(*expected), others = resultsOf(*actual);
  ASSERT_EQ(results.size(), others.size());
  ASSERT_TRUE(results.count("output loss") && results.count("output grad_norm"));
  ASSERT_TRUE(std::isfinite(element(results.at("output loss")))) << pipeline.loss;
  for (const auto &[name, value] : results) {
    ASSERT_TRUE(others.count(name)) << name;
    // Gradients have a norm of at most 1 after clipping; what is less than a thousandth of that may
    // be the small difference of large terms.
    EXPECT_LT(relativeDifference(value, others.at(name), /*floor=*/1e-3), 1e-9) << name << "\n"
                                                                                << pipeline.loss;
  }
}

static void runCase(uint64_t seed, bool verbose) {
  RandomPipeline pipeline = makeRandomPipeline(seed);
  if (verbose) {
    printf("%s\n%s", pipeline.describe().c_str(), pipeline.loss.c_str());
    fflush(stdout); // before a crash
  }
  compare(std::move(pipeline), seed);
}

TEST(RandomPipeline, EqualsOneDevice) { forEachRandomCase(600, runCase); }

/// Errors that random pipelines have found, reduced.
static void runReduced(const char *loss, const char *text) {
  RandomPipeline pipeline;
  pipeline.loss = loss;
  pipeline.options = strategy(text);
  compare(std::move(pipeline), /*seed=*/1);
}

// Was refused: a reduction of no dimension is folded away, and its gradient, which chooses the
// elements that were the maximum, was put in the stage that makes these elements.
TEST(RandomPipelineReduced, GradientOfAnOpThatIsGone) {
  const char *loss = R"(func.func @loss(
      %x: tensor<8x4xf64> {dtc.input = "x", dtc.axes = ["batch", ""]},
      %w: tensor<4x4xf64> {dtc.param = "w"}, %v: tensor<4x4xf64> {dtc.param = "v"})
      -> tensor<f64> {
    %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
    %1 = dtc.einsum "bi,io->bo" %0, %v : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
    %2 = dtc.reduce max %0 dims [] : (tensor<8x4xf64>) -> tensor<8x4xf64>
    %3 = dtc.einsum "bi,bi->" %1, %0 : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<f64>
    %4 = dtc.einsum "bi,bi->" %2, %2 : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<f64>
    %5 = dtc.add %3, %4 : tensor<f64>
    return %5 : tensor<f64>
  })";
  for (const char *text : {"pp=2 m=2", "pp=3 m=2", "pp=2 m=4 schedule=zb-h1"})
    runReduced(loss, text);
}

// Was planned over "pp" where the link of another axis is slow.
TEST(RandomPipelineReduced, CollectivesKeepToOneStage) {
  RandomPipeline pipeline;
  pipeline.loss = R"(func.func @loss(
      %x: tensor<8x4xf64> {dtc.input = "x", dtc.axes = ["batch", ""]},
      %w: tensor<4x8xf64> {dtc.param = "w", dtc.axes = ["", "wide"]},
      %v: tensor<8x4xf64> {dtc.param = "v", dtc.axes = ["wide", ""]}) -> tensor<f64> {
    %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<8x4xf64>, tensor<4x8xf64>) -> tensor<8x8xf64>
    %1 = dtc.einsum "bi,io->bo" %0, %v : (tensor<8x8xf64>, tensor<8x4xf64>) -> tensor<8x4xf64>
    %2 = dtc.einsum "bi,bi->" %1, %x : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<f64>
    return %2 : tensor<f64>
  })";
  pipeline.options = strategy("tp=2,pp=2 m=2 shard:wide=tp");
  pipeline.options.links = {{"tp", {1e4, 1e-6}}, {"pp", {1e10, 1e-6}}};
  compare(std::move(pipeline), /*seed=*/1);
}

// Stage 3 makes the gradients that stages 1 and 2 wait for, both on one device. Stage 2's Weight
// comes first in the device's body, and stage 1's Backward first in time.
TEST(RandomPipelineReduced, ReceivedValuesOfTwoStages) {
  const char *loss = R"(func.func @loss(
      %x: tensor<16x4xf64> {dtc.input = "x", dtc.axes = ["batch", ""]},
      %v: tensor<4x4xf64> {dtc.param = "v"}, %w: tensor<4x4xf64> {dtc.param = "w"})
      -> tensor<f64> {
    %0 = dtc.einsum "bi,io->bo" %x, %v : (tensor<16x4xf64>, tensor<4x4xf64>) -> tensor<16x4xf64>
        loc("l.0.a")
    %1 = dtc.tanh %0 : tensor<16x4xf64> loc("l.1.a")
    %2 = dtc.einsum "bi,io->bo" %x, %w : (tensor<16x4xf64>, tensor<4x4xf64>) -> tensor<16x4xf64>
        loc("l.2.a")
    %3 = dtc.einsum "bi,bi->" %1, %2 : (tensor<16x4xf64>, tensor<16x4xf64>) -> tensor<f64>
        loc("l.3.a")
    return %3 : tensor<f64>
  })";
  for (const char *text : {"pp=2 m=4 schedule=zb-v chunks=2 stages=l.0|l.1|l.2|l.3",
                           "pp=2 m=8 schedule=zb-v chunks=2 stages=l.0|l.1|l.2|l.3"})
    runReduced(loss, text);
}

} // namespace randomPipelineTest
