//===- PhiloxTest.cpp - Counter-based random numbers ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Philox.h"

#include <cmath>
#include <gtest/gtest.h>

namespace philoxTest {

using namespace dtc;

// The known answers for "philox4x32 10" of Random123's kat_vectors.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, CounterAndKeyHaveTheLowWordFirst) {
  EXPECT_EQ(philoxKey(0x1122334455667788), (PhiloxKey{0x55667788, 0x11223344}));
  EXPECT_EQ(philoxCounter(0x1122334455667788, 0x99),
            (PhiloxCounter{0x55667788, 0x11223344, 0x99, 0}));
}

TEST(Philox, Fnv1aKnownAnswers) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

TEST(Philox, BoxMullerIsFiniteAtTheEdges) {
  for (uint32_t word : {0u, 1u, 0x7fffffffu, 0xfffffffeu, 0xffffffffu})
    for (float value : boxMuller({word, word, word, 0xffffffff - word}))
      EXPECT_TRUE(std::isfinite(value)) << word;
}

TEST(Philox, BoxMullerHasTheMomentsOfANormal) {
  constexpr int blocks = 50000;
  double sum = 0, squares = 0, cubes = 0, fourths = 0;
  for (int i = 0; i < blocks; ++i)
    for (double value : boxMuller(philox4x32(philoxCounter(i, 7), philoxKey(42)))) {
      sum += value;
      squares += value * value;
      cubes += value * value * value;
      fourths += value * value * value * value;
    }
  constexpr double n = 4.0 * blocks;
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(cubes / n, 0, 0.05);
  EXPECT_NEAR(fourths / n, 3, 0.1);
}

TEST(Philox, SymmetricUniformStaysInItsRange) {
  EXPECT_EQ(symmetricUniform({0, 0x80000000, 0, 0})[0], -1.0f);
  EXPECT_EQ(symmetricUniform({0, 0x80000000, 0, 0})[1], 0.0f);
  EXPECT_LT(symmetricUniform({0xffffffff, 0, 0, 0})[0], 1.0f);
  double sum = 0, squares = 0;
  for (int i = 0; i < 10000; ++i)
    for (double value : symmetricUniform(philox4x32(philoxCounter(i, 0), philoxKey(1)))) {
      sum += value;
      squares += value * value;
    }
  EXPECT_NEAR(sum / 40000, 0, 0.01);
  EXPECT_NEAR(squares / 40000, 1.0 / 3, 0.01);
}

} // namespace philoxTest
