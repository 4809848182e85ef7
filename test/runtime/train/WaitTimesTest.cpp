//===- WaitTimesTest.cpp - Waiting times and stragglers -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/WaitTimes.h"

#include <gtest/gtest.h>
#include <vector>

namespace waitTimesTest {

using namespace dtc;
using namespace dtc::runtime;

TEST(WaitTimes, NamesTheExtremes) {
  WaitTimes times = waitTimesOf(std::vector{0.5, 3.25, 0.125, 3.0});
  EXPECT_EQ(times.most, 3.25);
  EXPECT_EQ(times.least, 0.125);
  EXPECT_EQ(times.mostProcess, 1);
  EXPECT_EQ(times.leastProcess, 2);
}

TEST(WaitTimes, OfEqualOnesTheFirst) {
  WaitTimes times = waitTimesOf(std::vector{2.5, 2.5, 2.5});
  EXPECT_EQ(times.most, 2.5);
  EXPECT_EQ(times.least, 2.5);
  EXPECT_EQ(times.mostProcess, 0);
  EXPECT_EQ(times.leastProcess, 0);
}

TEST(WaitTimes, SaysWhoIsSlow) {
  std::vector<std::string> hosts = {"a", "b", "c"};
  EXPECT_EQ(formatWaitTimes({4, 0.5, 0, 2}, 10, hosts),
            "process 2 on c is slow: it waited 0.500 s for the others, and process 0 on a 4.000 s, "
            "of 10.000 s in steps\n");
  // Of a short run nothing can be said.
  EXPECT_TRUE(formatWaitTimes({0.05, 0, 0, 2}, 0.1, hosts).starts_with("processes waited 0.000 s"));
  EXPECT_EQ(formatWaitTimes({1.25, 0.5, 0, 2}, 10, hosts),
            "processes waited 0.500 s (process 2 on c) to 1.250 s (process 0 on a) for each other, "
            "of 10.000 s in steps\n");
}

} // namespace waitTimesTest
