//===- RandomCases.h - Seeds of random tests ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Seeds are the same in every run, unless the environment says otherwise:
//
//   DTC_RANDOM_SEED=n    this seed; of tests with a seed for each case, this case alone
//   DTC_RANDOM_SEED=new  seeds that are drawn
//   DTC_RANDOM_CASES=n   the number of cases
//
// Another value is an error, which ends the process.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_RANDOMCASES_H
#define DTC_TEST_LIB_RANDOMCASES_H

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include <gtest/gtest.h>

namespace dtc::test {

namespace detail {

/// The number in a variable of the environment; nothing if it is not set.
inline std::optional<uint64_t> numberFrom(const char *variable, uint64_t least,
                                          const char *expected) {
  const char *set = std::getenv(variable);
  if (!set)
    return std::nullopt;
  std::string_view text = set;
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least) {
    std::cerr << "error: " << variable << " is \"" << text << "\", expected " << expected << '\n';
    std::exit(1);
  }
  return number;
}

inline bool asksForNewSeeds() {
  const char *set = std::getenv("DTC_RANDOM_SEED");
  return set && std::string_view(set) == "new";
}

/// The seed of DTC_RANDOM_SEED, if not "new".
inline std::optional<uint64_t> givenSeed() {
  return numberFrom("DTC_RANDOM_SEED", 0, "a number below 2^64 or \"new\"");
}

template <typename Function> void runCase(Function &function, uint64_t seed, bool alone) {
  SCOPED_TRACE("DTC_RANDOM_SEED=" + std::to_string(seed));
  if constexpr (std::is_invocable_v<Function &, uint64_t, bool>)
    function(seed, alone);
  else
    function(seed);
}

} // namespace detail

/// The number of cases: `usual`, or what DTC_RANDOM_CASES says.
inline uint64_t randomCases(uint64_t usual) {
  return detail::numberFrom("DTC_RANDOM_CASES", 1, "a number from 1 to 2^64 - 1").value_or(usual);
}

/// The seed of a test that draws all its cases from one: 1, unless DTC_RANDOM_SEED sets another.
/// Prints it.
inline uint64_t randomSeed() {
  uint64_t seed =
      detail::asksForNewSeeds() ? std::random_device()() : detail::givenSeed().value_or(1);
  std::cout << "DTC_RANDOM_SEED=" << seed << '\n' << std::flush;
  return seed;
}

/// Calls `function(seed, alone)` or `function(seed)` for seeds from 1 to `usual`, until a case
/// fails. DTC_RANDOM_SEED=n calls it for that seed alone, with `alone` true; "new" draws the first
/// seed. Returns the number of cases; 0 for a seed alone, as it gives no statistics.
template <typename Function> uint64_t forEachRandomCase(uint64_t usual, Function function) {
  uint64_t count = randomCases(usual), first = 1, done = 0;
  if (detail::asksForNewSeeds()) {
    first = std::random_device()();
    std::cout << "DTC_RANDOM_SEED=" << first << " is the first of " << count << '\n' << std::flush;
  } else if (std::optional<uint64_t> seed = detail::givenSeed()) {
    detail::runCase(function, *seed, /*alone=*/true);
    return 0;
  }
  for (; done < count && !::testing::Test::HasFailure(); ++done)
    detail::runCase(function, first + done, /*alone=*/false);
  return done;
}

/// The same for seeds that were chosen because their cases are hard. Only DTC_RANDOM_SEED=n makes a
/// difference.
template <typename Function>
uint64_t forEachSeedOf(std::initializer_list<uint64_t> seeds, Function function) {
  if (!detail::asksForNewSeeds())
    if (std::optional<uint64_t> seed = detail::givenSeed()) {
      detail::runCase(function, *seed, /*alone=*/true);
      return 0;
    }
  uint64_t done = 0;
  for (auto seed = seeds.begin(); seed != seeds.end() && !::testing::Test::HasFailure(); ++seed) {
    detail::runCase(function, *seed, /*alone=*/false);
    ++done;
  }
  return done;
}

} // namespace dtc::test

#endif // DTC_TEST_LIB_RANDOMCASES_H
