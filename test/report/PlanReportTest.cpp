//===- PlanReportTest.cpp - Summaries of plans as text and as JSON --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/PlanReport.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TestPlans.h"
#include "test/report/ExplainedPlan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

namespace planReportTest {

using namespace dtc;
using namespace dtc::runtime::testing;

/// A training plan with the figures that a compiler adds.
static PlanSummary someSummary() {
  auto plan = trainingPlan({2, 2, 4});
  plan::Program &program = *plan->mutable_programs(0);
  program.set_arena_lower_bound(2 << 20);
  program.set_arena_bytes(3 << 20);
  (*program.mutable_memory_by_kind())["parameter"] = 512 << 10;
  (*program.mutable_memory_by_kind())["activation"] = 1536 << 10;
  program.mutable_tasks(1)->mutable_instructions(1)->set_flops(2.5e9);
  return summarizePlan(*plan);
}

TEST(PlanReport, Text) {
  std::string text = formatSummary(someSummary());
  for (const char *part :
       {"model       a square (version 10, by a test)", "parameters  64 in 1 tensors, 256 B",
        "mesh        dp=2, tp=2, micro=4 (temporal): 4 devices, 4 microbatches",
        "parameters              512.0 KiB   25.0%", "activations               1.5 MiB   75.0%",
        "live at the peak          2.0 MiB", "lower bound               2.0 MiB",
        "arena                     3.0 MiB  1.500 x the lower bound",
        "FLOPs of a step  2.5 GFLOP on a device, 10.0 GFLOP on all", "all_reduce over dp",
        "all_reduce over tp", "sent by a device in a step: 12 B; by all: 48 B",
        "schedule  forward[0..3], update"})
    EXPECT_TRUE(contains(text, part));
}

TEST(PlanReport, TextOfAPlanThatStatesLittle) {
  PlanSummary summary = summarizePlan(*forwardPlan());
  std::string text = formatSummary(summary);
  EXPECT_TRUE(contains(text, "model       unnamed"));
  EXPECT_TRUE(contains(text, "mesh        1 device\n"));
  EXPECT_TRUE(contains(text, "no collectives"));
  EXPECT_TRUE(contains(text, "schedule  forward\n"));
  EXPECT_FALSE(contains(text, "lower bound"));
  EXPECT_FALSE(contains(text, "live at the peak"));
}

TEST(PlanReport, ALongScheduleIsCutShort) {
  PlanSummary summary = someSummary();
  summary.schedule.clear();
  for (uint32_t i = 0; i < 100; ++i)
    summary.schedule.push_back({0, 2 * (i % 2), 1});
  EXPECT_TRUE(contains(formatSummary(summary), ", 84 more\n"));
}

TEST(PlanReport, JsonHasTheNumbersOfTheSummary) {
  PlanSummary summary = someSummary();
  nlohmann::json json = nlohmann::json::parse(summaryToJson(summary));
  EXPECT_EQ(json["model"], "a square");
  EXPECT_EQ(json["mesh"]["devices"], 4);
  EXPECT_EQ(json["mesh"]["microbatches"], 4);
  EXPECT_EQ(json["mesh"]["axes"][2]["name"], "micro");
  EXPECT_EQ(json["mesh"]["axes"][2]["temporal"], true);
  EXPECT_EQ(json["parameters"]["elements"], 64);
  EXPECT_EQ(json["memory"]["arena_bytes"], 3 << 20);
  EXPECT_EQ(json["memory"]["arena_lower_bound_bytes"], 2 << 20);
  EXPECT_EQ(json["memory"]["arena_ratio"], 1.5);
  EXPECT_EQ(json["memory"]["peak_bytes"]["activations"], 1536 << 10);
  EXPECT_EQ(json["memory"]["peak_bytes"]["total"], 2 << 20);
  EXPECT_EQ(json["flops"]["all_devices"], 1e10);
  EXPECT_EQ(json["kernels"].size(), summary.kernels.size());
  EXPECT_EQ(json["kernels"][0]["kernel"], "mul");
  ASSERT_EQ(json["collectives"].size(), 2u);
  EXPECT_EQ(json["collectives"][0]["kind"], "all_reduce");
  EXPECT_EQ(json["sent_bytes"]["device"], summary.sentBytes.total());
  EXPECT_EQ(json["tasks"][0]["runs"], 4);
  EXPECT_EQ(json["schedule"][0]["count"], 4);
}

TEST(PlanReport, JsonOfAPlanThatStatesLittle) {
  nlohmann::json json = nlohmann::json::parse(summaryToJson(summarizePlan(*forwardPlan())));
  EXPECT_TRUE(json["memory"]["arena_ratio"].is_null());
  EXPECT_TRUE(json["mesh"]["axes"].is_array());
  EXPECT_TRUE(json["collectives"].is_array());
}

TEST(PlanReport, AxesThatAreParts) {
  ExplainedPlanBuilder builder;
  PlanSummary summary = summarizePlan(*builder.build());
  EXPECT_TRUE(contains(formatSummary(summary), "mesh        dp=2, tp=4 (as tp.0=2, tp.1=2), "
                                               "micro=3 (temporal): 8 devices, 3 microbatches"));
  nlohmann::json json = nlohmann::json::parse(summaryToJson(summary));
  EXPECT_EQ(json["mesh"]["axes"][2]["name"], "tp.1");
  EXPECT_EQ(json["mesh"]["axes"][2]["sub_axis_of"], "tp");
  EXPECT_FALSE(json["mesh"]["axes"][0].contains("sub_axis_of"));

  // Parts that are apart stay apart.
  std::swap(summary.axes[0], summary.axes[1]);
  EXPECT_TRUE(contains(formatSummary(summary), "mesh        tp.0=2, dp=2, tp.1=2, micro=3"));
}

TEST(PlanReport, BucketsAndCollectivesBesideCompute) {
  ExplainedPlanBuilder builder;
  EXPECT_FALSE(contains(formatSummary(summarizePlan(*builder.build())), "overlapped"));
  builder.makeAsync();
  PlanSummary summary = summarizePlan(*builder.build());
  std::string text = formatSummary(summary);
  EXPECT_TRUE(contains(text, "4 collectives in the plan, 1 of them overlapped with computation\n"));
  EXPECT_TRUE(contains(
      text, "  all_reduce over dp                1          3              1            2"));
  EXPECT_TRUE(contains(text, "  all_reduce over tp                2          2 "));
  std::set<std::string> kernels; // a wait is no kernel
  for (const KernelSummary &kernel : summary.kernels)
    kernels.insert(kernel.kernel);
  EXPECT_EQ(kernels, (std::set<std::string>{"accumulate", "fill"}));
  nlohmann::json json = nlohmann::json::parse(summaryToJson(summary));
  uint64_t async = 0, tensors = 0;
  for (const nlohmann::json &collective : json["collectives"]) {
    async += collective["async_instructions"].get<uint64_t>();
    tensors += collective["tensors"].get<uint64_t>();
  }
  EXPECT_EQ(async, 1u);
  EXPECT_EQ(tensors, 6u);
}

TEST(PlanReport, NamesThatAreNotUtf8) {
  PlanSummary summary = summarizePlan(*forwardPlan());
  summary.model = "\xff\"\n";
  EXPECT_TRUE(nlohmann::json::accept(summaryToJson(summary)));
}

} // namespace planReportTest
