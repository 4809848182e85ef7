//===- OuterRoundTest.cpp - The time of a round of outer steps ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/OuterRound.h"

#include <gtest/gtest.h>

namespace outerRoundTest {

using namespace dtc;

/// Two fragments that are applied `delay` steps after they are sent.
static OuterFragments scheduleOf(int64_t delay) {
  OuterFragments schedule;
  schedule.entries.resize(2);
  schedule.delay = delay;
  return schedule;
}

/// Steps of 1 s; a fragment takes `send` seconds to send, and a quarter before and after.
static OuterStepTimes timesWith(double send) {
  OuterStepTimes times;
  times.step = 1;
  times.fragments.assign(2, {0.25, send, 0.25});
  return times;
}

TEST(OuterRound, WaitsForAnOuterStepOfAllParameters) {
  OuterStepTimes times;
  times.step = 0.5;
  times.whole = 3;
  OuterRound round = followOuterRound({}, times, 10);
  EXPECT_EQ(round.steps, 10);
  EXPECT_DOUBLE_EQ(round.seconds, 8);
  EXPECT_DOUBLE_EQ(round.exposed, 3);
  EXPECT_DOUBLE_EQ(round.hidden(), 0);
}

TEST(OuterRound, HidesWhatIsSentBesideSteps) {
  // Both fragments are taken and applied in 1 s; three seconds of sending fit beside 4 steps.
  OuterRound round = followOuterRound(scheduleOf(4), timesWith(3), 10);
  EXPECT_DOUBLE_EQ(round.seconds, 11);
  EXPECT_DOUBLE_EQ(round.outerSeconds, 7);
  EXPECT_DOUBLE_EQ(round.hidden(), 6);
}

TEST(OuterRound, WaitsForTheRestOfWhatIsSent) {
  // Of each 6 s four are beside steps.
  OuterRound round = followOuterRound(scheduleOf(4), timesWith(6), 10);
  EXPECT_DOUBLE_EQ(round.seconds, 15);
  EXPECT_DOUBLE_EQ(round.exposed, 5);
  // None are where the fragment is applied at once.
  EXPECT_DOUBLE_EQ(followOuterRound(scheduleOf(0), timesWith(6), 10).seconds, 23);
}

TEST(OuterRound, WaitsBeforeAnotherFragmentIsApplied) {
  // A fragment is applied 9 steps later, but the other one 4 steps after it is sent.
  EXPECT_DOUBLE_EQ(followOuterRound(scheduleOf(9), timesWith(6), 10).exposed, 5);
  // Where they coincide, the second fragment is applied while the first is sent, and not the other
  // way round: the steps wait for 0.75 and for 1 s, and 1 s is taken before and after.
  EXPECT_DOUBLE_EQ(followOuterRound(scheduleOf(5), timesWith(6), 10).exposed, 2.75);
}

} // namespace outerRoundTest
