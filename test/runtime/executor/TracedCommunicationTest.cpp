//===- TracedCommunicationTest.cpp - Tests of hidden communication --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/TracedCommunication.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/TestPlans.h"
#include "test/lib/plans/TrainStep.h"

#include <gtest/gtest.h>

namespace tracedCommunicationTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

CommunicationSpans::TimePoint at(int milliseconds) {
  return CommunicationSpans::TimePoint(std::chrono::milliseconds(milliseconds));
}

} // namespace

TEST(TracedCommunication, TimeOfALateDeviceIsNotMoving) {
  // The second device comes 4 ms late. Then bytes move for 6 ms. The first device waits during 2 ms
  // of that time, the second does not wait at all.
  std::vector<CommunicationSpans> devices(2);
  devices[0].calls = {{"permute", "0", at(0), at(10)}};
  devices[0].waits = {{at(1), at(2)}, {at(3), at(5)}, {at(9), at(12)}};
  devices[1].calls = {{"permute", "0", at(4), at(10)}};
  std::vector<CommunicationTime> times = sumCommunication(devices);
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times[0].name, "permute");
  EXPECT_EQ(times[0].calls, 2u);
  EXPECT_DOUBLE_EQ(times[0].seconds, 0.016);
  EXPECT_DOUBLE_EQ(times[0].movingSeconds, 0.012);
  EXPECT_DOUBLE_EQ(times[0].exposedSeconds, 0.002);
  EXPECT_DOUBLE_EQ(times[0].hiddenShare(), 1 - 2.0 / 12);
}

TEST(TracedCommunication, OtherCollectivesAndMessagesStandAlone) {
  // Another collective of the same name begins later, and is no part of the first. The message
  // moves from its begin.
  std::vector<CommunicationSpans> devices(1);
  devices[0].calls = {{"all_reduce", "0", at(0), at(2)},
                      {"all_reduce", "1", at(20), at(23)},
                      {"send", "", at(30), at(70)}};
  devices[0].waits = {{at(0), at(2)}, {at(40), at(50)}};
  std::vector<CommunicationTime> times = sumCommunication(devices);
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].name, "send");
  EXPECT_DOUBLE_EQ(times[0].hiddenShare(), 0.75);
  EXPECT_EQ(times[1].calls, 2u);
  EXPECT_DOUBLE_EQ(times[1].movingSeconds, 0.005);
  EXPECT_DOUBLE_EQ(times[1].exposedSeconds, 0.002);
}

TEST(TracedCommunication, WithoutCommunicationThereIsNoTime) {
  EXPECT_TRUE(sumCommunication({}).empty());
  std::vector<CommunicationSpans> devices(1);
  devices[0].waits = {{at(0), at(2)}};
  EXPECT_TRUE(sumCommunication(devices).empty());
}

TEST(TracedCommunication, NothingHidesACollectiveOfTheComputeQueue) {
  SessionOptions options;
  options.traceSteps = 2;
  auto session = Session::create(overlapPlan(false), createFakeBackend(), options);
  ASSERT_OK(session);
  ASSERT_OK((*session)->initializeStates(1));
  for (int step = 0; step < 3; ++step)
    ASSERT_OK(trainStep(**session, 0));
  std::vector<CommunicationTime> times = tracedCommunication(**session);
  ASSERT_FALSE(times.empty());
  for (const CommunicationTime &time : times) {
    EXPECT_EQ(time.calls % (2 * 4), 0u) << time.name; // steps and devices
    EXPECT_GT(time.movingSeconds, 0) << time.name;
    EXPECT_LE(time.movingSeconds, time.seconds) << time.name;
    EXPECT_DOUBLE_EQ(time.exposedSeconds, time.movingSeconds) << time.name;
  }
}

} // namespace tracedCommunicationTest
