//===- MixedSamplesTest.cpp - Models that mix the samples of a batch ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/CostProbe.h"
#include "test/lib/compile/PlannerCases.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace mixedSamplesTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// Subtracts the mean over the batch, as a batch norm does, or over each sample.
std::string centering(bool overBatch) {
  return overBatch ? R"(
  %sum = dtc.reduce sum %y dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  %mean = dtc.mul %sum, %share : tensor<4xf32>
  %rows = dtc.broadcast %mean dims [1] : (tensor<4xf32>) -> tensor<8x4xf32>)"
                   : R"(
  %sum = dtc.reduce sum %y dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>
  %rows = dtc.broadcast %sum dims [0] : (tensor<8xf32>) -> tensor<8x4xf32>)";
}

std::string modelText(bool overBatch) {
  return R"(
func.func @loss(%x: tensor<8x4xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
                %w: tensor<4xf32> {dtc.param = "w"}) -> (tensor<f32> {dtc.output = "loss"}) {
  %share = dtc.constant dense<0.125> : tensor<4xf32>
  %scales = dtc.broadcast %w dims [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  %y = dtc.mul %x, %scales : tensor<8x4xf32>)" +
         centering(overBatch) + R"(
  %centered = dtc.sub %y, %rows : tensor<8x4xf32>
  %squares = dtc.mul %centered, %centered : tensor<8x4xf32>
  %loss = dtc.reduce sum %squares dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
})";
}

/// Changes of options that say nothing of samples.
const std::vector<std::function<void(CompileOptions &)>> &otherOptions() {
  static const std::vector<std::function<void(CompileOptions &)>> changes = {
      [](CompileOptions &) {}, [](CompileOptions &options) { options.shard = {"w#0=tp"}; },
      [](CompileOptions &options) {
        options.shard = {"vocab=tp", "batch=dp"};
      },
      [](CompileOptions &options) { options.chunks = 64; },
      [](CompileOptions &options) { options.zero = 3; }};
  return changes;
}

} // namespace

TEST(MixedSamples, AreFoundWhateverElseIsAskedFor) {
  for (bool mixes : {true, false})
    for (const auto &change : otherOptions()) {
      PlannerContext compiler;
      auto model = compiler.parse(modelText(mixes));
      ASSERT_TRUE(model) << compiler.diagnostics();
      ProbeSetting setting;
      setting.batch = 8;
      change(setting.options);
      EXPECT_EQ(mixesSamples(*model, setting), mixes);
    }
}

TEST(MixedSamples, AreNoneOfOneSample) {
  PlannerContext compiler;
  auto model = compiler.parse(modelText(/*overBatch=*/true));
  ASSERT_TRUE(model) << compiler.diagnostics();
  ProbeSetting setting;
  setting.batch = 1;
  EXPECT_FALSE(mixesSamples(*model, setting));
}

TEST(MixedSamples, AreNoneOfLayersThatRepeat) {
  PlannerContext compiler;
  auto model = importCase(compiler, {.layers = 8});
  CompileOptions options;
  // Requests for a layer that probes do not have.
  options.shard = {"h.7.mlp.c_fc.weight#1=tp"};
  options.chunks = 64;
  CostProbe probe(*model, options, smallCluster(1, 4), 16);
  EXPECT_FALSE(probe.mixesSamples());
  EXPECT_EQ(probe.numLayers(), 8);
}

} // namespace mixedSamplesTest
