//===- MetricsFileTest.cpp - Metrics as lines of JSON ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metrics/MetricsFile.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace metricsFileTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

TEST(MetricsFile, ReachTheFileLineByLine) {
  TempDir dir;
  dir.write("m.jsonl", "old");
  auto writer = MetricsFile::open(dir.path("m.jsonl"));
  ASSERT_OK(writer);
  EXPECT_EQ(dir.read("m.jsonl"), "old");
  ASSERT_OK((*writer)->begin(0));
  EXPECT_EQ(dir.read("m.jsonl"), "");
  for (int64_t step = 1; step <= 3; ++step) {
    StepMetrics metrics;
    metrics.step = step;
    ASSERT_OK((*writer)->write(metrics));
    std::string content = dir.read("m.jsonl");
    EXPECT_EQ(std::count(content.begin(), content.end(), '\n'), step);
    EXPECT_EQ(content.back(), '\n');
    ASSERT_OK((*writer)->begin(0)); // once only
  }
  EXPECT_ERROR(MetricsFile::open(dir.path("no/m.jsonl")), "no/m.jsonl: cannot write");
}

TEST(MetricsFile, AFullDiskIsAnError) {
  auto writer = MetricsFile::open("/dev/full");
  if (!writer)
    GTEST_SKIP() << "there is no /dev/full";
  EXPECT_ERROR((*writer)->write(StepMetrics()), "/dev/full: cannot write: No space left");
}

} // namespace metricsFileTest
