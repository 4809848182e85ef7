//===- PipelineReportTest.cpp - Reports on plans of several programs ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/ExplanationReport.h"
#include "report/PlanReport.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TestPlans.h"
#include "test/report/SchedulePlans.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace pipelineReportTest {

using namespace dtc;
using namespace dtc::runtime::testing;

TEST(PipelineReport, Summary) {
  // Three microbatches: 16 bytes of activations, 16 of gradients each; and 4 bytes of a sum.
  PlanSummary summary = summarizePlan(*pipelinePlan(2));
  EXPECT_EQ(summary.numDevices, 4);
  EXPECT_EQ(summary.devicesPerProgram(), 2);
  EXPECT_EQ(summary.pipelineAxis, "pp");
  EXPECT_EQ(summary.stages, 2u);
  ASSERT_EQ(summary.programs.size(), 2u);
  EXPECT_EQ(summary.parameterTensors, 2u);
  EXPECT_EQ(summary.parameterElements, 8u);
  EXPECT_EQ(summary.programs[0].transfers, (TransferSummary{1, 1, 3, 48}));
  EXPECT_EQ(summary.programs[1].transfers, (TransferSummary{2, 2, 4, 52}));
  EXPECT_EQ(summary.transfers, (TransferSummary{3, 3, 7, 100}));
  // All_reduces over dp=2: a gradient of 16 bytes in each program, the loss in the second.
  EXPECT_EQ(summary.programs[0].collectiveBytes, 16u);
  EXPECT_EQ(summary.programs[1].collectiveBytes, 20u);
  EXPECT_EQ(summary.sentBytes.total(), 36u);
  EXPECT_EQ(summary.sentByAll(), 2u * 136);
}

TEST(PipelineReport, SlotsCountTheBytesThatTheyTake) {
  auto plan = gpipePlan({.devices = 2, .microbatches = 4});
  plan::Program &program = *plan->mutable_programs(1);
  *program.add_buffers() = program.buffers(0); // a view
  program.set_arena_bytes(program.arena_bytes() + 64);
  PlanSummary summary = summarizePlan(*plan);
  EXPECT_EQ(summary.programs[0].mostSlots, 4u);
  EXPECT_EQ(summary.programs[0].slotBytes, 5u * 4 * 64);
  EXPECT_EQ(summary.programs[1].slotBytes, 5u * 4 * 64);
  EXPECT_EQ(summary.largestProgram, 1u);
  EXPECT_EQ(summary.arenaBytes, plan->programs(1).arena_bytes());
}

TEST(PipelineReport, SummaryAsText) {
  auto plan = pipelinePlan(2);
  plan->mutable_programs(1)->set_arena_bytes(4096);
  (*plan->mutable_programs(0)->mutable_memory_by_kind())["parameter"] = 512;
  std::string text = formatSummary(summarizePlan(*plan));
  EXPECT_TRUE(contains(text, "pipeline    2 programs over pp, 2 stages, schedule 1f1b; counts"));
  EXPECT_TRUE(
      contains(text, "  pp=0               512 B       512 B     1.8 KiB       320 B       2\n"));
  EXPECT_TRUE(contains(text, "       2  largest\n"));
  EXPECT_TRUE(contains(text, "  send over pp                      3          3              7"));
  EXPECT_TRUE(contains(text, "sent by all in a step: 272 B; by the device that sends most: 72 B"));
  EXPECT_TRUE(contains(text, "  forward.*                         2"));
  EXPECT_TRUE(contains(text, "schedule  dtc-plan show --schedule draws it\n"));
}

TEST(PipelineReport, SummaryAsJson) {
  nlohmann::json json = nlohmann::json::parse(summaryToJson(summarizePlan(*pipelinePlan(2))));
  EXPECT_EQ(json["pipeline"]["axis"], "pp");
  EXPECT_EQ(json["pipeline"]["transfers"]["messages"], 7);
  ASSERT_EQ(json["pipeline"]["programs"].size(), 2u);
  EXPECT_EQ(json["pipeline"]["programs"][1]["sent_bytes"], 72);
  EXPECT_EQ(json["pipeline"]["programs"][0]["memory"]["most_slots"], 2);
  EXPECT_EQ(json["sent_bytes"]["all_devices"], 272);
  EXPECT_EQ(json["tasks"].back()["program"], 1);
  EXPECT_FALSE(json.contains("timeline"));
  EXPECT_FALSE(
      nlohmann::json::parse(summaryToJson(summarizePlan(*trainingPlan()))).contains("pipeline"));
}

TEST(PipelineReport, Explanation) {
  auto plan = pipelinePlan(2);
  plan->add_locations("h.0.mlp");
  for (plan::Task &task : *plan->mutable_programs(0)->mutable_tasks())
    if (task.name() == "forward.0")
      task.mutable_instructions(task.instructions_size() - 1)->set_location(1);
  PlanExplanation explanation = explainPlan(*plan, {{"pp", {16, 1}}});
  EXPECT_EQ(explanation.total.bytes, 136u);
  ASSERT_EQ(explanation.byProgram.size(), 2u);
  EXPECT_EQ(explanation.byProgram[0].bytes, 64u);
  EXPECT_EQ(explanation.byProgram[1].bytes, 72u);
  const ExplainedCollective *send = nullptr;
  for (const ExplainedCollective &collective : explanation.collectives)
    if (collective.isSend && collective.location == "h.0.mlp")
      send = &collective;
  ASSERT_NE(send, nullptr);
  EXPECT_EQ(send->calls, 3u);
  EXPECT_EQ(send->bytes, 16u);
  EXPECT_DOUBLE_EQ(send->seconds, 2); // latency and bytes / bandwidth
  EXPECT_EQ(send->tensors[0].reason.from, "stage 0 on pp=0");
  EXPECT_EQ(send->tensors[0].reason.to, "stage 1 on pp=1");

  std::string text = formatExplanation(explanation);
  EXPECT_TRUE(contains(text, "a step: 2 devices, one for each program, send 136 B in 10"));
  EXPECT_TRUE(contains(text, "send over pp"));
  EXPECT_TRUE(contains(text, "at      h.0.mlp (task forward.0, overlapped with computation)\n"));
  EXPECT_TRUE(contains(text, "from    stage 0 on pp=0\n     to      stage 1 on pp=1\n"));
  EXPECT_TRUE(contains(text, "by program"));
  nlohmann::json json = nlohmann::json::parse(explanationToJson(explanation));
  EXPECT_EQ(json["totals"]["by_program"][1]["sent_bytes"], 72);
  EXPECT_EQ(json["collectives"][0]["kind"], "send");
}

TEST(PipelineReport, TheBudgetIsThatOfTheDeviceThatSendsMost) {
  PlanExplanation explanation = explainPlan(*pipelinePlan(2));
  EXPECT_FALSE(checkCommunicationBudget(explanation, 72));
  MaybeError error = checkCommunicationBudget(explanation, 71);
  ASSERT_TRUE(error);
  EXPECT_TRUE(contains(error->message, "a device sends 72 B in a step (72 bytes)"));
  EXPECT_TRUE(contains(error->message, "48 B of it by send over pp, as "));
}

} // namespace pipelineReportTest
