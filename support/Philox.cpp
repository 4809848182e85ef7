//===- Philox.cpp - Counter-based random numbers --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Philox.h"

#include <cmath>
#include <numbers>

namespace dtc {

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

std::array<float, 4> boxMuller(const PhiloxCounter &words) {
  std::array<float, 4> normals;
  for (int pair = 0; pair < 2; ++pair) {
    // On (0, 1]: the half keeps the logarithm finite. Rounding to 1 gives radius 0, which is right.
    float u = (static_cast<float>(words[2 * pair]) + 0.5f) * 0x1p-32f;
    float angle = static_cast<float>(words[2 * pair + 1]) * (0x1p-31f * std::numbers::pi_v<float>);
    float radius = std::sqrt(-2.0f * std::log(u));
    normals[2 * pair] = radius * std::cos(angle);
    normals[2 * pair + 1] = radius * std::sin(angle);
  }
  return normals;
}

std::array<float, 4> symmetricUniform(const PhiloxCounter &words) {
  std::array<float, 4> values;
  // 24 bits are exact in a float, so that 1 is never reached.
  for (int i = 0; i < 4; ++i)
    values[i] = static_cast<float>(words[i] >> 8) * 0x1p-23f - 1.0f;
  return values;
}

} // namespace dtc
