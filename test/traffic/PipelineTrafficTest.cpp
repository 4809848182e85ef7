//===- PipelineTrafficTest.cpp - Traffic and memory of pipelines ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A model that is cut between layers sends, at each cut between two devices, the residual forward
// and its gradient back, once for each microbatch (Narayanan et al. 2021, section 3.2). The other
// data that devices send each other is counted term by term, to the byte.
//
//===----------------------------------------------------------------------===//

#include "plan/plan.pb.h"
#include "test/traffic/ModelSizes.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace pipelineTrafficTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// A model of two layers in two to four stages: the embedding, the layers and the head, which are
/// with the layer next to them where there are fewer stages.
struct Case {
  const char *model;
  int64_t p; // devices
  int64_t m; // microbatches
  const char *schedule = "1f1b";
  int64_t chunks = 1;
  int64_t n = 1, t = 1; // sizes of data and tensor parallelism
  bool sequenceParallel = false;

  int64_t stages() const { return p * chunks; }
  bool isV() const { return std::string(schedule) == "zb-v"; }
  /// The device of a stage.
  int64_t device(int64_t stage) const {
    if (!isV())
      return stage % p;
    return stage < p ? stage : 2 * p - 1 - stage;
  }
  ModelSizes sizes() const { return std::string(model) == "gpt2" ? gpt2Sizes() : llamaSizes(); }

  CompileOptions options() const {
    bool gpt2 = std::string(model) == "gpt2";
    std::string embedding = gpt2 ? "wte,wpe" : "embed_tokens", layer = gpt2 ? "h." : "layers.",
                head = gpt2 ? "ln_f" : "norm", text;
    text = "pp=" + std::to_string(p);
    if (n > 1)
      text += ",dp=" + std::to_string(n);
    if (t > 1)
      text += ",tp=" + std::to_string(t);
    text += " m=" + std::to_string(m) + " schedule=" + schedule +
            " chunks=" + std::to_string(chunks) + (sequenceParallel ? " sp" : "");
    text += " stages=" + embedding + (stages() > 2 ? "|" : ",") + layer + "0|" + layer + "1" +
            (stages() > 3 ? "|" + head : "");
    return strategy(text);
  }

  friend void PrintTo(const Case &c, std::ostream *os) {
    *os << c.model << ", " << c.p << " devices, " << c.m << " microbatches, " << c.schedule;
  }
};

/// The stages of the embedding, of each layer and of the head.
struct Stages {
  int64_t embedding = 0;
  std::vector<int64_t> layers;
  int64_t head = 0;
};

Stages stagesOf(const Case &c) {
  int64_t first = c.stages() > 2 ? 1 : 0;
  return {0, {first, first + 1}, c.stages() - 1};
}

/// Bytes that all devices send in transfers in one step.
uint64_t expectedTransfers(const Case &c) {
  ModelSizes model = c.sizes();
  Stages stages = stagesOf(c);
  bool isTied = std::string(c.model) == "gpt2";
  const int64_t f32 = 4, groups = c.n * c.t;
  // Cuts: all microbatches and data-parallel devices together send the whole residual. Each of the
  // tensor-parallel ones has a copy, or its part of the sequence.
  int64_t cuts = 0;
  for (int64_t stage = 0; stage + 1 < c.stages(); ++stage)
    cuts += c.device(stage) != c.device(stage + 1);
  int64_t bytes = cuts * 2 * model.residual() * f32 * (c.sequenceParallel ? 1 : c.t);
  // The norm of the gradient: the first device gets the square sum of each parameter of others, and
  // tells them by what to scale.
  int64_t layerTensors = model.parametersOfLayer, scalars = c.p - 1;
  for (int64_t stage : stages.layers)
    scalars += c.device(stage) != 0 ? layerTensors : 0;
  int64_t headTensors =
      int64_t(model.parameters.size()) - model.firstOfLayers - model.layers * layerTensors;
  scalars += c.device(stages.head) != 0 ? headTensors : 0;
  bytes += scalars * f32 * groups;
  // A table at both ends: each device sends its part of the gradient to the other one.
  if (isTied && c.device(stages.head) != c.device(stages.embedding))
    bytes += 2 * model.vocab * model.embed * f32 * c.n;
  return uint64_t(bytes);
}

class PipelineTraffic : public testing::TestWithParam<Case> {};

std::vector<Case> casesOf(const char *model) {
  std::vector<Case> all;
  for (const char *schedule : {"naive", "gpipe", "1f1b", "zb-h1"})
    for (int64_t p : {2, 3, 4})
      all.push_back({model, p, 4, schedule});
  for (int64_t m : {1, 2, 8})
    all.push_back({model, 4, m});
  for (int64_t m : {2, 4}) {
    all.push_back({model, 2, m, "interleaved", 2});
    all.push_back({model, 2, m, "zb-v", 2});
  }
  all.push_back({model, 3, 4, "1f1b", 1, /*n=*/2});
  all.push_back({model, 2, 2, "zb-v", 2, /*n=*/3});
  all.push_back({model, 4, 4, "zb-h1", 1, 1, /*t=*/2});
  all.push_back({model, 2, 4, "interleaved", 2, 1, 4, /*sequenceParallel=*/true});
  all.push_back({model, 2, 2, "1f1b", 1, 2, 2, true});
  return all;
}

std::string nameOf(const testing::TestParamInfo<Case> &info) {
  const Case &c = info.param;
  std::string name = std::string(c.model) + "_" + c.schedule + "_p" + std::to_string(c.p) + "_m" +
                     std::to_string(c.m) + "_n" + std::to_string(c.n) + "_t" + std::to_string(c.t) +
                     (c.sequenceParallel ? "_sp" : "");
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

} // namespace

TEST_P(PipelineTraffic, IsWhatTheFormulaSays) {
  const Case &c = GetParam();
  auto session = openSession(c.sizes(), c.options());
  ASSERT_TRUE(session);
  ASSERT_TRUE(runStep(*session));
  EXPECT_EQ(session->communicatorBytes().transfers, expectedTransfers(c));
  // The memory of each device: what is alive at the peak, by kind, is all that the arena holds.
  PlanSummary summary = summarizePlan(session->plan());
  ASSERT_EQ(int64_t(summary.programs.size()), c.p);
  uint64_t largest = 0;
  for (const ProgramSummary &program : summary.programs) {
    EXPECT_EQ(program.peak.total(), program.arenaLowerBound);
    EXPECT_GE(program.arenaBytes, program.arenaLowerBound);
    EXPECT_LE(double(program.arenaBytes), 1.1 * double(program.arenaLowerBound));
    largest = std::max(largest, program.arenaBytes);
  }
  EXPECT_EQ(session->peakBytes(), largest);
}

INSTANTIATE_TEST_SUITE_P(Llama, PipelineTraffic, testing::ValuesIn(casesOf("llama")), nameOf);
INSTANTIATE_TEST_SUITE_P(Gpt2, PipelineTraffic, testing::ValuesIn(casesOf("gpt2")), nameOf);

// The microbatches on their way that a device keeps: all of them with gpipe, as many as there are
// devices after it with 1f1b, one if one goes at a time.
TEST(PipelineMemory, IsWhatTheScheduleKeeps) {
  const int64_t m = 12;
  auto peaks = [&](const char *schedule) {
    auto session = openSession(llamaSizes(), Case{"llama", 4, m, schedule}.options());
    std::vector<ProgramSummary> programs;
    if (session)
      programs = summarizePlan(session->plan()).programs;
    return programs;
  };
  auto naive = peaks("naive"), gpipe = peaks("gpipe"), oneF = peaks("1f1b");
  for (const auto *programs : {&naive, &gpipe, &oneF})
    ASSERT_EQ(programs->size(), 4u);
  // The second and the third device have one layer each.
  for (size_t device : {1, 2}) {
    EXPECT_LT(naive[device].peak.activations, oneF[device].peak.activations);
    EXPECT_LT(oneF[device].peak.activations, gpipe[device].peak.activations);
    EXPECT_EQ(gpipe[device].mostSlots, m);
  }
  EXPECT_GT(oneF[1].peak.activations, oneF[2].peak.activations);
  EXPECT_EQ(gpipe[1].peak.activations, gpipe[2].peak.activations);
}

} // namespace pipelineTrafficTest
