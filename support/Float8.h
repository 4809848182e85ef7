//===- Float8.h - Floating point in 8 bits --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Two storage types, without arithmetic, and the scale with which the elements of a tensor fit
// them. Source: Micikevicius et al., "FP8 Formats for Deep Learning" (arXiv:2209.05433), section 3.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_FLOAT8_H
#define DTC_SUPPORT_FLOAT8_H

#include "support/Float16.h"

#include <bit>
#include <cstdint>

namespace dtc {

/// A format of 8 bits: one of sign, `fraction` of fraction, the rest of exponent with `bias`.
/// `largest` are the bits of the largest finite number.
struct Float8Format {
  int fraction, bias;
  uint32_t largest;
};
inline constexpr Float8Format kE4M3{3, 7, 0x7E};
inline constexpr Float8Format kE5M2{2, 15, 0x7B};

/// The bits of the number of the format next to `value`, ties to even. What is larger than the
/// largest finite number becomes that, infinities too; a NaN becomes one. So do GPUs
/// (__nv_cvt_float_to_fp8 with __NV_SATFINITE).
template <Float8Format format> uint8_t roundToFloat8(float value) {
  constexpr int dropped = 23 - format.fraction;
  constexpr uint32_t firstNormal = static_cast<uint32_t>(128 - format.bias) << 23;
  uint32_t wide = std::bit_cast<uint32_t>(value);
  uint32_t sign = (wide >> 24) & 0x80, magnitude = wide & 0x7FFFFFFF;
  uint32_t moved = magnitude - (static_cast<uint32_t>(127 - format.bias) << 23);
  uint32_t normal = (moved + (1U << (dropped - 1)) - 1 + ((moved >> dropped) & 1)) >> dropped;
  // The last place of `ruler` is worth as much as that of numbers below the first normal one, so a
  // sum with it rounds there.
  constexpr uint32_t ruler = static_cast<uint32_t>(127 + 1 - format.bias + dropped) << 23;
  float sum = std::bit_cast<float>(selectBits(magnitude < firstNormal, magnitude, 0)) +
              std::bit_cast<float>(ruler);
  uint32_t subnormal = std::bit_cast<uint32_t>(sum) - ruler;
  uint32_t result = selectBits(magnitude < firstNormal, subnormal, normal);
  constexpr uint32_t largest =
      (format.largest << dropped) + (static_cast<uint32_t>(127 - format.bias) << 23);
  result = selectBits(magnitude >= largest, format.largest, result);
  result = selectBits(magnitude > 0x7F800000, 0x7F, result);
  return static_cast<uint8_t>(sign | result);
}

/// 4 bits of exponent, 3 of fraction, no infinities, up to 448: activations and weights.
struct Float8E4M3 {
  static constexpr Float8Format format = kE4M3;
  uint8_t bits = 0;

  Float8E4M3() = default;
  explicit Float8E4M3(float value) : bits(roundToFloat8<format>(value)) {}
  explicit Float8E4M3(double value) : Float8E4M3(roundToOdd(value)) {}
  explicit Float8E4M3(int32_t value) : Float8E4M3(static_cast<double>(value)) {}
  operator float() const {
    uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24, magnitude = bits & 0x7F;
    uint32_t normal = (magnitude << 20) + (120U << 23);
    uint32_t subnormal = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-9F);
    uint32_t result = selectBits(magnitude < 8, subnormal, normal);
    result = selectBits(magnitude == 0x7F, 0x7FC00000, result);
    return std::bit_cast<float>(result | sign);
  }
};

/// 5 bits of exponent, 2 of fraction, up to 57344: gradients. The upper half of a Float16.
struct Float8E5M2 {
  static constexpr Float8Format format = kE5M2;
  uint8_t bits = 0;

  Float8E5M2() = default;
  explicit Float8E5M2(float value) : bits(roundToFloat8<format>(value)) {}
  explicit Float8E5M2(double value) : Float8E5M2(roundToOdd(value)) {}
  explicit Float8E5M2(int32_t value) : Float8E5M2(static_cast<double>(value)) {}
  operator float() const {
    Float16 half;
    half.bits = static_cast<uint16_t>(bits << 8);
    return half;
  }
};

/// The scale of a tensor whose largest absolute value is `largest`: the largest power of two by
/// which that stays within the finite numbers of the format, from 2^-126 to 2^126. It is exact, and
/// so is its inverse. 1 of a tensor of zeros; a NaN where `largest` is infinite or a NaN, so that
/// every product with the tensor is one.
inline float scaleToFloat8(float largest, Float8Format format) {
  uint32_t bits = std::bit_cast<uint32_t>(largest) & 0x7FFFFFFF;
  if (bits == 0)
    return 1;
  if (bits >= 0x7F800000)
    return std::bit_cast<float>(0x7FC00000U);
  // The largest number is 1.75 times a power of two in both formats.
  int top = static_cast<int>(format.largest >> format.fraction) - format.bias;
  int exponent = top - (static_cast<int>(bits >> 23) - 127) - ((bits & 0x7FFFFF) > 0x600000);
  exponent = exponent > 126 ? 126 : exponent;
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

} // namespace dtc

#endif // DTC_SUPPORT_FLOAT8_H
