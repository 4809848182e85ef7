//===- TrafficFormulaTest.cpp - Comparison of traffic with formulas -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The bytes that the communicators of a small GPT-2 and a small Llama count in one step, against
// formulas of the model's sizes alone. Equal to the byte, so that everything that a strategy sends
// has a name in TrafficFormulas.cpp.
//
//===----------------------------------------------------------------------===//

#include "test/traffic/TrafficFormulas.h"

#include <gtest/gtest.h>

namespace trafficFormulaTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// Runs one step and compares what a rank sends. However a mesh is used, the norm of the gradient
/// is identical on all its devices.
void expectTraffic(const ModelSizes &model, const CompileOptions &options, Traffic expected) {
  auto session = openSession(model, options);
  ASSERT_TRUE(session);
  PlanSummary summary = summarizePlan(session->plan());
  ASSERT_EQ(int64_t(summary.parameterElements), model.psi())
      << "the sizes here are not the model's";
  ASSERT_TRUE(runStep(*session));
  expected.addAllReduce("the agreement on the gradient norm, a scalar", 1, session->numDevices());
  uint64_t sent = session->communicatorBytes().total();
  ASSERT_EQ(sent % session->numDevices(), 0u);
  EXPECT_EQ(sent / session->numDevices(), expected.bytes()) << "expected is the sum of\n"
                                                            << expected.describe();
}

struct Case {
  std::string model;
  int64_t n;     // ranks
  int64_t m = 1; // microbatches
  int stage = 0;
  bool sequenceParallel = false;
  int64_t bucketBytes = CompileOptions().bucketBytes;

  friend void PrintTo(const Case &c, std::ostream *os) {
    *os << c.model << ", " << c.n << " ranks, " << c.m << " microbatches, stage " << c.stage;
  }
};

ModelSizes sizesOf(const Case &c) { return c.model == "gpt2" ? gpt2Sizes() : llamaSizes(); }

std::string nameOf(const testing::TestParamInfo<Case> &info) {
  const Case &c = info.param;
  std::string name = c.model + "_" + std::to_string(c.n);
  if (c.m > 1)
    name += "_m" + std::to_string(c.m);
  if (c.stage > 0)
    name += "_zero" + std::to_string(c.stage);
  if (c.sequenceParallel)
    name += "_sp";
  if (c.bucketBytes == 0)
    name += "_noBuckets";
  return name;
}

class DataParallel : public testing::TestWithParam<Case> {};
class TensorParallel : public testing::TestWithParam<Case> {};

/// All stages, with one and with several microbatches.
std::vector<Case> dataParallelCases(const std::vector<int64_t> &ranks, int lastStage,
                                    int firstStage = 0, int64_t bucketBytes = -1) {
  std::vector<Case> cases;
  for (const char *model : {"gpt2", "llama"})
    for (int64_t n : ranks)
      for (int64_t m : {1, 2})
        for (int stage = firstStage; stage <= lastStage; ++stage) {
          cases.push_back({model, n, m, stage});
          if (bucketBytes >= 0)
            cases.back().bucketBytes = bucketBytes;
        }
  return cases;
}

std::vector<Case> tensorParallelCases() {
  std::vector<Case> cases;
  for (const char *model : {"gpt2", "llama"})
    for (int64_t t : {2, 4})
      for (int64_t m : {1, 2})
        for (bool sequenceParallel : {false, true})
          cases.push_back({model, t, m, 0, sequenceParallel});
  return cases;
}

} // namespace

TEST(ModelSizes, HaveTheKnownNumberOfParameters) {
  // 12 h^2 + 13 h a layer, the tables, and the last norm.
  ModelSizes gpt2 = gpt2Sizes();
  int64_t h = gpt2.embed;
  EXPECT_EQ(gpt2.layerPsi(), 12 * h * h + 13 * h);
  EXPECT_EQ(gpt2.psi(), gpt2.layers * gpt2.layerPsi() + (gpt2.vocab + gpt2.positions) * h + 2 * h);
  // Queries and output h^2 each, keys and values a half of that, three matrices h x f, two norms.
  ModelSizes llama = llamaSizes();
  h = llama.embed;
  EXPECT_EQ(llama.layerPsi(), 3 * h * h + 3 * h * llama.mlp + 2 * h);
  EXPECT_EQ(llama.psi(), llama.layers * llama.layerPsi() + 2 * llama.vocab * h + h);
}

TEST_P(DataParallel, SendsWhatTheFormulaSays) {
  const Case &c = GetParam();
  ModelSizes model = sizesOf(c);
  CompileOptions options = strategy("dp=" + std::to_string(c.n) + " m=" + std::to_string(c.m) +
                                    " zero=" + std::to_string(c.stage));
  options.bucketBytes = c.bucketBytes;
  expectTraffic(model, options, dataParallelTraffic(model, c.n, c.stage, c.m));
}

INSTANTIATE_TEST_SUITE_P(Even, DataParallel, testing::ValuesIn(dataParallelCases({2, 4}, 3)),
                         nameOf);
// Neither 32 nor 80 nor 128 divides by three.
INSTANTIATE_TEST_SUITE_P(Padded, DataParallel, testing::ValuesIn(dataParallelCases({3}, 3)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(WithoutBuckets, DataParallel,
                         testing::ValuesIn(dataParallelCases({3, 4}, 3, 3, /*bucketBytes=*/0)),
                         nameOf);

TEST_P(TensorParallel, SendsWhatTheFormulaSays) {
  const Case &c = GetParam();
  ModelSizes model = sizesOf(c);
  // Microbatches change nothing: each sends its part of the activations.
  CompileOptions options = strategy("tp=" + std::to_string(c.n) + " m=" + std::to_string(c.m) +
                                    (c.sequenceParallel ? " sp" : ""));
  expectTraffic(model, options, tensorParallelTraffic(model, c.n, c.sequenceParallel));
}

INSTANTIATE_TEST_SUITE_P(All, TensorParallel, testing::ValuesIn(tensorParallelCases()), nameOf);

class ContextParallel : public testing::TestWithParam<std::tuple<int64_t, const char *, int64_t>> {
};

TEST_P(ContextParallel, SendsWhatTheFormulaSays) {
  auto [n, exchange, g] = GetParam();
  ModelSizes model = llamaSizes();
  std::string text = "cp=" + std::to_string(n) + " context_heads=" + std::to_string(g);
  expectTraffic(model, strategy(text + " context_exchange=" + exchange),
                contextParallelTraffic(model, n, exchange, g));
}

INSTANTIATE_TEST_SUITE_P(All, ContextParallel,
                         testing::Combine(testing::Values(2, 4),
                                          testing::Values("all-gather", "all-to-all", "ring"),
                                          testing::Values(1)));
INSTANTIATE_TEST_SUITE_P(Nested, ContextParallel,
                         testing::Combine(testing::Values(4), testing::Values("all-gather", "ring"),
                                          testing::Values(2)));

TEST(Combined, DataAndTensorParallelTrafficAdd) {
  for (const ModelSizes &model : {gpt2Sizes(), llamaSizes()})
    for (int stage = 0; stage <= 3; ++stage) {
      SCOPED_TRACE("stage " + std::to_string(stage));
      Traffic expected = dataParallelTraffic(model, /*n=*/2, stage, /*microbatches=*/1, /*t=*/2);
      expected += tensorParallelTraffic(model, /*t=*/2, /*sequenceParallel=*/false, /*n=*/2);
      expectTraffic(model, strategy("dp=2,tp=2 zero=" + std::to_string(stage)), expected);
    }
}

// Two key-value heads on four ranks: each head is on two of them. The gradients of keys and values
// are sums over the pair that nobody needs: they stay partial through the projections, the three
// parts of the gradient of the layer's input add up, and are completed once. The pairs only add the
// gradients of two small weights.
TEST(SharedHeads, AddOnlyTheGradientsOfTheirWeights) {
  ModelSizes model = llamaSizes(/*kvHeads=*/2);
  for (bool sequenceParallel : {false, true}) {
    SCOPED_TRACE(sequenceParallel ? "sequence parallel" : "tensor parallel");
    Traffic expected = tensorParallelTraffic(model, /*t=*/4, sequenceParallel);
    for (const ParameterSize &parameter : model.parameters)
      if (parameter.keyOrValue) {
        expected.addAllReduce("the gradient of a weight that two ranks share",
                              parameter.elements() / 2, 2);
        // A pair has the same weight, and the norm counts it once.
        expected.add("less: its norm's scalar over four ranks", -2, 4);
        expected.addAllReduce("its norm's scalar over two ranks", 1, 2);
      }
    expectTraffic(model, strategy(sequenceParallel ? "tp=4 sp" : "tp=4"), expected);
  }
}

} // namespace trafficFormulaTest
