//===- MixedMemoryTest.cpp - Memory by kind, in mixed precision -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Rajbhandari et al. 2020, sections 3.1 and 5: with Adam in mixed precision, Psi parameters take 2
// Psi bytes, and 12 Psi of master weights and moments. Stage 1 divides the 12 Psi by the number of
// devices, stage 2 the gradients too, stage 3 the parameters too. The paper's gradients take 2 Psi
// bytes; these take 4 Psi, since they are added up over microbatches, and reduced, in f32. For a
// GPT-2 whose batch is tiny, which is compiled and not run.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanSummary.h"
#include "test/lib/compile/CompileAndRun.h"

#include <gtest/gtest.h>

namespace mixedMemoryTest {

using namespace dtc;
using namespace dtc::test;

namespace {

constexpr int64_t kLayers = 12, kEmbed = 256, kVocab = 256, kPositions = 16;
const char *kConfig = R"({"model_type": "gpt2", "vocab_size": 256, "n_positions": 16, )"
                      R"("n_embd": 256, "n_layer": 12, "n_head": 8, "attn_pdrop": 0, )"
                      R"("embd_pdrop": 0, "resid_pdrop": 0})";

/// 12 d^2 + 13 d a layer, the tables, and the last norm.
constexpr double kPsi =
    double(kLayers * (12 * kEmbed * kEmbed + 13 * kEmbed) + (kVocab + kPositions + 2) * kEmbed);
/// As much as the largest gradient has, that of an MLP's weight.
constexpr int64_t kBucketBytes = 4 * 4 * kEmbed * kEmbed;
constexpr double kTolerance = 0.02;

struct Case {
  int stage;
  int64_t n; // ranks
  int64_t m; // microbatches

  friend void PrintTo(const Case &c, std::ostream *os) {
    *os << "stage " << c.stage << ", " << c.n << " ranks, " << c.m << " microbatches";
  }
};

class MixedMemory : public testing::TestWithParam<Case> {};

PeakMemory peakOf(const Case &c, int64_t bucketBytes) {
  Compiler compiler;
  auto plan =
      compiler.importAndCompile(kConfig, /*batch=*/16, /*seq=*/2,
                                strategy("dp=" + std::to_string(c.n) + " m=" + std::to_string(c.m) +
                                         " dtype=bf16 zero=" + std::to_string(c.stage) +
                                         " bucket=" + std::to_string(bucketBytes)));
  EXPECT_TRUE(plan) << compiler.diagnostics();
  if (!plan)
    return {};
  PlanSummary summary = summarizePlan(*plan);
  EXPECT_EQ(double(summary.parameterElements), kPsi);
  EXPECT_EQ(summary.peak.total(), summary.arenaLowerBound);
  return summary.peak;
}

void expectBytes(uint64_t found, double expected, const char *kind) {
  EXPECT_NEAR(double(found), expected, kTolerance * expected) << kind;
}

} // namespace

TEST_P(MixedMemory, IsWhatTheFormulaSays) {
  const Case &c = GetParam();
  PeakMemory peak = peakOf(c, kBucketBytes);
  double n = double(c.n);
  expectBytes(peak.parameters, 2 * kPsi / (c.stage >= 3 ? n : 1), "parameters");
  expectBytes(peak.masterWeights, 4 * kPsi / (c.stage >= 1 ? n : 1), "master weights");
  expectBytes(peak.optimizerState, 8 * kPsi / (c.stage >= 1 ? n : 1), "moments");
  // Without microbatches there is no sum to keep, and stage 1 may scatter gradients as they come.
  bool whole = c.stage == 0 || (c.stage == 1 && c.m > 1);
  double gradients = 4 * kPsi / (whole ? 1 : n);
  EXPECT_GE(double(peak.gradients), (1 - kTolerance) * gradients);
  // Gradients that are whole until they are scattered, or added to the sum: in the bucket that is
  // being filled and in the two that move or wait.
  EXPECT_LE(double(peak.gradients), (1 + kTolerance) * gradients + 3 * kBucketBytes);
}

INSTANTIATE_TEST_SUITE_P(Stages, MixedMemory,
                         testing::Values(Case{0, 2, 2}, Case{0, 4, 2}, Case{0, 8, 2}, Case{1, 2, 2},
                                         Case{1, 4, 2}, Case{1, 8, 2}, Case{2, 2, 2}, Case{2, 4, 2},
                                         Case{2, 8, 2}, Case{3, 2, 2}, Case{3, 4, 2}, Case{3, 8, 2},
                                         Case{0, 4, 1}, Case{1, 4, 1}, Case{2, 4, 1},
                                         Case{3, 4, 1}),
                         [](const testing::TestParamInfo<Case> &info) {
                           const Case &c = info.param;
                           return "zero" + std::to_string(c.stage) + "_dp" + std::to_string(c.n) +
                                  "_m" + std::to_string(c.m);
                         });

// A bucket that is as large as the model holds all gradients before any is scattered: the stage
// then saves nothing of them.
TEST(MixedMemory, ABucketAsLargeAsTheModelKeepsGradientsWhole) {
  Case c{2, 4, 2};
  double small = double(peakOf(c, kBucketBytes).gradients);
  double large = double(peakOf(c, int64_t(4 * kPsi)).gradients);
  EXPECT_GT(large, 4 * kPsi);
  EXPECT_LT(small, 4 * kPsi / double(c.n) + 3 * kBucketBytes);
}

} // namespace mixedMemoryTest
