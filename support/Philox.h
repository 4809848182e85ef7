//===- Philox.h - Counter-based random numbers ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Philox4x32-10 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3". A counter and a
// key give four words; there is no state, so any device computes any element of a random tensor
// without the ones before it.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_PHILOX_H
#define DTC_SUPPORT_PHILOX_H

#include <array>
#include <cstdint>
#include <string_view>

namespace dtc {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

/// Ten rounds of Philox4x32.
inline PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9; // the golden ratio
    key[1] += 0xBB67AE85; // sqrt(3) - 1
  }
  return counter;
}

/// The two words of `value`, the low one first.
inline PhiloxKey philoxKey(uint64_t value) {
  return {static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)};
}

/// A counter of two 64-bit numbers, the low words first.
inline PhiloxCounter philoxCounter(uint64_t low, uint64_t high) {
  return {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
          static_cast<uint32_t>(high >> 32)};
}

/// 64-bit FNV-1a.
uint64_t fnv1a(std::string_view text);

/// Four independent values of the standard normal distribution from one block of words.
std::array<float, 4> boxMuller(const PhiloxCounter &words);

/// Four values on [-1, 1) from one block of words.
std::array<float, 4> symmetricUniform(const PhiloxCounter &words);

} // namespace dtc

#endif // DTC_SUPPORT_PHILOX_H
