//===- SlotColoringTest.cpp - Tests of the assignment of slots ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/SlotColoring.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "test/lib/RandomCases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>

namespace slotColoringTest {

using namespace dtc;
using namespace dtc::test;

static bool meet(const SlotInterval &a, const SlotInterval &b) {
  return !a.isEmpty() && !b.isEmpty() && a.first <= b.last && b.first <= a.last;
}

/// The most values in use at one place, counted place by place; 1 where none is.
static int64_t mostInUse(const std::vector<SlotInterval> &intervals) {
  int64_t most = 1;
  for (const SlotInterval &at : intervals)
    if (!at.isEmpty())
      most = std::max<int64_t>(
          most, std::count_if(intervals.begin(), intervals.end(), [&](const SlotInterval &other) {
            return meet(other, {at.first, at.first});
          }));
  return most;
}

/// The fewest slots in turn by their definition.
static int64_t fewestInTurn(const std::vector<SlotInterval> &intervals) {
  int64_t slots = 1;
  for (size_t a = 0; a < intervals.size(); ++a)
    for (size_t b = a + 1; b < intervals.size(); ++b)
      if (meet(intervals[a], intervals[b]))
        slots = std::max(slots, int64_t(b - a) + 1);
  return slots;
}

static void check(const std::vector<SlotInterval> &intervals) {
  SlotColoring coloring = colorSlots(intervals);
  EXPECT_EQ(coloring.slots, mostInUse(intervals));
  ASSERT_EQ(coloring.slotOf.size(), intervals.size());
  for (size_t a = 0; a < intervals.size(); ++a) {
    EXPECT_GE(coloring.slotOf[a], 0);
    EXPECT_LT(coloring.slotOf[a], coloring.slots);
    for (size_t b = 0; b < a; ++b)
      if (meet(intervals[a], intervals[b]))
        EXPECT_NE(coloring.slotOf[a], coloring.slotOf[b]) << a << " " << b;
  }
  EXPECT_EQ(countSlotsInTurn(intervals), fewestInTurn(intervals));
  EXPECT_LE(coloring.slots, countSlotsInTurn(intervals));
}

TEST(SlotColoring, GivesTheLowestFreeSlot) {
  EXPECT_EQ(colorSlots({{0, 4}, {1, 2}, {3, 6}, {5, 7}, {6, 8}}).slotOf,
            (std::vector<int64_t>{0, 1, 1, 0, 2}));
  // Places are included: a range that ends where another begins is in its way.
  EXPECT_EQ(colorSlots({{0, 1}, {1, 2}}).slots, 2);
  EXPECT_EQ(colorSlots({{0, 1}, {2, 2}}).slots, 1);
  // Ranges that begin at one place go by their numbers.
  EXPECT_EQ(colorSlots({{1, 1}, {0, 1}, {1, 1}}).slotOf, (std::vector<int64_t>{1, 0, 2}));
}

TEST(SlotColoring, ValuesThatAreNeverInUseNeedNothing) {
  EXPECT_EQ(colorSlots({}).slots, 1);
  EXPECT_EQ(countSlotsInTurn({}), 1);
  SlotColoring coloring = colorSlots({{0, 5}, {}, {1, 5}});
  EXPECT_EQ(coloring.slots, 2);
  EXPECT_EQ(coloring.slotOf, (std::vector<int64_t>{0, 0, 1}));
}

TEST(SlotColoring, SlotsInTurnCountThoseBetween) {
  // The first and the third meet, and the second, which does not, has the slot between.
  EXPECT_EQ(countSlotsInTurn({{0, 9}, {10, 11}, {5, 6}}), 3);
  EXPECT_EQ(colorSlots({{0, 9}, {10, 11}, {5, 6}}).slots, 2);
}

TEST(SlotColoring, RandomIntervals) {
  forEachRandomCase(2000, [](uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<SlotInterval> intervals;
    int places = 1 + int(random() % 60), longest = 1 + int(random() % 30);
    for (uint64_t n = random() % 40; n > 0; --n) {
      int begin = int(random() % places);
      intervals.push_back(random() % 10 == 0
                              ? SlotInterval{}
                              : SlotInterval{begin, begin + int(random() % longest)});
    }
    check(intervals);
  });
}

/// From Forward to the last unit of each microbatch, of each of a device's stages.
static std::vector<std::vector<SlotInterval>> keptOn(const PipelineSchedule &schedule, int device) {
  std::vector<std::vector<SlotInterval>> kept(
      schedule.shape.stages(), std::vector<SlotInterval>(schedule.shape.microbatches));
  for (size_t place = 0; place < schedule.orders[device].size(); ++place) {
    const PipelineUnit &unit = schedule.orders[device][place];
    SlotInterval &interval = kept[unit.stage][unit.microbatch];
    interval.first = unit.kind == StagePass::Forward ? int(place) : interval.first;
    interval.last = int(place);
  }
  return kept;
}

// The first device of an interleaved schedule keeps p v + p - 1 (Korthikanti et al. 2022,
// arXiv:2205.05198, 4.2.3), where each stage by itself is counted at a moment of its own.
TEST(SlotColoring, StagesOfAnInterleavedScheduleShare) {
  for (auto [devices, chunks, microbatches] : {std::tuple(8, 3, 64), {4, 2, 8}, {35, 3, 280}}) {
    PipelineSchedule schedule =
        buildSchedule({devices, chunks, microbatches}, *findScheduleRule("interleaved"));
    std::vector<SlotInterval> all;
    int64_t own = 0;
    for (const auto &stage : keptOn(schedule, 0)) {
      own += stage.front().isEmpty() ? 0 : countSlotsInTurn(stage);
      all.insert(all.end(), stage.begin(), stage.end());
    }
    EXPECT_EQ(colorSlots(all).slots, devices * chunks + devices - 1);
    EXPECT_GT(own, devices * chunks + devices - 1);
  }
}

} // namespace slotColoringTest
