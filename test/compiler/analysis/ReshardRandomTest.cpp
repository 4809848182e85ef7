//===- ReshardRandomTest.cpp - Random reshards ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// DTC_RANDOM_SEED=n runs the one case of that seed and prints it; DTC_RANDOM_CASES=n sets the
// number of cases.
//
//===----------------------------------------------------------------------===//

#include "test/compiler/analysis/ReshardReference.h"
#include "test/lib/RandomCases.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>

namespace reshardRandomTest {

using namespace dtc;
using namespace dtc::testing;

namespace {

/// Chooses in a way that is the same with every standard library.
class Chooser {
public:
  explicit Chooser(uint64_t seed) : engine(seed * 2654435761u + 1) {}
  size_t below(size_t count) { return engine() % count; }
  template <typename T> T of(std::initializer_list<T> list) {
    return list.begin()[below(list.size())];
  }

private:
  std::mt19937_64 engine;
};

} // namespace

/// Layouts use each axis once; with `like`, partial axes are some of its.
static Layout makeLayout(Chooser &choose, const LinkedMesh &mesh, size_t rank, const Layout *like) {
  AxisList axes;
  for (unsigned axis = 0; axis < mesh.axes.size(); ++axis)
    axes.insert(axes.begin() + choose.below(axes.size() + 1), axis);
  Layout layout = Layout::replicated(int64_t(rank));
  bool allPlaced = rank && choose.below(3) == 0;
  for (unsigned axis : axes) {
    bool mayBePartial = like ? like->isPartialOver(axis) : !mesh.isTemporal(axis);
    if (mayBePartial && choose.below(like ? 3 : 4) == 0)
      layout.partial.push_back(axis);
    else if (size_t where = choose.below(rank + (allPlaced ? 0 : 1)); rank && where < rank)
      layout.dims[where].push_back(axis);
  }
  llvm::sort(layout.partial);
  return layout;
}

/// Up to `maxAxes` axes and `maxDevices` devices.
static ReshardCase makeCase(uint64_t seed, size_t maxAxes, int64_t maxDevices) {
  Chooser choose(seed);
  ReshardCase c;
  size_t count = maxAxes > 4 ? maxAxes : 1 + choose.below(maxAxes);
  int64_t devices = 1;
  for (size_t axis = 0; axis < count; ++axis) {
    int64_t size = choose.of<int64_t>({1, 2, 2, 2, 3, 4});
    if (devices * size > maxDevices)
      size = devices * 2 > maxDevices ? 1 : 2;
    devices *= size;
    c.mesh.axes.push_back({std::string(1, char('a' + axis)), size});
    if (seed % 2)
      c.mesh.axes.back().bandwidth = choose.of({5e9, 25e9, 100e9});
    if (seed % 3 == 0)
      c.mesh.axes.back().latency = choose.of({0., 1e-6, 1e-5});
  }
  if (LinkedAxis &axis = c.mesh.axes[choose.below(count)]; seed % 5 == 0)
    axis.temporal = axis.size > 1;
  size_t rank = choose.below(5);
  for (size_t dim = 0; dim < rank; ++dim) {
    size_t largest = rank < 3 ? 13 : 7 - rank;
    c.shape.push_back(choose.below(2) ? choose.of<int64_t>({2, 4, 4, rank < 3 ? 16 : 6})
                                      : int64_t(1 + choose.below(largest)));
  }
  c.elementBytes = choose.of<int64_t>({4, 4096, 1 << 20, 1 << 26});
  c.from = makeLayout(choose, c.mesh, rank, nullptr);
  c.to = makeLayout(choose, c.mesh, rank, &c.from);
  return c;
}

static bool hasTemporal(const LinkedMesh &mesh) { return mesh.temporalAxis().has_value(); }

/// Compares with the reference; returns the seconds that planning took.
static double checkCase(const ReshardCase &c, bool mayCompareOptimum) {
  auto start = std::chrono::steady_clock::now();
  auto plan = findReshardSteps(c.mesh, c.elementBytes, c.shape, c.from, c.to);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (mayCompareOptimum && c.mesh.axes.size() <= 3 && c.shape.size() <= 2) {
    double least = leastSeconds(c);
    EXPECT_EQ(plan.has_value(), std::isfinite(least));
    if (plan) {
      EXPECT_NEAR(plan->seconds, least, least * 1e-9);
    }
  }
  if (!hasTemporal(c.mesh)) {
    EXPECT_TRUE(plan);
  }
  if (plan) {
    EXPECT_EQ(simulate(c, plan->steps), "");
    double simple = gatherThenSliceSeconds(c);
    EXPECT_LE(plan->seconds, simple * (1 + 1e-9));
  }
  return took.count();
}

static void run(uint64_t usual, size_t maxAxes, int64_t maxDevices) {
  double slowest = 0, total = 0;
  uint64_t slowestSeed = 0;
  uint64_t count = dtc::test::forEachRandomCase(usual, [&](uint64_t seed, bool alone) {
    ReshardCase c = makeCase(seed, maxAxes, maxDevices);
    SCOPED_TRACE(c.str());
    if (alone)
      printf("%s\n", c.str().c_str());
    double seconds = checkCase(c, maxAxes <= 4);
    total += seconds;
    if (seconds > slowest) {
      slowest = seconds;
      slowestSeed = seed;
    }
  });
  if (count > 0)
    printf("%llu plans: %.1f us on average, %.0f us for DTC_RANDOM_SEED=%llu\n",
           static_cast<unsigned long long>(count), total / double(count) * 1e6, slowest * 1e6,
           static_cast<unsigned long long>(slowestSeed));
}

TEST(ReshardRandom, PlansAreRightAndCheapest) { run(5000, 4, 16); }

TEST(ReshardRandom, PlansOnLargeMeshesAreRight) { run(100, 6, 64); }

} // namespace reshardRandomTest
