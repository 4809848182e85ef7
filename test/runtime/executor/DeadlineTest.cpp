//===- DeadlineTest.cpp - A function that is called after a time ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Deadline.h"

#include <atomic>
#include <gtest/gtest.h>
#include <optional>

namespace deadlineTest {

using namespace dtc::runtime;

namespace {

TEST(Deadline, ExpiresOnceWhereNothingEnds) {
  std::atomic<int> calls = 0;
  std::optional<Deadline> deadline;
  deadline.emplace(std::chrono::milliseconds(1), [&] {
    ++calls;
    calls.notify_all();
  });
  calls.wait(0);
  deadline.reset();
  EXPECT_EQ(calls, 1);
}

TEST(Deadline, DoesNotExpireOnceItHasEnded) {
  std::atomic<int> calls = 0;
  for (int i = 0; i < 100; ++i)
    Deadline ended(std::chrono::hours(1), [&] { ++calls; });
  EXPECT_EQ(calls, 0);
}

} // namespace

} // namespace deadlineTest
