//===- PredictedTimesTest.cpp - Predicted times of communication -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/PredictedTimes.h"

#include <gtest/gtest.h>

namespace predictedTimesTest {

using namespace dtc;
using namespace dtc::runtime;

namespace {

plan::Plan planWith(double bandwidth, double latency) {
  plan::Plan plan;
  for (const char *name : {"dp", "pp"}) {
    plan::Axis &axis = *plan.add_axes();
    axis.set_name(name);
    axis.set_size(4);
    axis.set_bandwidth(bandwidth);
    axis.set_latency(latency);
  }
  return plan;
}

FlightOperation operation(std::optional<CollectiveKind> kind, uint64_t bytes, const char *axis) {
  FlightOperation operation;
  operation.kind = kind;
  operation.bytes = bytes;
  operation.axes = {axis};
  return operation;
}

} // namespace

TEST(PredictedTimes, ByTheLinksOfThePlan) {
  PredictTime predict = predictTimes(planWith(1e9, 1e-3));
  // A ring: each of four sends twice three quarters, in six steps.
  EXPECT_NEAR(predict(operation(CollectiveKind::AllReduce, 4'000'000, "dp")), 6e-3 + 6e-3, 1e-9);
  EXPECT_NEAR(predict(operation(std::nullopt, 4'000'000, "pp")), 4e-3 + 1e-3, 1e-9);
}

TEST(PredictedTimes, AssumedWhereThePlanHasNoLinks) {
  PredictTime predict = predictTimes(planWith(0, 0));
  EXPECT_NEAR(predict(operation(std::nullopt, 25'000'000, "pp")), 1e-3 + 10e-6, 1e-9);
}

} // namespace predictedTimesTest
