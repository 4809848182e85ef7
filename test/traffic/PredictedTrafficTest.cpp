//===- PredictedTrafficTest.cpp - Tests of the predicted traffic ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The bytes that dtc-plan predicts from a plan alone, by kind of collective and in transfers,
// against what the communicators of all devices counted while the plan ran.
//
//===----------------------------------------------------------------------===//

#include "report/PlanExplanation.h"
#include "test/traffic/ModelSizes.h"

#include <gtest/gtest.h>

namespace predictedTrafficTest {

using namespace dtc;
using namespace dtc::test;

namespace {

void expectPrediction(runtime::Session &session) {
  PlanSummary summary = summarizePlan(session.plan());
  PlanExplanation explanation = explainPlan(session.plan());
  // The figures of a pipeline are those of one device for each program.
  uint64_t devices = uint64_t(summary.devicesPerProgram());
  CommunicatorBytes counted = session.communicatorBytes();
  EXPECT_GT(counted.total(), 0u) << "this strategy does not communicate";
  for (CollectiveKind kind : dtc::kAllCollectiveKinds)
    EXPECT_EQ(devices * summary.sentBytes.of(kind), counted.of(kind)) << dtc::name(kind);
  EXPECT_EQ(devices * summary.transfers.bytes, counted.transfers);
  EXPECT_EQ(devices * explanation.total.bytes, counted.total());
  // Every way to add up the collectives comes to the same.
  uint64_t byTensor = 0, byAxes = 0, byKind = 0;
  for (const ExplainedCollective &collective : explanation.collectives)
    for (const ExplainedTensor &tensor : collective.tensors)
      byTensor += collective.calls * tensor.bytes;
  for (const CommunicationTotal &total : explanation.byAxes)
    byAxes += total.bytes;
  for (const CommunicationTotal &total : explanation.byKind)
    byKind += total.bytes;
  EXPECT_EQ(byTensor, explanation.total.bytes);
  EXPECT_EQ(byAxes, explanation.total.bytes);
  EXPECT_EQ(byKind, explanation.total.bytes);
}

struct Case {
  const char *name;
  const char *model;
  const char *strategy;
  int64_t bucketBytes;

  friend void PrintTo(const Case &c, std::ostream *os) { *os << c.model << ", " << c.strategy; }
};

class Prediction : public testing::TestWithParam<Case> {};

constexpr int64_t kUsual = int64_t(25) << 20, kSmall = 4096;

const Case kCases[] = {
    {"Buckets", "gpt2", "dp=4", kUsual},
    {"SmallBuckets", "gpt2", "dp=4", kSmall},
    {"NoBuckets", "gpt2", "dp=4", 0},
    {"PaddedBatch", "llama", "dp=5", kUsual},
    {"PaddedStates", "gpt2", "dp=3 zero=2", kSmall},
    {"PaddedParameters", "llama", "dp=3 zero=3", 0},
    {"Zero1Microbatches", "gpt2", "dp=2 m=4 zero=1", kUsual},
    {"Zero2Microbatches", "llama", "dp=2 m=3 zero=2", kSmall},
    {"Zero3Microbatches", "gpt2", "dp=4 m=2 zero=3", kSmall},
    {"Tensor", "llama", "tp=4", kUsual},
    {"PaddedHeads", "gpt2", "tp=3", kUsual},
    {"SharedKeyValueHeads", "llama2heads", "tp=4 m=2", kUsual},
    {"SequenceParallel", "gpt2", "tp=4 sp", kSmall},
    {"PaddedSequence", "llama", "tp=3 sp", kUsual},
    {"DataAndTensor", "gpt2", "dp=2,tp=2 m=2", kUsual},
    {"All", "llama", "dp=2,tp=2 m=3 zero=3 sp", kUsual},
    {"FullyShardedAndData", "gpt2", "dp=2,fsdp=2 zero=3", kSmall},
    {"ThreeAxes", "llama", "dp=2,fsdp=2,tp=2 m=2 zero=2", kUsual},
    {"SplitByBoth", "gpt2", "dp=2,tp=2 shard:batch=dp+tp", kUsual},
    {"Pipeline", "gpt2", "pp=3 m=4", kUsual},
    {"PipelineUnevenMicrobatches", "llama", "pp=2 m=5 schedule=gpipe", kUsual},
    {"PipelinePaddedBatch", "llama", "pp=2,dp=5 m=2 schedule=zb-h1", kUsual},
    {"PipelineInterleaved", "gpt2", "tp=2,pp=2 m=4 schedule=interleaved chunks=3", kSmall},
    {"PipelineZero", "llama", "dp=2,pp=2 m=3 zero=2 schedule=zb-v", 0},
    {"PipelineAll", "gpt2", "dp=2,pp=2,tp=2 m=2 zero=3 sp schedule=zb-v", kSmall},
};

} // namespace

TEST_P(Prediction, IsWhatCommunicatorsCount) {
  const Case &c = GetParam();
  std::string name = c.model;
  ModelSizes model = name == "gpt2" ? gpt2Sizes() : llamaSizes(name == "llama2heads" ? 2 : 4);
  CompileOptions options = strategy(c.strategy);
  options.bucketBytes = c.bucketBytes;
  auto session = openSession(model, options);
  ASSERT_TRUE(session);
  ASSERT_TRUE(runStep(*session));
  expectPrediction(*session);
}

INSTANTIATE_TEST_SUITE_P(Strategies, Prediction, testing::ValuesIn(kCases),
                         [](const auto &info) { return std::string(info.param.name); });

// No strategy of the importers' models permutes or swaps dimensions: a program that asks for it.
TEST(Prediction, CountsPermutesAndAllToAlls) {
  Compiler compiler;
  auto module = compiler.parse(R"mlir(
    dist.mesh @mesh <"a"=2, "b"=3>
    func.func @loss(
        %x: tensor<12x18xf32> {dtc.input = "x",
                               dist.sharding = #dist.sharding<@mesh, [{"a", "b"}, {}]>})
        -> (tensor<12x18xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"b", "a"}]>}) {
      %0 = dtc.relu %x : tensor<12x18xf32>
      %1 = dist.constrain %0 to <@mesh, [{"b", "a"}, {}]> : tensor<12x18xf32>
      %2 = dtc.tanh %1 : tensor<12x18xf32>
      return %2 : tensor<12x18xf32>
    })mlir");
  ASSERT_TRUE(module) << compiler.diagnostics();
  CompileOptions options;
  options.mode = CompileMode::Forward;
  auto session = compiler.open(*module, options);
  ASSERT_TRUE(session) << compiler.diagnostics();
  ASSERT_TRUE(runStep(*session));
  CommunicatorBytes counted = session->communicatorBytes();
  // Each of the six devices has 36 of the elements. All send them to permute, those included that
  // keep theirs; to swap dimensions each sends all but a sixth.
  EXPECT_EQ(counted.of(CollectiveKind::Permute), 6u * 36 * 4);
  EXPECT_EQ(counted.of(CollectiveKind::AllToAll), 6u * 30 * 4);
  expectPrediction(*session);
}

} // namespace predictedTrafficTest
