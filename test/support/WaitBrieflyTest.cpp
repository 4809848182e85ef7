//===- WaitBrieflyTest.cpp - Tests of short waits -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/WaitBriefly.h"

#include <gtest/gtest.h>

namespace waitBrieflyTest {

using namespace dtc;

TEST(WaitBriefly, SeesWhatOthersDo) {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  auto play = [&](int mine, std::chrono::milliseconds pause) {
    for (int round = 0; round < 20; ++round) {
      std::unique_lock lock(mutex);
      waitBriefly(changed, lock, [&] { return turn % 2 == mine; });
      ASSERT_TRUE(lock.owns_lock());
      EXPECT_EQ(turn, 2 * round + mine);
      lock.unlock();
      std::this_thread::sleep_for(pause); // longer than the other one stays awake
      lock.lock();
      ++turn;
      lock.unlock();
      changed.notify_all();
    }
  };
  std::thread other(play, 1, std::chrono::milliseconds(0));
  play(0, std::chrono::milliseconds(2));
  other.join();
  EXPECT_EQ(turn, 40);
}

TEST(WaitBriefly, DoesNotWaitForWhatIsThere) {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  waitBriefly(changed, lock, [] { return true; });
  EXPECT_TRUE(lock.owns_lock());
}

} // namespace waitBrieflyTest
