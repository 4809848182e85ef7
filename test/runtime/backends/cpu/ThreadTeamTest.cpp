//===- ThreadTeamTest.cpp - Tests of the threads of kernels ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/ThreadTeam.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>
#include <vector>

namespace dtc::runtime::threadTeamTest {
namespace {

using cpu::ThreadTeam;

template <typename Body> void runOn(ThreadTeam &team, int parts, const Body &body) {
  team.run(
      parts, [](const void *context, int part) { (*static_cast<const Body *>(context))(part); },
      &body);
}

/// How often each part is run, in a job that writes without synchronization of its own.
std::vector<int> countsOf(ThreadTeam &team, int parts) {
  std::vector<int> counts(static_cast<size_t>(parts));
  runOn(team, parts, [&](int part) { ++counts[static_cast<size_t>(part)]; });
  return counts;
}

TEST(ThreadTeam, RunsEachPartOnce) {
  ThreadTeam team;
  // Jobs of many sizes in turn: a late worker finds that of its bell, a later one, or none.
  for (int round = 0; round < 300; ++round)
    for (int parts : {1, 2, 3, 5, 8})
      ASSERT_EQ(countsOf(team, parts), std::vector<int>(static_cast<size_t>(parts), 1))
          << "round " << round;
}

TEST(ThreadTeam, HasMorePartsThanThreads) {
  for (int workers : {0, 1, 2}) {
    ThreadTeam team(workers);
    EXPECT_FALSE(team.grow(workers + 1));
    EXPECT_EQ(countsOf(team, 7), std::vector<int>(7, 1));
  }
}

TEST(ThreadTeam, SleepingWorkersWake) {
  ThreadTeam team;
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(countsOf(team, 4), std::vector<int>(4, 1));
  }
}

TEST(ThreadTeam, PartsRunAtTheSameTime) {
  ThreadTeam team;
  std::atomic<int> here{0};
  runOn(team, 3, [&](int) {
    ++here;
    while (here < 3)
      std::this_thread::yield();
  });
  EXPECT_EQ(here, 3);
}

TEST(ThreadTeam, JobsWithinPartsRunInOrder) {
  ThreadTeam team;
  std::vector<std::vector<int>> orders(3);
  runOn(team, 3, [&](int part) {
    std::vector<int> &own = orders[static_cast<size_t>(part)];
    runOn(ThreadTeam::ofThisThread(), 4, [&](int inner) { own.push_back(inner); });
  });
  EXPECT_EQ(orders, std::vector<std::vector<int>>(3, {0, 1, 2, 3}));
}

TEST(ThreadTeam, EachThreadHasItsOwn) {
  std::vector<int> good(6);
  std::vector<std::thread> devices;
  for (size_t device = 0; device < good.size(); ++device)
    devices.emplace_back([&, device] {
      for (int round = 0; round < 200; ++round)
        good[device] += countsOf(ThreadTeam::ofThisThread(), 3) == std::vector<int>(3, 1);
    });
  for (std::thread &device : devices)
    device.join();
  EXPECT_EQ(good, std::vector<int>(6, 200));
}

TEST(ThreadTeam, WaitsForPartsThatTakeLong) {
  // The caller sleeps while workers compute.
  ThreadTeam team;
  std::vector<int> done(3);
  runOn(team, 3, [&](int part) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * part));
    done[static_cast<size_t>(part)] = 1;
  });
  EXPECT_EQ(std::accumulate(done.begin(), done.end(), 0), 3);
}

} // namespace
} // namespace dtc::runtime::threadTeamTest
