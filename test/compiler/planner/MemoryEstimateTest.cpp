//===- MemoryEstimateTest.cpp - Estimated and compiled memory -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The planner's estimates of the memory of a device, against the arenas of compiled plans: for
// models whose memory is mostly weights, activations, logits or data, and for strategies of all
// kinds.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/CandidateSearch.h"
#include "compiler/planner/Planner.h"
#include "compiler/planner/Strategy.h"
#include "test/lib/compile/PlannerCases.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fmt/format.h>

namespace memoryEstimateTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// A model without repeated layers: `width` inner elements, `classes` logits, `inputs` data.
std::string plainMlp(int64_t batch, int64_t inputs, int64_t width, int64_t classes) {
  return fmt::format(R"(
func.func @loss(%a: tensor<{1}x{2}xf32> {{dtc.param = "up.weight"}}, %b: tensor<{2}xf32> {{dtc.param = "up.bias"}},
                %c: tensor<{2}x{3}xf32> {{dtc.param = "down.weight"}},
                %x: tensor<{0}x{1}xf32> {{dtc.input = "x"}}, %y: tensor<{0}xi32> {{dtc.input = "y"}}) -> tensor<f32> {{
  %0 = dtc.einsum "bi,ih->bh" %x, %a : (tensor<{0}x{1}xf32>, tensor<{1}x{2}xf32>) -> tensor<{0}x{2}xf32>
  %1 = dtc.broadcast %b dims [1] : (tensor<{2}xf32>) -> tensor<{0}x{2}xf32>
  %2 = dtc.add %0, %1 : tensor<{0}x{2}xf32>
  %3 = dtc.relu %2 : tensor<{0}x{2}xf32>
  %4 = dtc.einsum "bh,hc->bc" %3, %c : (tensor<{0}x{2}xf32>, tensor<{2}x{3}xf32>) -> tensor<{0}x{3}xf32>
  %5, %6 = dtc.cross_entropy %4, %y : (tensor<{0}x{3}xf32>, tensor<{0}xi32>) -> (tensor<{0}xf32>, tensor<{0}xf32>)
  %7 = dtc.reduce sum %5 dims [0] : (tensor<{0}xf32>) -> tensor<f32>
  return %7 : tensor<f32>
}})",
                     batch, inputs, width, classes);
}

struct MemoryCase {
  const char *name;
  PlannedModel model;    ///< a model of layers
  std::string text = {}; ///< or one by hand
  int64_t nodes = 2, devicesOfNode = 4;
  ComputeType dtype = ComputeType::F32;
  std::vector<std::string> freeze = {};
  std::map<std::string, int64_t> axes = {};
  size_t strategies = 24; ///< that are compiled

  friend void PrintTo(const MemoryCase &c, std::ostream *os) { *os << c.name; }
};

std::vector<MemoryCase> memoryCases() {
  return {
      {"Gpt2", {.layers = 4, .hidden = 64, .batch = 32, .seq = 32}},
      {"Gpt2Bf16",
       {.layers = 4, .hidden = 64, .batch = 32, .seq = 32},
       {},
       2,
       4,
       ComputeType::BF16},
      {"Llama", {.name = "llama", .layers = 4, .hidden = 64, .batch = 32, .seq = 64}},
      {"Wide", {.layers = 4, .hidden = 256, .batch = 8, .seq = 8}},
      {"LargeVocabulary", {.layers = 4, .hidden = 32, .batch = 16, .seq = 16, .vocab = 8192}},
      {"LargeVocabularyLlama",
       {.name = "llama", .layers = 4, .hidden = 32, .batch = 16, .seq = 16, .vocab = 8192}},
      {"Frozen",
       {.layers = 4, .hidden = 128, .batch = 8, .seq = 8},
       {},
       2,
       4,
       ComputeType::F32,
       {"transformer.h.*", "transformer.wte.weight"}},
      // This many devices divide few dimensions.
      {"ManyDevices",
       {.layers = 4, .hidden = 128, .batch = 72, .seq = 4},
       {},
       18,
       4,
       ComputeType::F32,
       {},
       {{"pp", 1}}},
      // 5 of 1,120 devices would get nothing of 20,480 elements.
      {"ReplicatedTensors",
       {.layers = 4, .hidden = 32, .batch = 1120, .seq = 2, .vocab = 2048},
       {},
       140,
       8,
       ComputeType::F32,
       {},
       {{"tp", 1}, {"pp", 1}}},
      {"PlainWeights", {}, plainMlp(16, 512, 512, 64)},
      {"PlainLogits", {}, plainMlp(64, 32, 32, 8192)},
      {"PlainData", {}, plainMlp(64, 16384, 8, 16)},
  };
}

class MemoryEstimates : public testing::TestWithParam<MemoryCase> {};

} // namespace

TEST_P(MemoryEstimates, AreNearThePlans) {
  const MemoryCase &c = GetParam();
  PlannerContext compiler;
  auto model = c.text.empty() ? importCase(compiler, c.model) : compiler.parse(c.text);
  ASSERT_TRUE(model) << compiler.diagnostics();
  cluster::Cluster machines = smallCluster(c.nodes, c.devicesOfNode);
  PlannerOptions options;
  options.cluster = &machines;
  options.axes = c.axes;
  options.base.dtype = c.dtype;
  options.base.freeze = c.freeze;
  ModelProperties traits = findProperties(*model, 0);
  CostProbe probe(*model, options.base, machines, traits.batch, 0, traits.batchDims);
  traits.layers = probe.numLayers();
  traits.layerPrefix = probe.layerPrefix();
  StepEstimator estimator(options, traits);
  mlir::ScopedDiagnosticHandler quiet(&compiler.context(),
                                      [](mlir::Diagnostic &) { return mlir::success(); });

  std::vector<ParallelStrategy> strategies = enumerateStrategies(options, traits);
  const size_t stride = std::max<size_t>(strategies.size() / c.strategies, 1) | 1;
  size_t compared = 0;
  double least = 1e9, most = 0;
  for (size_t number = 0; number < strategies.size(); number += stride) {
    const ParallelStrategy &strategy = strategies[number];
    llvm::ArrayRef<ModelCosts> costs = probe.find(strategy.key(traits.batch));
    if (costs.empty())
      continue;
    StepEstimate estimate = estimator.estimate(strategy, costs);
    estimator.refine(strategy, costs, estimate);
    std::optional<Candidate> candidate =
        CandidateSearch(*model, "test").run(optionsOf(strategy, options));
    if (!candidate)
      continue;
    ++compared;
    double ratio = estimate.bytes / double(candidate->peak());
    least = std::min(least, ratio);
    most = std::max(most, ratio);
    if (std::getenv("DTC_PRINT"))
      fmt::print("{:>8.3f} estimated {:>12.0f} compiled {:>12} {}\n", ratio, estimate.bytes,
                 candidate->peak(), describeStrategy(strategy.toOptions(options.base)));
    // Where no layers repeat, the share of a stage of a pipeline is a guess.
    const double factor = c.text.empty() ? 2 : 3;
    EXPECT_GT(ratio, 1 / factor) << describeStrategy(strategy.toOptions(options.base));
    EXPECT_LT(ratio, factor) << describeStrategy(strategy.toOptions(options.base));
  }
  fmt::print("{}: estimates are {:.2f} to {:.2f} times the memory of {} plans\n", c.name, least,
             most, compared);
  EXPECT_GE(compared, c.strategies / 2);
}

INSTANTIATE_TEST_SUITE_P(Models, MemoryEstimates, testing::ValuesIn(memoryCases()),
                         [](const testing::TestParamInfo<MemoryCase> &info) {
                           return std::string(info.param.name);
                         });

} // namespace memoryEstimateTest
