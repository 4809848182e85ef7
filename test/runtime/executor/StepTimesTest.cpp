//===- StepTimesTest.cpp - Measured times of a step ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/StepTimes.h"

#include <gtest/gtest.h>

namespace stepTimesTest {

using namespace dtc::runtime;

namespace {

Event::TimePoint at(int seconds) { return Event::TimePoint(std::chrono::seconds(seconds)); }

/// The time of a wait for a transfer whose bytes moved from second 10 to second 20.
TransferTime timeOfAWait(int begin, int end) {
  TransferResult moved;
  moved.begin = at(10);
  moved.end = at(20);
  return TransferTime::of(moved, at(begin), at(end));
}

TEST(StepTimes, TimeOfATransfer) {
  EXPECT_EQ(timeOfAWait(12, 20).calls, 1u);
  EXPECT_EQ(timeOfAWait(12, 20).seconds, 10);
  EXPECT_EQ(timeOfAWait(12, 20).waitedSeconds, 8);
}

TEST(StepTimes, TheExposedTimeOfATransferIsWhatTheWaitAndTheMovingHaveInCommon) {
  EXPECT_EQ(timeOfAWait(25, 26).exposedSeconds, 0); // it was over when the wait began
  EXPECT_EQ(timeOfAWait(12, 20).exposedSeconds, 8);
  EXPECT_EQ(timeOfAWait(12, 21).exposedSeconds, 8); // waking up took a second
  EXPECT_EQ(timeOfAWait(2, 20).exposedSeconds, 10); // nothing moved in the first eight seconds
  EXPECT_EQ(timeOfAWait(2, 20).waitedSeconds, 18);
  EXPECT_EQ(timeOfAWait(2, 5).exposedSeconds, 0); // a send that waits for nobody
}

TEST(StepTimes, HiddenShareOfTransfers) {
  EXPECT_EQ(TransferTime().hiddenShare(), 0);
  EXPECT_EQ(timeOfAWait(25, 26).hiddenShare(), 1);
  EXPECT_EQ(timeOfAWait(10, 20).hiddenShare(), 0);
  TransferTime sum = timeOfAWait(25, 26);
  sum += timeOfAWait(15, 20);
  EXPECT_EQ(sum.calls, 2u);
  EXPECT_EQ(sum.hiddenShare(), 0.75);
}

} // namespace

} // namespace stepTimesTest
