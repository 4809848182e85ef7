//===- ArenaOffsetsTest.cpp - Offsets for buffers ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/ArenaOffsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace arenaOffsetsTest {

using namespace dtc;

static bool overlap(const LiveRange &a, int64_t aOffset, const LiveRange &b, int64_t bOffset) {
  bool inTime = a.first <= b.last && b.first <= a.last;
  bool inSpace = aOffset < bOffset + b.bytes && bOffset < aOffset + a.bytes;
  return inTime && inSpace;
}

TEST(ArenaOffsets, ReusesWhatIsFree) {
  // A buffer, a second one that begins when the first has ended, and a third that lives throughout.
  ArenaOffsets plan = assignOffsets({{64, 0, 1}, {64, 2, 3}, {128, 0, 3}});
  EXPECT_EQ(plan.arenaBytes, 192);
  EXPECT_EQ(plan.lowerBound, 192);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
}

TEST(ArenaOffsets, BuffersOfOneInstantAreDisjoint) {
  ArenaOffsets plan = assignOffsets({{64, 1, 1}, {64, 1, 1}});
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
}

TEST(ArenaOffsets, EmptyBuffersTakeNothing) {
  EXPECT_EQ(assignOffsets({{0, 0, 5}, {0, 0, 5}}).arenaBytes, 0);
  EXPECT_EQ(assignOffsets({}).arenaBytes, 0);
}

TEST(ArenaOffsets, RandomBuffersNeverOverlap) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 engine(seed);
    std::vector<LiveRange> lifetimes;
    for (int count = 1 + engine() % 60; count > 0; --count) {
      int first = engine() % 40;
      lifetimes.push_back({64 * int64_t(engine() % 20), first, first + int(engine() % 20)});
    }
    ArenaOffsets plan = assignOffsets(lifetimes);
    EXPECT_GE(plan.arenaBytes, plan.lowerBound);
    for (size_t a = 0; a < lifetimes.size(); ++a) {
      EXPECT_LE(plan.offsets[a] + lifetimes[a].bytes, plan.arenaBytes);
      for (size_t b = 0; b < a; ++b)
        EXPECT_FALSE(overlap(lifetimes[a], plan.offsets[a], lifetimes[b], plan.offsets[b]))
            << a << " " << b;
    }
  }
}

} // namespace arenaOffsetsTest
