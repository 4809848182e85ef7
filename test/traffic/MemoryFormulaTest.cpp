//===- MemoryFormulaTest.cpp - Tests of the memory formulas of ZeRO -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Bytes on a device against Rajbhandari et al. 2020, section 5, for f32 and AdamW, where parameters
// and gradients take 4 Psi bytes each and the moments 8 Psi. The model is wide and deep and its
// batch tiny, so that this is nearly all of the arena.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"
#include "test/traffic/ModelSizes.h"

#include <gtest/gtest.h>

#include <map>

namespace memoryFormulaTest {

using namespace dtc;
using namespace dtc::test;

namespace {

struct Case {
  int stage;
  int64_t n; // ranks
  int64_t m; // microbatches

  friend void PrintTo(const Case &c, std::ostream *os) {
    *os << "stage " << c.stage << ", " << c.n << " ranks, " << c.m << " microbatches";
  }
};

/// The memory of a device, in bytes.
struct Memory {
  double parameters = 0, gradients = 0, optimizerState = 0;
  double total() const { return parameters + gradients + optimizerState; }
};

Memory formula(const ModelSizes &model, const Case &c) {
  double psi = double(model.psi()), n = double(c.n);
  // Without microbatches there is no sum to keep, and stage 1 may scatter gradients as they come:
  // then it needs no more than stage 2.
  bool wholeGradients = c.stage == 0 || (c.stage == 1 && c.m > 1);
  return {4 * psi / (c.stage >= 3 ? n : 1), 4 * psi / (wholeGradients ? 1 : n),
          8 * psi / (c.stage >= 1 ? n : 1)};
}

/// The buffers beside the formula, in bytes.
double statedBuffers(const ModelSizes &model, const Case &c) {
  double layer = 4 * double(model.layerPsi()), buffers = 0;
  // The layer that computes and the one whose parameters are on their way.
  if (c.stage == 3)
    buffers += 2 * layer;
  // Gradients that are whole until they are scattered: those of the bucket that is being filled, of
  // the one that waits and of the one that moves. Without scatters, the layer whose gradients are
  // added to the sum.
  if (c.stage >= 1)
    buffers += 3 * layer;
  else if (c.m > 1)
    buffers += layer;
  // The values that a token leaves for the backward pass: in a layer not more than twelve vectors
  // of the residual's width (norms, queries, keys, values, attention, sums) and four of the MLP's;
  // the logits and their gradient.
  int64_t tokens = model.batch / c.n / c.m * model.seq;
  buffers += 4 * double(tokens) *
             double(model.layers * (12 * model.embed + 4 * model.mlp) + 2 * model.vocab);
  return buffers;
}

CompileOptions optionsFor(const ModelSizes &model, const Case &c) {
  CompileOptions options = strategy("dp=" + std::to_string(c.n) + " m=" + std::to_string(c.m) +
                                    " zero=" + std::to_string(c.stage));
  // A bucket holds its operands until it is closed. The usual one is larger than this model.
  options.bucketBytes = 4 * model.layerPsi();
  return options;
}

class ZeroMemory : public testing::TestWithParam<Case> {};
class ZeroStates : public testing::TestWithParam<Case> {};

std::vector<Case> cases(const std::vector<int> &stages, const std::vector<int64_t> &microbatches) {
  std::vector<Case> all;
  for (int stage : stages)
    for (int64_t n : {2, 4, 8})
      for (int64_t m : microbatches)
        all.push_back({stage, n, m});
  return all;
}

std::string nameOf(const testing::TestParamInfo<Case> &info) {
  const Case &c = info.param;
  return "zero" + std::to_string(c.stage) + "_dp" + std::to_string(c.n) + "_m" +
         std::to_string(c.m);
}

} // namespace

// The tensors that live through the whole step, exactly.
TEST_P(ZeroStates, AreSplitAsTheStageSays) {
  const Case &c = GetParam();
  ModelSizes model = wideLlamaSizes();
  auto session = openSession(model, optionsFor(model, c));
  ASSERT_TRUE(session);
  Memory expected = formula(model, c);
  double parameters = 0, optimizerState = 0;
  const plan::Program &program = session->plan().programs(0);
  for (const plan::State &state : program.states()) {
    const plan::Buffer &buffer = program.buffers(int(state.buffer()));
    if (!isStepState(state.kind()))
      (state.parameter().empty() ? parameters : optimizerState) +=
          double(typeOf(buffer).numBytes());
  }
  EXPECT_EQ(parameters, expected.parameters);
  EXPECT_EQ(optimizerState, expected.optimizerState);
  // The report's kinds at the peak: no state is missing, and all moments are states.
  PlanSummary summary = summarizePlan(session->plan());
  EXPECT_GE(double(summary.peak.parameters), expected.parameters);
  EXPECT_EQ(double(summary.peak.optimizerState), expected.optimizerState);
  EXPECT_EQ(summary.peak.total(), summary.arenaLowerBound);
  EXPECT_EQ(session->peakBytes(), summary.arenaBytes);
}

INSTANTIATE_TEST_SUITE_P(Stages, ZeroStates, testing::ValuesIn(cases({0, 1, 2, 3}, {1, 2})),
                         nameOf);

TEST_P(ZeroMemory, IsWhatTheFormulaSays) {
  const Case &c = GetParam();
  ModelSizes model = wideLlamaSizes();
  auto session = openSession(model, optionsFor(model, c));
  ASSERT_TRUE(session);
  double expected = formula(model, c).total(), stated = statedBuffers(model, c);
  double peak = double(session->peakBytes());
  PeakMemory kinds = summarizePlan(session->plan()).peak;
  std::string found = "of " + std::to_string(4 * model.psi()) +
                      " bytes of parameters: " + std::to_string(kinds.parameters) +
                      " parameters, " + std::to_string(kinds.gradients) + " gradients, " +
                      std::to_string(kinds.optimizerState) + " optimizer state, " +
                      std::to_string(kinds.activations) + " activations";
  EXPECT_GE(peak, 0.98 * expected) << found;
  EXPECT_LE(peak, 1.02 * expected + stated) << "with " << stated << " of stated buffers; " << found;
}

INSTANTIATE_TEST_SUITE_P(Plain, ZeroMemory, testing::ValuesIn(cases({0}, {1})), nameOf);

INSTANTIATE_TEST_SUITE_P(Zero, ZeroMemory, testing::ValuesIn(cases({1, 2, 3}, {1})), nameOf);

INSTANTIATE_TEST_SUITE_P(Microbatches, ZeroMemory, testing::ValuesIn(cases({0, 1, 2, 3}, {2})),
                         nameOf);

// Whatever the constants are: a higher stage and more devices never need more.
TEST(Memory, FallsWithStageAndDevices) {
  ModelSizes model = wideLlamaSizes();
  auto peakOf = [&](const Case &c) -> uint64_t {
    auto session = openSession(model, optionsFor(model, c));
    return session ? session->peakBytes() : 0;
  };
  for (int64_t m : {1, 2}) {
    std::map<int64_t, uint64_t> lowerStage;
    for (int stage = 0; stage <= 3; ++stage) {
      uint64_t fewerDevices = 0;
      for (int64_t n : {2, 4, 8}) {
        SCOPED_TRACE(testing::PrintToString(Case{stage, n, m}));
        uint64_t peak = peakOf({stage, n, m});
        ASSERT_GT(peak, 0u);
        if (stage > 0)
          EXPECT_LE(peak, lowerStage.at(n));
        if (fewerDevices > 0)
          EXPECT_LE(peak, fewerDevices);
        lowerStage[n] = fewerDevices = peak;
      }
    }
  }
}

} // namespace memoryFormulaTest
