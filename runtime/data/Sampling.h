//===- Sampling.h - Sampling of batches -----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_SAMPLING_H
#define DTC_RUNTIME_DATA_SAMPLING_H

#include "support/Philox.h"

#include <array>
#include <cstdint>

namespace dtc::runtime {

/// Which samples make the batches of training.
enum class Sampling {
  Random, // each sample is drawn for itself, from all samples: with replacement
  Epochs, // each sample once in an epoch, in another order each time: without replacement
};

/// A number from 0 to `range` - 1 for a sample of a step; `range` is at least 1.
inline uint64_t drawSample(uint64_t seed, int64_t step, int64_t sample, uint64_t range) {
  // Initial parameters are drawn with the seed itself as the key; the constant sets the data apart.
  PhiloxKey key = philoxKey(seed ^ 0x64617461'73616d70);
  PhiloxCounter words =
      philox4x32(philoxCounter(static_cast<uint64_t>(sample), static_cast<uint64_t>(step)), key);
  uint64_t draw = words[0] | uint64_t{words[1]} << 32;
  // The upper half of the product maps 64 bits evenly to the range.
  return static_cast<uint64_t>(static_cast<unsigned __int128>(draw) * range >> 64);
}

/// The key of an iteration's random masks (0 is the first): a word of the run, drawn from its seed,
/// and the number of the iteration, modulo 2^32.
inline std::array<uint32_t, 2> randomMaskKey(uint64_t seed, int64_t iteration) {
  PhiloxKey key = philoxKey(seed ^ 0x64726f70'6d61736b);
  return {philox4x32({}, key)[0], static_cast<uint32_t>(iteration)};
}

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_SAMPLING_H
