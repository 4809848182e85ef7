//===- PeakValuesTest.cpp - What lives at the peak ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/PeakValues.h"

#include "report/PlanReport.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace peakValuesTest {

using namespace dtc;
using namespace dtc::runtime::testing;

namespace {

/// A step of four instructions. The most is in use at the third: x, a (256 bytes), b (512) and c
/// (64).
std::shared_ptr<plan::Plan> fourSteps() {
  PlanBuilder b;
  b.plan.add_locations("h.0.mlp (m.mlir:3:4)");
  b.plan.add_locations("h.1.mlp (m.mlir:7:4)");
  plan::Input &x = b.input("x", DType::F32, {32}, {{}}); // 128 bytes
  uint32_t first = b.buffer(DType::F32, {8, 8}), second = b.buffer(DType::F32, {128});
  uint32_t third = b.buffer(DType::F32, {1}), last = b.buffer(DType::F32, {1});
  b.output("y", DType::F32, {1}, {{}}, last);
  uint32_t task = b.task("step");
  b.kernel("gelu", {x.buffer()}, {first});
  b.kernel("einsum", {first}, {second});
  b.kernel("silu", {x.buffer(), first, second}, {third});
  b.kernel("add", {third}, {last});
  b.schedule(task);
  plan::Task &built = *b.program().mutable_tasks(0);
  for (int i = 0; i < 3; ++i)
    built.mutable_instructions(i)->set_location(i == 2 ? 2 : 1);
  return b.build();
}

} // namespace

TEST(PeakValues, TheLargestComeFirst) {
  std::shared_ptr<plan::Plan> plan = fourSteps();
  PlanPeak peak = findPlanPeak(*plan, plan->programs(0), 10);
  EXPECT_EQ(peak.task, "step");
  EXPECT_EQ(peak.location, "h.1.mlp (m.mlir:7:4)");
  EXPECT_EQ(peak.bytes, 128u + 256 + 512 + 64);
  ASSERT_EQ(peak.values.size(), 4u);
  EXPECT_EQ(peak.values[0].name, "einsum");
  EXPECT_EQ(peak.values[0].location, "h.0.mlp (m.mlir:3:4)");
  EXPECT_EQ(peak.values[0].bytes, 512u);
  EXPECT_EQ(peak.values[1].name, "gelu");
  EXPECT_EQ(peak.values[1].type.str(), "f32[8,8]");
  EXPECT_EQ(peak.values[2].name, "x");
  EXPECT_EQ(peak.values[2].location, "");
  EXPECT_EQ(peak.values[3].bytes, 64u); // 4 bytes, as the arena places them
}

TEST(PeakValues, NoMoreThanAskedFor) {
  std::shared_ptr<plan::Plan> plan = fourSteps();
  PlanPeak peak = findPlanPeak(*plan, plan->programs(0), 1);
  ASSERT_EQ(peak.values.size(), 1u);
  EXPECT_EQ(peak.values[0].bytes, 512u);
  EXPECT_EQ(peak.bytes, 960u);
}

TEST(PeakValues, TextAndJson) {
  std::shared_ptr<plan::Plan> plan = fourSteps();
  PlanPeak peak = findPlanPeak(*plan, plan->programs(0), 2);
  std::string text = formatSummary(summarizePlan(*plan), &peak);
  EXPECT_TRUE(
      contains(text, "largest at the peak, in the task \"step\" at h.1.mlp (m.mlir:7:4)\n"));
  EXPECT_TRUE(contains(
      text, "       512 B  53.3%  activation      f32[128], einsum of h.0.mlp (m.mlir:3:4)\n"
            "       256 B  26.7%  activation      f32[8,8], gelu of h.0.mlp (m.mlir:3:4)\n\n"));
  EXPECT_FALSE(contains(formatSummary(summarizePlan(*plan)), "largest at the peak"));
  nlohmann::json json =
      nlohmann::json::parse(summaryToJson(summarizePlan(*plan), nullptr, &peak))["memory"]["peak"];
  EXPECT_EQ(json["bytes"], 960);
  EXPECT_EQ(json["largest"].size(), 2u);
  EXPECT_EQ(json["largest"][0]["type"], "f32[128]");
  EXPECT_EQ(json["largest"][0]["kind"], "activation");
}

/// Values of several microbatches are one row.
TEST(PeakValues, SlotsAreCopies) {
  PlanBuilder b;
  b.axis("micro", 2, /*temporal=*/true);
  uint32_t value = b.slotted(DType::F32, {16}, 2), sum = b.buffer(DType::F32, {1});
  b.output("y", DType::F32, {1}, {{}}, sum);
  uint32_t forward = b.task("forward");
  b.kernel("fill", {}, {value});
  uint32_t backward = b.task("backward");
  b.kernel("silu", {value}, {sum});
  for (uint32_t task : {forward, backward})
    for (uint32_t microbatch : {0u, 1u})
      b.schedule(task, microbatch);
  PlanPeak peak = findPlanPeak(b.plan, b.program(), 10);
  ASSERT_FALSE(peak.values.empty());
  EXPECT_EQ(peak.values[0].copies, 2u);
  EXPECT_EQ(peak.values[0].bytes, 128u);
  EXPECT_EQ(peak.task, "backward");
}

} // namespace peakValuesTest
