//===- PermutationTest.cpp - Tests of permutations ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Permutation.h"

#include "test/lib/RandomCases.h"

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace permutationTest {

using namespace dtc;
using namespace dtc::runtime;

namespace {

std::vector<uint64_t> orderOf(uint64_t seed, uint64_t epoch, uint64_t count) {
  std::vector<uint64_t> order(count);
  for (uint64_t index = 0; index < count; ++index)
    order[index] = permuted(seed, epoch, index, count);
  return order;
}

/// Whether each number below its size is in it once.
::testing::AssertionResult isPermutation(const std::vector<uint64_t> &order) {
  std::vector<bool> seen(order.size());
  for (uint64_t value : order) {
    if (value >= order.size())
      return ::testing::AssertionFailure() << value << " of " << order.size();
    if (seen[value])
      return ::testing::AssertionFailure() << value << " twice, of " << order.size();
    seen[value] = true;
  }
  return ::testing::AssertionSuccess();
}

} // namespace

TEST(Permutation, HasEachNumberOnce) {
  for (uint64_t count = 1; count <= 300; ++count)
    ASSERT_TRUE(isPermutation(orderOf(1, 0, count)));
  // About the powers of four, where a Feistel network gets another bit in each half.
  for (uint64_t power : {1024, 4096, 16384, 65536})
    for (uint64_t count : {power - 1, power, power + 1})
      ASSERT_TRUE(isPermutation(orderOf(2, 5, count)));
}

TEST(Permutation, HasEachNumberOnceForAnySeedAndEpoch) {
  dtc::test::forEachRandomCase(100, [](uint64_t seed) {
    std::mt19937_64 random(seed);
    uint64_t count = 1 + random() % (uint64_t{1} << random() % 15);
    ASSERT_TRUE(isPermutation(orderOf(random(), random(), count)));
  });
}

TEST(Permutation, LargeRangesStayInRange) {
  for (uint64_t count : {uint64_t{1} << 62, (uint64_t{1} << 62) - 1, uint64_t{5'000'000'000'000}}) {
    std::set<uint64_t> seen;
    for (uint64_t index = 0; index < 1000; ++index) {
      uint64_t value = permuted(3, 4, count - 1 - index, count);
      EXPECT_LT(value, count);
      EXPECT_TRUE(seen.insert(value).second);
    }
  }
}

TEST(Permutation, EpochsAndSeedsHaveOrdersOfTheirOwn) {
  auto equal = [](const std::vector<uint64_t> &a, const std::vector<uint64_t> &b) {
    size_t count = 0;
    for (size_t i = 0; i < a.size(); ++i)
      count += a[i] == b[i];
    return count;
  };
  std::vector<uint64_t> order = orderOf(1, 0, 1000), identity(1000);
  for (uint64_t i = 0; i < 1000; ++i)
    identity[i] = i;
  EXPECT_EQ(order, orderOf(1, 0, 1000));
  // Two random orders have one number in the same place, on average.
  EXPECT_LT(equal(order, identity), 10u);
  EXPECT_LT(equal(order, orderOf(1, 1, 1000)), 10u);
  EXPECT_LT(equal(order, orderOf(2, 0, 1000)), 10u);
  EXPECT_LT(equal(order, orderOf(1, uint64_t{1} << 32, 1000)), 10u);
  EXPECT_LT(equal(order, orderOf(1 + (uint64_t{1} << 32), 0, 1000)), 10u);
}

TEST(Permutation, AllOrdersOfAFewNumbersComeUpEquallyOften) {
  // The number of values, and the chi-squared quantile of 0.9999 with their orders less one as its
  // degrees of freedom.
  for (auto [count, orders, limit] : {std::tuple(2, 2, 15.2), std::tuple(3, 6, 25.8),
                                      std::tuple(4, 24, 56.0), std::tuple(5, 120, 184.7)}) {
    constexpr int each = 100;
    std::map<std::vector<uint64_t>, int> seen;
    for (int epoch = 0; epoch < orders * each; ++epoch)
      ++seen[orderOf(9, static_cast<uint64_t>(epoch), static_cast<uint64_t>(count))];
    EXPECT_EQ(seen.size(), static_cast<size_t>(orders));
    double sum = 0;
    for (const auto &[order, times] : seen)
      sum += static_cast<double>((times - each) * (times - each)) / each;
    EXPECT_LT(sum, limit) << count << " numbers";
  }
}

TEST(Permutation, ANumberIsEquallyLikelyInEachPlace) {
  constexpr uint64_t count = 37, epochs = 37 * 100;
  std::vector<int> places(count);
  for (uint64_t epoch = 0; epoch < epochs; ++epoch)
    ++places[permuted(11, epoch, 5, count)];
  double sum = 0;
  for (int times : places)
    sum += (times - 100.0) * (times - 100.0) / 100;
  EXPECT_LT(sum, 76.4); // the quantile of 0.9999 of 36 degrees of freedom
}

} // namespace permutationTest
