//===- PlanExplanationTest.cpp - Tests of communication reports -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/PlanExplanation.h"

#include "plan/ParentAxes.h"
#include "plan/PlanSummary.h"
#include "plan/PlanTypes.h"
#include "plan/PlanVerifier.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TestPlans.h"
#include "test/report/ExplainedPlan.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace planExplanationTest {

using namespace dtc;
using namespace dtc::runtime::testing;

static const ExplainedCollective &find(const PlanExplanation &explanation, const char *task,
                                       int instruction) {
  auto it =
      std::find_if(explanation.collectives.begin(), explanation.collectives.end(),
                   [&](const auto &c) { return c.task == task && c.instruction == instruction; });
  EXPECT_NE(it, explanation.collectives.end());
  return *it;
}

TEST(CollectiveCost, NamesAndBytesOfPermutes) {
  EXPECT_STREQ(name(CollectiveKind::Permute), "permute");
  EXPECT_STREQ(name(CollectiveKind::AllToAll), "all_to_all");
  ExplainedPlanBuilder builder;
  plan::Collective collective;
  collective.set_kind(plan::Collective::PERMUTE);
  plan::CollectiveTensor *tensor = collective.add_tensors(); // of buffer 0, f32[64,4]
  EXPECT_EQ(sentBytes(builder.program(), collective, *tensor, 4), 1024u);
}

TEST(PlanExplanation, CollectivesWithTheirReasons) {
  auto plan = ExplainedPlanBuilder().build();
  ASSERT_OK(findPlanError(*plan));
  PlanExplanation explanation = explainPlan(*plan);
  EXPECT_EQ(explanation.model, "explained");
  EXPECT_EQ(explanation.numDevices, 8);
  ASSERT_EQ(explanation.collectives.size(), 4u);

  const ExplainedCollective &sum = find(explanation, "micro_step", 1);
  EXPECT_EQ(sum.kind, CollectiveKind::AllReduce);
  EXPECT_EQ(sum.axes, (Axes{"tp.0", "tp.1"}));
  EXPECT_EQ(sum.parentAxes, Axes{"tp"});
  EXPECT_EQ(sum.members, 4);
  EXPECT_EQ(sum.location, "h.1.attn");
  EXPECT_EQ(sum.calls, 3u);
  EXPECT_EQ(sum.bytes, 2u * 1024 * 3 / 4);
  EXPECT_EQ(sum.stepBytes(), 3 * sum.bytes);
  EXPECT_FALSE(sum.async);
  ASSERT_EQ(sum.tensors.size(), 1u);
  EXPECT_EQ(sum.tensors[0].type, "f32[64,4]");
  EXPECT_EQ(sum.tensors[0].reason,
            (ExplainedReason{"result of dtc.einsum", "[{dp}, {}] partial sum {tp}", "[{dp}, {}]",
                             "h.1.attn", "h.1.mlp", "do not shard heads"}));

  const ExplainedCollective &gather = find(explanation, "micro_step", 2);
  EXPECT_EQ(gather.parentAxes, Axes{"tp.1"});
  EXPECT_EQ(gather.location, "");
  EXPECT_FALSE(gather.tensors[0].reason.known());
}

TEST(PlanExplanation, EstimatesFromTheLinksOfThePlan) {
  auto plan = ExplainedPlanBuilder().build();
  PlanExplanation explanation = explainPlan(*plan);
  ASSERT_EQ(explanation.links.size(), 3u); // the temporal axis has none
  EXPECT_EQ(explanation.links[0].speed, kAssumedLink);
  EXPECT_EQ(explanation.links[0].bandwidthFrom, LinkOrigin::Assumed);
  EXPECT_EQ(explanation.links[1].speed, (LinkSpeed{100e9, 2e-6}));
  EXPECT_EQ(explanation.links[1].latencyFrom, LinkOrigin::Plan);
  EXPECT_EQ(explanation.links[1].subAxisOf, "tp");
  EXPECT_EQ(explanation.links[2].speed, (LinkSpeed{100e9, kAssumedLink.latency}));
  EXPECT_EQ(explanation.links[2].bandwidthFrom, LinkOrigin::Plan);
  EXPECT_EQ(explanation.links[2].latencyFrom, LinkOrigin::Assumed);

  // A ring along tp.0 and one along tp.1.
  EXPECT_DOUBLE_EQ(find(explanation, "micro_step", 0).seconds, 2 * (2e-6 + 10e-6) + 1536 / 100e9);
  EXPECT_DOUBLE_EQ(find(explanation, "micro_step", 2).seconds, 10e-6 + 128 / 100e9);
  // A bucket pays the latency once.
  const ExplainedCollective &bucket = find(explanation, "finish", 0);
  ASSERT_EQ(bucket.tensors.size(), 3u);
  EXPECT_EQ(bucket.tensors[0].bytes, 1024u);
  EXPECT_EQ(bucket.tensors[2].bytes, 4u);
  EXPECT_EQ(bucket.bytes, 2u * 1024 + 4);
  EXPECT_DOUBLE_EQ(bucket.seconds, 2 * 10e-6 + 2052 / 25e9);
}

TEST(PlanExplanation, LinksThatTheUserStates) {
  auto plan = ExplainedPlanBuilder().build();
  std::vector<NamedLink> links = {{"tp.1", {0, 1e-6}}, {"tp", {1e9, 5e-6}}, {"dp", {7, 0}}};
  ASSERT_OK(checkLinks(*plan, links));
  PlanExplanation explanation = explainPlan(*plan, links);
  EXPECT_EQ(explanation.links[0].speed, (LinkSpeed{7, kAssumedLink.latency}));
  EXPECT_EQ(explanation.links[0].bandwidthFrom, LinkOrigin::Option);
  EXPECT_EQ(explanation.links[0].latencyFrom, LinkOrigin::Assumed);
  EXPECT_EQ(explanation.links[1].speed, (LinkSpeed{1e9, 5e-6}));
  EXPECT_EQ(explanation.links[2].speed, (LinkSpeed{1e9, 1e-6})); // a part before the whole
}

TEST(PlanExplanation, LinksThatAreWrong) {
  auto plan = ExplainedPlanBuilder().build();
  EXPECT_ERROR(checkLinks(*plan, {{"xp", {1, 1}}}),
               "the mesh has no axis \"xp\"; its axes are dp, tp.0, tp.1");
  EXPECT_ERROR(checkLinks(*plan, {{"micro", {1, 1}}}), "axis \"micro\" counts microbatches");
  EXPECT_ERROR(checkLinks(*plan, {{"dp", {1, 1}}, {"dp", {2, 2}}}), "axis \"dp\" has two links");
  EXPECT_ERROR(checkLinks(*forwardPlan(), {{"dp", {1, 1}}}), "it is one device");
}

TEST(PlanExplanation, AxesAsTheUserKnowsThem) {
  auto plan = ExplainedPlanBuilder().build();
  EXPECT_EQ(parentAxes(*plan, {"tp.1", "dp", "tp.0"}), (Axes{"dp", "tp"}));
  EXPECT_EQ(parentAxes(*plan, {"tp.0"}), Axes{"tp.0"});
  EXPECT_EQ(parentAxes(*plan, {"dp"}), Axes{"dp"});
  EXPECT_EQ(parentAxes(*plan, {}), Axes{});
}

TEST(PlanExplanation, SortedByTimeThenBytesThenOrder) {
  PlanExplanation explanation = explainPlan(*ExplainedPlanBuilder().build());
  EXPECT_EQ(explanation.collectives[0].location, "h.0.attn"); // equal to the next one
  EXPECT_EQ(explanation.collectives[1].location, "h.1.attn");
  EXPECT_EQ(explanation.collectives[2].kind, CollectiveKind::AllGather); // 3 latencies
  EXPECT_EQ(explanation.collectives[3].task, "finish");                  // 2 latencies
}

TEST(PlanExplanation, GroupsAndTotals) {
  ExplainedPlanBuilder builder;
  builder.makeAsync();
  auto plan = builder.build();
  PlanExplanation explanation = explainPlan(*plan);
  ASSERT_EQ(explanation.groups.size(), 3u);
  const ExplainedRow &layers = explanation.groups[0];
  EXPECT_EQ(layers.members, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(layers.calls, 6u);
  EXPECT_EQ(layers.bytes, 6u * 1536);
  ExplainedCollective collective = representativeOf(explanation, layers);
  EXPECT_EQ(collective.location, "h.*.attn");
  EXPECT_EQ(collective.tensors[0].reason.consumer, "h.*.mlp");
  EXPECT_EQ(collective.tensors[0].reason.value, "result of dtc.einsum");
  // Words that are alike in all members stay as they are.
  EXPECT_EQ(representativeOf(explanation, explanation.groups[2]).tensors[0].reason.value,
            "gradient of h.0.weight");

  EXPECT_EQ(explanation.total.instructions, 4u);
  EXPECT_EQ(explanation.total.calls, 10u);
  EXPECT_EQ(explanation.total.bytes, 6u * 1536 + 3 * 128 + 2052);
  EXPECT_EQ(explanation.total.bytes, summarizePlan(*plan).sentBytes.total());
  ASSERT_EQ(explanation.byAxes.size(), 3u);
  EXPECT_EQ(explanation.byAxes[0].name, "tp");
  EXPECT_EQ(explanation.byAxes[1].name, "tp.1");
  EXPECT_EQ(explanation.byAxes[2].name, "dp");
  EXPECT_DOUBLE_EQ(explanation.byAxes[2].asyncSeconds, 2 * 10e-6 + 2052 / 25e9);
  ASSERT_EQ(explanation.byKind.size(), 2u);
  EXPECT_EQ(explanation.byKind[0].name, "all_reduce");
  EXPECT_EQ(explanation.byKind[0].instructions, 3u);
  EXPECT_DOUBLE_EQ(explanation.total.seconds,
                   explanation.byKind[0].seconds + explanation.byKind[1].seconds);
}

TEST(PlanExplanation, CollectivesThatDifferAreNotOneGroup) {
  ExplainedPlanBuilder builder;
  builder.plan.mutable_reasons(2)->set_to("[{tp}, {}]");
  EXPECT_EQ(explainPlan(*builder.build()).groups.size(), 4u);
}

TEST(PlanExplanation, LayerPatterns) {
  EXPECT_EQ(layerPattern("h.3.attn"), "h.*.attn");
  EXPECT_EQ(layerPattern("layers.12"), "layers.*");
  EXPECT_EQ(layerPattern("gradient of h.12.c_attn.weight"), "gradient of h.*.c_attn.weight");
  EXPECT_EQ(layerPattern("model.mlir:12:8"), "model.mlir:12:8");
  // Each layer has a place of its own.
  EXPECT_EQ(layerPattern("h.3.attn (model.mlir:12:8)", false), "h.*.attn");
  EXPECT_EQ(layerPattern("dtc.add in h.3.attn (a b.mlir:1:2), h.4.mlp (x)", false),
            "dtc.add in h.*.attn, h.*.mlp (x)");
  EXPECT_EQ(layerPattern("wte (model.mlir:12:8)", false), "wte (model.mlir:12:8)");
  EXPECT_EQ(layerPattern("h.3.fc1 (m.mlir:3:8)"), "h.*.fc1 (m.mlir:3:8)");
  EXPECT_EQ(layerPattern("3.x2.4y"), "3.x2.4y");
  EXPECT_EQ(layerPattern(""), "");
}

TEST(PlanExplanation, APlanThatSendsNothing) {
  PlanExplanation explanation = explainPlan(*forwardPlan());
  EXPECT_TRUE(explanation.collectives.empty());
  EXPECT_TRUE(explanation.links.empty());
  EXPECT_EQ(explanation.total.bytes, 0u);
  EXPECT_OK(checkCommunicationBudget(explanation, 0));
}

TEST(PlanExplanation, ATaskThatNeverRunsCostsNothing) {
  auto plan = ExplainedPlanBuilder().build();
  plan->mutable_programs(0)->clear_schedule();
  plan->mutable_axes(0)->set_bandwidth(1e-320); // the time of a call is infinite
  PlanExplanation explanation = explainPlan(*plan);
  EXPECT_EQ(explanation.total.seconds, 0);
  EXPECT_EQ(explanation.total.bytes, 0u);
  EXPECT_EQ(explanation.collectives.size(), 4u);
}

TEST(PlanExplanation, Budget) {
  PlanExplanation explanation = explainPlan(*ExplainedPlanBuilder().build());
  EXPECT_OK(checkCommunicationBudget(explanation, explanation.total.bytes));
  MaybeError error = checkCommunicationBudget(explanation, explanation.total.bytes - 1);
  for (const char *part :
       {"a device sends 11.4 KiB in a step (11652 bytes), but the budget is 11.4 KiB (11651 bytes)",
        "9.0 KiB of it by all_reduce over tp at h.*.attn",
        "result of dtc.einsum lies as [{dp}, {}]",
        "is needed as [{dp}, {}]; what would remove it: do not shard heads"})
    EXPECT_ERROR(error, part);

  // A plan without reasons.
  error = checkCommunicationBudget(explainPlan(*trainingPlan({2, 2, 2})), 1);
  EXPECT_ERROR(error, "shard the model in another way or raise the budget");
}

} // namespace planExplanationTest
