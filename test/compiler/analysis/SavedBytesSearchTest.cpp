//===- SavedBytesSearchTest.cpp - Tests of the search for saved bytes -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/SavedBytesSearch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace savedBytesSearchTest {

using namespace dtc;

namespace {

/// The values that can be kept: plans by rising bytes, falling seconds.
struct Device {
  std::vector<SavedBytesTrial> plans;

  SavedBytesTrial at(int64_t bound) const {
    const SavedBytesTrial *best = &plans.front();
    for (const SavedBytesTrial &plan : plans)
      if (plan.kept <= bound)
        best = &plan;
    SavedBytesTrial plan = *best;
    plan.bound = bound;
    return plan;
  }
  /// The fewest seconds of all that fit; -1 if none does.
  double least(int64_t limit) const {
    double seconds = -1;
    for (const SavedBytesTrial &plan : plans)
      if (plan.arena <= limit && (seconds < 0 || plan.seconds < seconds))
        seconds = plan.seconds;
    return seconds;
  }
};

/// Steps of a KiB, each a second, in an arena that `arenaOf` gives for the KiB kept.
Device makeDevice(int steps, const std::function<int64_t(int)> &arenaOf) {
  Device device;
  for (int step = 0; step <= steps; ++step)
    device.plans.push_back({0, 1024 * step, 1024 * arenaOf(step), double(steps - step)});
  return device;
}

/// Searches to the end and returns the number of plans.
int search(const Device &device, SavedBytesSearch &keep) {
  int plans = 0;
  for (std::optional<int64_t> bound = keep.next(); bound; bound = keep.next()) {
    keep.add(device.at(*bound));
    if (++plans > 1000)
      break;
  }
  return plans;
}

} // namespace

TEST(SavedBytesSearch, KeepsAllWhereAllFits) {
  Device device = makeDevice(100, [](int step) { return 50 + step; });
  SavedBytesSearch keep(1024 * 150, 0.5);
  EXPECT_EQ(search(device, keep), 1);
  ASSERT_TRUE(keep.best());
  EXPECT_EQ(keep.best()->kept, 1024 * 100);
}

TEST(SavedBytesSearch, SaysWhenNothingFits) {
  Device device = makeDevice(100, [](int step) { return 50 + step; });
  SavedBytesSearch keep(1024 * 40, 0.5);
  EXPECT_LE(search(device, keep), 12);
  EXPECT_EQ(keep.best(), nullptr);
}

TEST(SavedBytesSearch, EndsWhereNothingKeepsLess) {
  Device device = makeDevice(100, [](int step) { return 50 + step; });
  device.plans.erase(device.plans.begin(), device.plans.begin() + 10); // these are always kept
  SavedBytesSearch keep(1024 * 55, 0.5);
  EXPECT_LE(search(device, keep), 12);
  EXPECT_EQ(keep.best(), nullptr);
}

// Saved bytes are there all at once, beside the 50 KiB of the rest.
TEST(SavedBytesSearch, TriesNoBoundThatCannotFit) {
  Device device = makeDevice(1000, [](int step) { return 50 + step; });
  SavedBytesSearch keep(1024 * 300, 0.5);
  std::vector<int64_t> bounds;
  for (std::optional<int64_t> bound = keep.next(); bound; bound = keep.next()) {
    bounds.push_back(*bound);
    keep.add(device.at(*bound));
  }
  ASSERT_GT(bounds.size(), 2u);
  for (size_t i = 1; i < bounds.size(); ++i)
    EXPECT_LE(bounds[i], 1024 * (300 - 37));
  EXPECT_EQ(keep.best()->kept, 1024 * 250);
}

// The first plan that fits fills all but a hundredth: another one is worth five times as much.
TEST(SavedBytesSearch, IsContentNearTheLimit) {
  Device device = makeDevice(1000, [](int step) { return 50 + step + (step % 4) * 2; });
  SavedBytesSearch near(1024 * 1000, 8), far(1024 * 1000, 1.6);
  int plans = search(device, near);
  EXPECT_LE(plans, search(device, far));
  ASSERT_TRUE(near.best());
  EXPECT_GT(near.best()->arena, 1024 * 990);
  EXPECT_LE(near.best()->seconds, device.least(1024 * 1000) + 40);
}

// Where the arena follows what is kept, few plans are enough: some find the step, the others that
// none lies before the next one, which is halved down to the alignment of buffers.
TEST(SavedBytesSearch, FindsALine) {
  for (int limit = 50; limit < 150; ++limit) {
    SCOPED_TRACE(limit);
    Device device = makeDevice(100, [](int step) { return 50 + step; });
    SavedBytesSearch keep(1024 * limit, 0.5);
    EXPECT_LE(search(device, keep), 12);
    ASSERT_TRUE(keep.best());
    EXPECT_EQ(keep.best()->seconds, device.least(1024 * limit));
  }
}

// Recomputed values take room: the arena is smallest in between.
TEST(SavedBytesSearch, FindsAValley) {
  Device device = makeDevice(200, [](int step) { return 100 + std::abs(step - 60) / 2; });
  for (int limit : {102, 110, 120, 129, 140, 160}) {
    SCOPED_TRACE(limit);
    SavedBytesSearch keep(1024 * limit, 2);
    EXPECT_LE(search(device, keep), 20);
    ASSERT_TRUE(keep.best());
    EXPECT_LE(keep.best()->seconds, device.least(1024 * limit) + 2);
  }
}

// The arena goes up and down around a line, by up to a tenth.
TEST(SavedBytesSearch, ComesNearTheBestOfRandomArenas) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 engine(seed);
    std::vector<int> noise(401);
    for (int &each : noise)
      each = int(engine() % 40);
    Device device = makeDevice(400, [&](int step) { return 100 + step + noise[step]; });
    int64_t limit = 1024 * (150 + int64_t(engine() % 300));
    SavedBytesSearch keep(limit, 4);
    EXPECT_LE(search(device, keep), 60);
    ASSERT_TRUE(keep.best());
    EXPECT_LE(keep.best()->arena, limit);
    EXPECT_LE(keep.best()->seconds, device.least(limit) + 40);
  }
}

// Where two plans keep the same, the larger arena counts.
TEST(SavedBytesSearch, BelievesTheWorse) {
  SavedBytesSearch keep(100, 0);
  keep.add({50, 50, 90, 1});
  ASSERT_TRUE(keep.best());
  keep.add({60, 50, 110, 1});
  EXPECT_EQ(keep.best(), nullptr);
}

// The plan that keeps least says whether one that fits is likely.
TEST(SavedBytesSearch, IsHopelessFarAboveTheLimit) {
  SavedBytesSearch keep(100, 0);
  EXPECT_FALSE(keep.isHopeless());
  keep.add({1000, 80, 300, 0});
  EXPECT_FALSE(keep.isHopeless()); // less can be kept
  keep.add({20, 20, 150, 5});
  EXPECT_FALSE(keep.isHopeless()); // less than 20 has not been tried
  keep.add({0, 5, 105, 8});
  EXPECT_FALSE(keep.isHopeless()); // near
  SavedBytesSearch far(100, 0);
  far.add({1000, 80, 300, 0});
  far.add({0, 5, 111, 8});
  EXPECT_TRUE(far.isHopeless());
  far.add({30, 30, 90, 6});
  EXPECT_FALSE(far.isHopeless());
}

// So do several that keep more and need no less.
TEST(SavedBytesSearch, IsHopelessWhereMoreNeedsNoLess) {
  SavedBytesSearch keep(100, 0), falling(100, 0);
  keep.add({0, 5, 105, 8});
  falling.add({0, 5, 105, 8});
  for (int64_t kept : {10, 20, 30}) {
    keep.add({kept, kept, 105 + kept, 7});
    falling.add({kept, kept, 104, 7});
    EXPECT_FALSE(keep.isHopeless()) << kept; // not many
  }
  keep.add({40, 40, 105, 6});
  falling.add({40, 40, 104, 6});
  EXPECT_TRUE(keep.isHopeless());
  EXPECT_FALSE(falling.isHopeless());
  keep.add({50, 50, 100, 5});
  EXPECT_FALSE(keep.isHopeless()); // it fits
}

} // namespace savedBytesSearchTest
