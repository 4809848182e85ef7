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

TEST(StepMetrics, HaveNamesOfTheirOwn) {
  std::set<std::string> names, tags;
  for (const Metric &metric : allMetrics()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_TRUE(tags.insert(metric.tag).second) << metric.tag;
    EXPECT_NE(metric.help, std::string());
  }
}

} // namespace stepMetricsTest
