//===- StepMetricsTest.cpp - Tests of the metrics of a step ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metrics/StepMetrics.h"

#include "test/lib/plans/Expect.h"

#include <cmath>
#include <gtest/gtest.h>
#include <set>

namespace stepMetricsTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

TEST(StepMetrics, AStepIsALineOfJson) {
  StepMetrics metrics{3, 2.5, NAN, 1e-3, 0.5, 1024, uint64_t{1} << 40, 0, {}};
  EXPECT_EQ(toJson(metrics), R"({"step":3,"loss":2.5,"grad_norm":null,"lr":0.001,)"
                             R"("step_seconds":0.5,"tokens_per_second":1024.0,)"
                             R"("peak_bytes":1099511627776,"skipped_steps":0})");
  metrics.skippedSteps = 2;
  metrics.lossScale = 32768;
  EXPECT_TRUE(contains(toJson(metrics), R"("skipped_steps":2,"loss_scale":32768.0})"));
  metrics.waitSeconds = {0.25, 0};
  EXPECT_TRUE(contains(toJson(metrics), R"("loss_scale":32768.0,"wait_seconds":[0.25,0.0]})"));
}

TEST(StepMetrics, MetricsOfTheModelAreOneObject) {
  StepMetrics metrics{.step = 1, .waitSeconds = {0.5}};
  EXPECT_FALSE(contains(toJson(metrics), "model"));
  EXPECT_FALSE(contains(toJson(metrics), "expert_imbalance"));
  EXPECT_FALSE(contains(toJson(metrics), "dropped_tokens"));
  metrics.expertImbalance = 1.25;
  metrics.droppedTokens = 3;
  metrics.ofModel = {{.name = "expert_tokens", .of = "h.0.mlp", .elements = {5, 3}},
                     {.name = "balance", .of = "", .elements = {2.5}, .isScalar = true},
                     {.name = "expert_tokens", .of = "h.1.mlp", .elements = {4, 4}},
                     {.name = "lost", .of = "h.0", .elements = {7}, .isScalar = true},
                     {.name = "sums", .of = "", .elements = {NAN, INFINITY, -0.5, -2}},
                     {.name = "one", .of = "", .elements = {6}}};
  // Whole numbers are counts. A tensor of one element is a list.
  EXPECT_TRUE(
      contains(toJson(metrics),
               R"("expert_imbalance":1.25,"dropped_tokens":3,"wait_seconds":[0.5],"model":{)"
               R"("expert_tokens":{"h.0.mlp":[5,3],"h.1.mlp":[4,4]},"balance":2.5,)"
               R"("lost":{"h.0":7},"sums":[null,null,-0.5,-2],)"
               R"("one":[6]}})"));
}

TEST(StepMetrics, HaveNamesOfTheirOwn) {
  std::set<std::string> names, tags;
  for (const Metric &metric : allMetrics()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_TRUE(tags.insert(metric.tag).second) << metric.tag;
    EXPECT_NE(metric.help, std::string());
  }
}

} // namespace stepMetricsTest
