//===- Float16Test.cpp - Floating point in 16 bits ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Every one of the 65536 values of each format is decoded and encoded, and so is every point
// halfway between neighbours, with the floats and doubles right beside it.
//
//===----------------------------------------------------------------------===//

#include "support/Float16.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace float16Test {

using namespace dtc;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A format, described by its numbers of bits alone.
template <typename T> struct Format;
template <> struct Format<BFloat16> { static constexpr int exponentBits = 8, fractionBits = 7; };
template <> struct Format<Float16> { static constexpr int exponentBits = 5, fractionBits = 10; };

template <typename T> T fromBits(int bits) {
  T value;
  value.bits = static_cast<uint16_t>(bits);
  return value;
}

/// The value of the bits, by the definition of IEEE 754.
template <typename T> double decode(int bits) {
  constexpr int fractionBits = Format<T>::fractionBits;
  constexpr int highest = (1 << Format<T>::exponentBits) - 1, bias = highest / 2;
  int exponent = bits >> fractionBits & highest, fraction = bits & ((1 << fractionBits) - 1);
  double magnitude;
  if (exponent == highest)
    magnitude = fraction == 0 ? kInfinity : std::nan("");
  else if (exponent == 0)
    magnitude = std::ldexp(fraction, 1 - bias - fractionBits);
  else
    magnitude = std::ldexp(fraction + (1 << fractionBits), exponent - bias - fractionBits);
  return std::copysign(magnitude, bits & 0x8000 ? -1.0 : 1.0);
}

/// The bits of infinity, the first ones that are no finite number.
template <typename T> constexpr int infinityBits() {
  return 0x7FFF >> Format<T>::fractionBits << Format<T>::fractionBits;
}

template <typename T> class Float16Test : public testing::Test {};
using Types = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(Float16Test, Types);

} // namespace

TYPED_TEST(Float16Test, DecodesEveryValue) {
  for (int bits = 0; bits < 65536; ++bits) {
    float value = fromBits<TypeParam>(bits);
    double expected = decode<TypeParam>(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
    } else {
      ASSERT_EQ(value, expected) << bits;
    }
    ASSERT_EQ(std::signbit(value), bits >= 0x8000) << bits;
  }
}

TYPED_TEST(Float16Test, EncodesEveryValue) {
  for (int bits = 0; bits < 65536; ++bits) {
    float value = fromBits<TypeParam>(bits);
    if (std::isnan(value)) {
      int quiet = bits | 1 << (Format<TypeParam>::fractionBits - 1);
      ASSERT_EQ(TypeParam(value).bits, quiet) << bits;
      ASSERT_TRUE(std::isnan(float(TypeParam(static_cast<double>(value))))) << bits;
      continue;
    }
    ASSERT_EQ(TypeParam(value).bits, bits);
    ASSERT_EQ(TypeParam(static_cast<double>(value)).bits, bits);
  }
}

TYPED_TEST(Float16Test, TiesGoToEven) {
  int last = infinityBits<TypeParam>();
  for (int bits = 0; bits < last; ++bits) {
    double low = decode<TypeParam>(bits);
    // After the largest number the next one would lie as far away as the one before it.
    double high =
        bits + 1 < last ? decode<TypeParam>(bits + 1) : low + (low - decode<TypeParam>(bits - 1));
    double tie = low + (high - low) / 2;
    int even = bits % 2 == 0 ? bits : bits + 1;
    for (int sign : {0, 0x8000}) {
      double signedTie = sign ? -tie : tie;
      float single = static_cast<float>(signedTie);
      ASSERT_EQ(single, signedTie); // a float holds every tie
      auto outward = static_cast<float>(sign ? -kInfinity : kInfinity);
      ASSERT_EQ(TypeParam(single).bits, sign | even) << bits;
      ASSERT_EQ(TypeParam(std::nextafter(single, 0.0f)).bits, sign | bits) << bits;
      ASSERT_EQ(TypeParam(std::nextafter(single, outward)).bits, sign | (bits + 1)) << bits;
      // Beside a tie a double rounds to it as a float, and is rounded once all the same.
      ASSERT_EQ(TypeParam(signedTie).bits, sign | even) << bits;
      ASSERT_EQ(TypeParam(std::nextafter(signedTie, 0.0)).bits, sign | bits) << bits;
      ASSERT_EQ(TypeParam(std::nextafter(signedTie, sign ? -kInfinity : kInfinity)).bits,
                sign | (bits + 1))
          << bits;
    }
  }
}

TYPED_TEST(Float16Test, SpecialValues) {
  int last = infinityBits<TypeParam>();
  EXPECT_EQ(TypeParam(kInfinity).bits, last);
  EXPECT_EQ(TypeParam(-kInfinity).bits, last | 0x8000);
  EXPECT_EQ(TypeParam(static_cast<float>(kInfinity)).bits, last);
  EXPECT_EQ(TypeParam(1e300).bits, last);
  EXPECT_EQ(TypeParam(-1e300).bits, last | 0x8000);
  EXPECT_EQ(TypeParam(std::numeric_limits<float>::max()).bits, last);
  EXPECT_TRUE(std::isnan(float(TypeParam(std::nan("")))));
  EXPECT_EQ(TypeParam(0.0).bits, 0);
  EXPECT_EQ(TypeParam(-0.0).bits, 0x8000);
  EXPECT_EQ(TypeParam(1e-300).bits, 0);
  EXPECT_EQ(TypeParam(-1e-300).bits, 0x8000);
  EXPECT_EQ(TypeParam(std::numeric_limits<float>::denorm_min()).bits, 0);
}

/// An integer is rounded once too: 16777217 is 2^24 + 1, which a float cannot hold.
TYPED_TEST(Float16Test, IntegersAreRoundedOnce) {
  for (int32_t value : {0, 1, -3, 255, 257, 2049, -65504, 16777217, 16842753, 2147483647}) {
    EXPECT_EQ(TypeParam(value).bits, TypeParam(static_cast<double>(value)).bits) << value;
  }
  // 2^24 + 2^16 lies halfway between two values of bf16; one more is nearer to the upper one.
  EXPECT_EQ(float(BFloat16(16842752)), 16777216.0f);
  EXPECT_EQ(float(BFloat16(16842753)), 16908288.0f);
}

TEST(RoundToOdd, KeepsWhatIsExactAndMarksTheRest) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200000; ++i) {
    uint64_t bits = random();
    double value = std::bit_cast<double>(bits);
    float odd = roundToOdd(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(odd));
      continue;
    }
    if (odd == value)
      continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(odd) & 1, 1u) << value;
    // No float is between them.
    float next = std::nextafter(odd, value > odd ? std::numeric_limits<float>::infinity()
                                                 : -std::numeric_limits<float>::infinity());
    ASSERT_TRUE(value > odd ? value < next : value > next) << value << ' ' << odd;
  }
}

} // namespace float16Test
