//===- ProgressReportTest.cpp - Tests of the progress lines of a run ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ProgressReport.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <cmath>
#include <gtest/gtest.h>

namespace progressReportTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

TEST(ProgressReport, APipeGetsPlainLines) {
  TempDir dir;
  std::FILE *file = std::fopen(dir.path("log").c_str(), "w");
  ASSERT_NE(file, nullptr);
  {
    ProgressReport report(file, 10, 4, "tokens");
    for (int64_t step = 1; step <= 10; ++step) {
      StepMetrics metrics;
      metrics.step = step;
      metrics.loss = 0.5;
      metrics.seconds = 2;
      metrics.tokensPerSecond = 12345;
      metrics.peakBytes = 2048;
      report.step(metrics);
    }
  }
  std::fclose(file);
  EXPECT_EQ(dir.read("log"), "step 1/10  loss 0.500000  12.3k tokens/s  2.0 KiB  eta 18s\n"
                             "step 4/10  loss 0.500000  12.3k tokens/s  2.0 KiB  eta 12s\n"
                             "step 8/10  loss 0.500000  12.3k tokens/s  2.0 KiB  eta 4s\n"
                             "step 10/10  loss 0.500000  12.3k tokens/s  2.0 KiB  eta 0s\n");
}

TEST(ProgressReport, TensorsAsText) {
  HostTensor scalar(TensorType{DType::F32, {}});
  *scalar.as<float>() = 1.5;
  EXPECT_EQ(formatTensor("loss", scalar), "loss: f32[] = 1.5");
  HostTensor brain(TensorType{DType::BF16, {}});
  setElement(brain, 0, -2.5);
  EXPECT_EQ(formatTensor("loss", brain), "loss: bf16[] = -2.5");
  HostTensor small(TensorType{DType::I32, {3}});
  small.as<int32_t>()[1] = -4;
  EXPECT_EQ(formatTensor("ids", small), "ids: i32[3] = [0, -4, 0]");
  EXPECT_EQ(formatTensor("none", HostTensor(TensorType{DType::F32, {0}})), "none: f32[0] = []");
  HostTensor large(TensorType{DType::F64, {2, 8}});
  large.as<double>()[15] = 16;
  EXPECT_EQ(formatTensor("x", large),
            "x: f64[2,8] = [0, 0, 0, 0, 0, 0, 0, 0, ...]  min 0  max 16  mean 1");
}

TEST(ProgressReport, ProfileTable) {
  std::string table = formatProfile({{"einsum", 10, 0.75, 1.5e9}, {"all_reduce", 2, 0.25, 0}});
  EXPECT_EQ(table, "kernel          calls           ms   share    GFLOP/s\n"
                   "einsum             10      750.000   75.0%       2.00\n"
                   "all_reduce          2      250.000   25.0%           \n");
}

} // namespace progressReportTest
