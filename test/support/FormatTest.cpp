//===- FormatTest.cpp - Tests of formatted numbers ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Format.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace formatTest {

using namespace dtc;

TEST(Format, Bytes) {
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(1023), "1023 B");
  EXPECT_EQ(formatBytes(1536), "1.5 KiB");
  EXPECT_EQ(formatBytes(uint64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(formatBytes(UINT64_MAX), "16.0 EiB");
}

TEST(Format, Seconds) {
  EXPECT_EQ(formatSeconds(0.4), "0s");
  EXPECT_EQ(formatSeconds(59.6), "1m00s");
  EXPECT_EQ(formatSeconds(192), "3m12s");
  EXPECT_EQ(formatSeconds(7500), "2h05m");
  EXPECT_EQ(formatSeconds(-1), "0s");
  EXPECT_EQ(formatSeconds(NAN), "?");
}

TEST(Format, Duration) {
  EXPECT_EQ(formatDuration(0), "0 s");
  EXPECT_EQ(formatDuration(8.5e-7), "850.0 ns");
  EXPECT_EQ(formatDuration(0.00123), "1.2 ms");
  EXPECT_EQ(formatDuration(0.99999e-3), "1.0 ms");
  EXPECT_EQ(formatDuration(12345), "12345.0 s");
  EXPECT_EQ(formatDuration(INFINITY), "?");
}

TEST(Format, Shape) {
  EXPECT_EQ(formatShape(std::vector<int64_t>{}), "[]");
  EXPECT_EQ(formatShape(std::vector<int64_t>{2, 3}), "[2, 3]");
}

} // namespace formatTest
