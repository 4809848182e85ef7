//===- ExplanationReportTest.cpp - Explanations as text and as JSON -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/ExplanationReport.h"

#include "plan/PlanSummary.h"
#include "plan/PlanVerifier.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/MutateMessage.h"
#include "test/lib/plans/TestPlans.h"
#include "test/report/ExplainedPlan.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

namespace explanationReportTest {

using namespace dtc;
using namespace dtc::runtime::testing;

static PlanExplanation someExplanation() {
  ExplainedPlanBuilder builder;
  builder.makeAsync();
  return explainPlan(*builder.build());
}

TEST(ExplanationReport, Text) {
  std::string text = formatExplanation(someExplanation());
  // Some lines are too long for one literal. NOLINTBEGIN(bugprone-suspicious-missing-comma)
  for (const char *part :
       {"model  explained, 8 devices\n",
        "links: dp 25 GB/s 10 us (assumed), tp.0 100 GB/s 2 us (from the plan), tp.1 100 GB/s "
        "(from the plan) 10 us (assumed)\n",
        "each device sends 11.4 KiB in 10 collectives, 194.2 us one after the other, 20.1 us "
        "of it overlapped\n",
        "  1  all_reduce over tp                        6      1.5 KiB      9.0 KiB     144.1 us   "
        "74.2%\n",
        "     at      h.*.attn (task micro_step, 2 in the plan)\n",
        "     moves   f32[64,4], result of dtc.einsum\n",
        "     from    [{dp}, {}] partial sum {tp}\n",
        "     to      [{dp}, {}]\n",
        "     for     h.*.mlp\n",
        "     remedy  do not shard heads\n",
        "at      an unknown place (task micro_step)\n",
        "moves   f32[8,4]\n",
        "why     the plan does not say\n",
        "at      an unknown place (task finish, overlapped with computation)\n",
        "bucket  3 tensors that move together\n",
        "moves   2 x f32[64,4], sends 1.0 KiB, gradient of h.*.weight\n",
        "moves   f32[], sends 4 B\n",
        "by axes                   in the plan       a step  sent a step  time a step\n",
        "  all_reduce                        3            7",
        "all                                 4 "})
    EXPECT_TRUE(contains(text, part));
  // NOLINTEND(bugprone-suspicious-missing-comma)
  EXPECT_FALSE(contains(text, " more, together"));
}

TEST(ExplanationReport, NoLineIsLongerThanATerminal) {
  ExplainedPlanBuilder builder;
  std::string remedy;
  for (int i = 0; i < 60; ++i)
    remedy += "word" + std::to_string(i) + " ";
  builder.plan.mutable_reasons(1)->set_remedy(remedy);
  builder.plan.mutable_reasons(2)->set_remedy(std::string(200, 'x'));
  std::string text = formatExplanation(explainPlan(*builder.build()));
  std::istringstream lines(text);
  size_t wrapped = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.size() <= 120 || contains(line, "xxx")) << line;
    wrapped += line.starts_with("             word") ? 1 : 0;
  }
  EXPECT_GE(wrapped, 2u);
  EXPECT_TRUE(contains(text, " " + std::string(200, 'x') + "\n"));
}

TEST(ExplanationReport, WhereAValueIsMadeElsewhere) {
  ExplainedPlanBuilder builder;
  builder.plan.mutable_reasons(1)->set_producer(3);
  builder.plan.mutable_reasons(2)->set_producer(4);
  EXPECT_TRUE(contains(formatExplanation(explainPlan(*builder.build())),
                       "moves   f32[64,4], result of dtc.einsum made at h.*.mlp\n"));
}

TEST(ExplanationReport, ManyLinksHaveALineEach) {
  PlanExplanation explanation = someExplanation();
  explanation.links.insert(explanation.links.end(), 2, explanation.links[0]);
  explanation.links[3].axis = "pp";
  explanation.links[4].axis = "ep";
  EXPECT_TRUE(contains(formatExplanation(explanation),
                       "links: dp 25 GB/s 10 us (assumed)\n       tp.0 100 GB/s"));
}

TEST(ExplanationReport, Top) {
  PlanExplanation explanation = someExplanation();
  std::string text = formatExplanation(explanation, 1);
  EXPECT_TRUE(contains(text, "  1  all_reduce over tp "));
  EXPECT_FALSE(contains(text, "all_gather over"));
  EXPECT_TRUE(contains(
      text, "     2 more, together 4 collectives a step, 2.4 KiB, 50.1 us; --top 3 shows all\n"));
  EXPECT_TRUE(contains(formatExplanation(explanation, 0), "     3 more, together 10 "));
  EXPECT_EQ(formatExplanation(explanation, 3), formatExplanation(explanation));
}

TEST(ExplanationReport, PartsWithTheSameLinkAreOneAxis) {
  auto plan = ExplainedPlanBuilder().build();
  EXPECT_TRUE(contains(formatExplanation(explainPlan(*plan, {{"tp", {1e9, 1e-6}}})),
                       "assumed), tp 1 GB/s 1 us (from --link)\n"));
}

TEST(ExplanationReport, APlanThatSendsNothing) {
  PlanExplanation explanation = explainPlan(*forwardPlan());
  EXPECT_EQ(formatExplanation(explanation),
            "model  unnamed, 1 device\nno collectives: the devices send nothing\n");
  nlohmann::json json = nlohmann::json::parse(explanationToJson(explanation));
  EXPECT_EQ(json["collectives"], nlohmann::json::array());
  EXPECT_EQ(json["totals"]["by_axes"], nlohmann::json::array());
  EXPECT_EQ(json["totals"]["all"]["sent_bytes"], 0);
}

TEST(ExplanationReport, Json) {
  PlanExplanation explanation = someExplanation();
  nlohmann::json json = nlohmann::json::parse(explanationToJson(explanation));
  EXPECT_EQ(json["model"], "explained");
  EXPECT_EQ(json["devices"], 8);
  ASSERT_EQ(json["links"].size(), 3u);
  EXPECT_EQ(json["links"][0]["bandwidth"], 25e9);
  EXPECT_EQ(json["links"][0]["bandwidth_from"], "assumed");
  EXPECT_TRUE(json["links"][0]["sub_axis_of"].is_null());
  EXPECT_EQ(json["links"][2]["sub_axis_of"], "tp");
  EXPECT_EQ(json["links"][1]["latency_from"], "plan");
  ASSERT_EQ(json["collectives"].size(), 4u);
  const nlohmann::json &first = json["collectives"][0];
  EXPECT_EQ(first["kind"], "all_reduce");
  EXPECT_EQ(first["axes"], (Axes{"tp.0", "tp.1"}));
  EXPECT_EQ(first["user_axes"], Axes{"tp"});
  EXPECT_EQ(first["location"], "h.0.attn");
  EXPECT_EQ(first["calls"], 3);
  EXPECT_EQ(first["call_sent_bytes"], 1536);
  EXPECT_EQ(first["sent_bytes"], 3 * 1536);
  EXPECT_DOUBLE_EQ(first["seconds"], explanation.collectives[0].stepSeconds());
  EXPECT_EQ(first["tensors"][0]["consumer"], "h.0.mlp");
  EXPECT_EQ(first["tensors"][0]["remedy"], "do not shard heads");
  const nlohmann::json &bucket = json["collectives"][3];
  EXPECT_EQ(bucket["async"], true);
  ASSERT_EQ(bucket["tensors"].size(), 3u);
  EXPECT_EQ(bucket["tensors"][1]["value"], "gradient of h.1.weight");
  EXPECT_TRUE(bucket["tensors"][2]["value"].is_null());
  EXPECT_TRUE(bucket["location"].is_null());
  EXPECT_EQ(json["totals"]["by_kind"][0]["name"], "all_reduce");
  EXPECT_EQ(json["totals"]["all"]["sent_bytes"], explanation.total.bytes);
}

TEST(ExplanationReport, NamesThatAreNotUtf8) {
  PlanExplanation explanation = someExplanation();
  explanation.collectives[0].location = "\xff\"\n";
  EXPECT_TRUE(nlohmann::json::accept(explanationToJson(explanation)));
}

TEST(ExplanationReport, EveryValidPlanCanBeExplained) {
  ExplainedPlanBuilder builder;
  std::mt19937_64 random(1);
  int valid = 0;
  for (int i = 0; i < 3000; ++i) {
    plan::Plan plan = i % 2 == 0 ? *builder.build() : *kernelPlan();
    mutateMessage(plan, random);
    if (findPlanError(plan))
      continue;
    ++valid;
    PlanExplanation explanation = explainPlan(plan);
    EXPECT_EQ(explanation.total.bytes, summarizePlan(plan).sentBytes.total());
    EXPECT_FALSE(formatExplanation(explanation).empty());
    EXPECT_TRUE(nlohmann::json::accept(explanationToJson(explanation)));
  }
  EXPECT_GT(valid, 100);
}

} // namespace explanationReportTest
