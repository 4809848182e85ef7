//===- Float16.h - Floating point in 16 bits ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Two storage types. There is no arithmetic on them: they convert to float, and numbers convert to
// them by rounding once, to the nearest, ties to even. The conversions are straight-line, so that a
// loop over them becomes vector instructions.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_FLOAT16_H
#define DTC_SUPPORT_FLOAT16_H

#include <bit>
#include <cmath>
#include <cstdint>

namespace dtc {

/// The float next to `value` on the side of zero, with its last bit set if it is not `value`
/// itself. Rounding it again, to fewer places, then gives the same as rounding `value`: the last
/// bit says on which side of a tie it lies. Source: Boldo and Melquiond, "Emulation of FMA and
/// correctly rounded sums: proved algorithms using rounding to odd" (IEEE Transactions on Computers
/// 57(4), 2008).
inline float roundToOdd(double value) {
  float nearest = static_cast<float>(value);
  double back = nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  // An even neighbour of an inexact value: the odd one is the other neighbour.
  uint32_t odd = std::fabs(back) < std::fabs(value) ? bits + 1 : bits - 1;
  bool keep = back == value || value != value || (bits & 1) != 0;
  return std::bit_cast<float>(keep ? bits : odd);
}

/// condition ? yes : no, without a jump: the compiler may turn the operator into one, and the loop
/// around it then stays scalar.
inline uint32_t selectBits(bool condition, uint32_t yes, uint32_t no) {
  uint32_t mask = 0 - static_cast<uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

/// bfloat16: the upper half of a float (8 bits of exponent, 7 of fraction).
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float value) {
    uint32_t wide = std::bit_cast<uint32_t>(value);
    // Adding just under half of the last place, and one more if that place is odd, carries exactly
    // when rounding goes up; a carry out of the fraction is the next exponent, up to infinity.
    uint32_t rounded = (wide + 0x7FFF + ((wide >> 16) & 1)) >> 16;
    // A NaN stays one, and becomes quiet.
    uint32_t quiet = (wide >> 16) | 0x40;
    bits = static_cast<uint16_t>(selectBits((wide & 0x7FFFFFFF) > 0x7F800000, quiet, rounded));
  }
  explicit BFloat16(double value) : BFloat16(roundToOdd(value)) {}
  explicit BFloat16(int32_t value) : BFloat16(static_cast<double>(value)) {}
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

/// IEEE 754 binary16 (5 bits of exponent, 10 of fraction).
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  explicit Float16(float value) {
    uint32_t wide = std::bit_cast<uint32_t>(value);
    uint32_t sign = (wide >> 16) & 0x8000, magnitude = wide & 0x7FFFFFFF;
    // Normal results: the exponent moves from a bias of 127 to one of 15.
    uint32_t normal = (magnitude - (112u << 23) + 0xFFF + ((magnitude >> 13) & 1)) >> 13;
    // Below 2^-14 the last place is worth 2^-24. The last place of 0.5f is worth as much, so a sum
    // with 0.5f rounds there.
    float sum = std::bit_cast<float>(selectBits(magnitude < 0x38800000, magnitude, 0)) + 0.5f;
    uint32_t subnormal = std::bit_cast<uint32_t>(sum) - 0x3F000000;
    uint32_t result = selectBits(magnitude < 0x38800000, subnormal, normal);
    // From 65520 on, the nearest is infinity.
    result = selectBits(magnitude >= 0x477FF000, 0x7C00, result);
    uint32_t quiet = 0x7E00 | ((magnitude >> 13) & 0x1FF);
    result = selectBits(magnitude > 0x7F800000, quiet, result);
    bits = static_cast<uint16_t>(sign | result);
  }
  explicit Float16(double value) : Float16(roundToOdd(value)) {}
  explicit Float16(int32_t value) : Float16(static_cast<double>(value)) {}
  operator float() const {
    uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, magnitude = bits & 0x7FFF;
    uint32_t normal = (magnitude << 13) + (112u << 23);
    // An exponent of all ones stays one of all ones.
    uint32_t special = (magnitude << 13) | 0x7F800000;
    // Subnormal: the fraction as the last places of 0.5f, without the 0.5f.
    float small = std::bit_cast<float>(magnitude | 0x3F000000) - 0.5f;
    uint32_t result = selectBits(magnitude < 0x400, std::bit_cast<uint32_t>(small), normal);
    result = selectBits(magnitude >= 0x7C00, special, result);
    return std::bit_cast<float>(result | sign);
  }
};

/// The type for computing with values of type T; wideType() as a C++ type.
template <typename T> struct WideOf { using Type = T; };
template <> struct WideOf<BFloat16> { using Type = float; };
template <> struct WideOf<Float16> { using Type = float; };
template <typename T> using Wide = typename WideOf<T>::Type;

} // namespace dtc

#endif // DTC_SUPPORT_FLOAT16_H
