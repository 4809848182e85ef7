//===- RandomCasesTest.cpp - Seeds of random tests ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/RandomCases.h"

#include <cstdio>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace randomCasesTest {

using namespace dtc::test;

namespace {

/// Sets a variable of the environment, or removes it, while it lives.
class Variable {
public:
  Variable(const char *name, const char *value) : name(name) {
    if (const char *set = std::getenv(name))
      before = set;
    assign(value);
  }
  ~Variable() { assign(before ? before->c_str() : nullptr); }
  Variable(const Variable &) = delete;
  Variable &operator=(const Variable &) = delete;

private:
  void assign(const char *value) {
    if (value)
      setenv(name, value, /*overwrite=*/1);
    else
      unsetenv(name);
  }

  const char *name;
  std::optional<std::string> before;
};

/// The tests begin with neither variable set, whatever the user has set.
class RandomCases : public testing::Test {
  Variable seed{"DTC_RANDOM_SEED", nullptr};
  Variable cases{"DTC_RANDOM_CASES", nullptr};
};

using Seeds = std::vector<uint64_t>;

/// The seeds of the cases.
Seeds seedsOf(uint64_t usual) {
  Seeds seeds;
  uint64_t count = forEachRandomCase(usual, [&](uint64_t seed, bool alone) {
    seeds.push_back(seed);
    EXPECT_FALSE(alone);
  });
  EXPECT_EQ(count, seeds.size());
  return seeds;
}

/// The one seed that is set.
uint64_t seedAlone() {
  Seeds seeds;
  uint64_t count = forEachRandomCase(3, [&](uint64_t seed, bool alone) {
    seeds.push_back(seed);
    EXPECT_TRUE(alone);
  });
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(seeds.size(), 1u);
  return seeds.empty() ? 0 : seeds.front();
}

} // namespace

TEST_F(RandomCases, AreTheSameInEveryRun) {
  EXPECT_EQ(seedsOf(3), (Seeds{1, 2, 3}));
  EXPECT_EQ(randomSeed(), 1u);
  EXPECT_EQ(randomCases(20), 20u);
}

TEST_F(RandomCases, NumberOfCasesIsSet) {
  Variable cases("DTC_RANDOM_CASES", "5");
  EXPECT_EQ(seedsOf(3), (Seeds{1, 2, 3, 4, 5}));
  EXPECT_EQ(randomCases(20), 5u);
}

TEST_F(RandomCases, OneSeedIsSet) {
  Variable seed("DTC_RANDOM_SEED", "18446744073709551615");
  EXPECT_EQ(seedAlone(), UINT64_MAX);
  EXPECT_EQ(randomSeed(), UINT64_MAX);
  Variable other("DTC_RANDOM_SEED", "0");
  EXPECT_EQ(seedAlone(), 0u);
  EXPECT_EQ(randomSeed(), 0u);
  Variable cases("DTC_RANDOM_CASES", "5");
  EXPECT_EQ(seedAlone(), 0u);
}

TEST_F(RandomCases, NewSeedsAreDrawn) {
  Variable seed("DTC_RANDOM_SEED", "new");
  Variable cases("DTC_RANDOM_CASES", "4");
  std::set<uint64_t> first, alone;
  for (int i = 0; i < 4; ++i) {
    Seeds seeds = seedsOf(3);
    ASSERT_EQ(seeds.size(), 4u);
    for (uint64_t s = 0; s < 4; ++s)
      EXPECT_EQ(seeds[s], seeds[0] + s);
    first.insert(seeds[0]);
    alone.insert(randomSeed());
  }
  EXPECT_GT(first.size(), 1u);
  EXPECT_GT(alone.size(), 1u);
}

TEST_F(RandomCases, ChosenSeeds) {
  auto run = [] {
    Seeds seeds;
    uint64_t count = forEachSeedOf({7, 3, 9}, [&](uint64_t seed) { seeds.push_back(seed); });
    return std::pair(seeds, count);
  };
  EXPECT_EQ(run(), std::pair(Seeds{7, 3, 9}, uint64_t{3}));
  Variable cases("DTC_RANDOM_CASES", "1");
  Variable seed("DTC_RANDOM_SEED", "new");
  EXPECT_EQ(run(), std::pair(Seeds{7, 3, 9}, uint64_t{3}));
  Variable other("DTC_RANDOM_SEED", "4");
  EXPECT_EQ(run(), std::pair(Seeds{4}, uint64_t{0}));
}

TEST_F(RandomCases, FailuresNameTheirSeed) {
  auto failAt3 = [](uint64_t seed) { EXPECT_NE(seed, 3u); };
  EXPECT_NONFATAL_FAILURE(forEachRandomCase(4, failAt3), "DTC_RANDOM_SEED=3");
  EXPECT_NONFATAL_FAILURE(forEachSeedOf({7, 3, 9}, failAt3), "DTC_RANDOM_SEED=3");
}

// In processes of their own, in which tests may fail, and end.

TEST_F(RandomCases, StopAtTheFirstFailure) {
  auto lastCase = [](auto &&run) {
    EXPECT_TRUE(std::freopen("/dev/null", "w", stdout)); // where the failure is printed
    uint64_t last = 0;
    run([&](uint64_t seed) {
      last = seed;
      EXPECT_NE(seed, 3u);
    });
    std::exit(static_cast<int>(last));
  };
  EXPECT_EXIT(lastCase([](auto function) { forEachRandomCase(9, function); }),
              testing::ExitedWithCode(3), "");
  EXPECT_EXIT(lastCase([](auto function) {
                forEachSeedOf({7, 3, 9}, function);
              }),
              testing::ExitedWithCode(3), "");
}

TEST_F(RandomCases, OtherValuesAreErrors) {
  for (const char *text : {"", "seven", "7x", " 7", "-1", "1.5", "18446744073709551616"}) {
    SCOPED_TRACE(text);
    Variable seed("DTC_RANDOM_SEED", text);
    std::string message = std::string("error: DTC_RANDOM_SEED is \"") + text + "\", expected a ";
    EXPECT_EXIT(randomSeed(), testing::ExitedWithCode(1), message);
    EXPECT_EXIT(seedsOf(3), testing::ExitedWithCode(1), message);
    EXPECT_EXIT(forEachSeedOf({7}, [](uint64_t) {}), testing::ExitedWithCode(1), message);
  }
  for (const char *text : {"", "many", "0", "-1"}) {
    SCOPED_TRACE(text);
    Variable cases("DTC_RANDOM_CASES", text);
    std::string message = std::string("error: DTC_RANDOM_CASES is \"") + text + "\", expected a ";
    EXPECT_EXIT(randomCases(3), testing::ExitedWithCode(1), message);
    EXPECT_EXIT(seedsOf(3), testing::ExitedWithCode(1), message);
  }
}

} // namespace randomCasesTest
