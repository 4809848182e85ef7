//===- MaskStretches.h - The elements of a random mask --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The elements of a mask (RandomMask.h), a short stretch at a time in a buffer of the caller's, so
// that a mask is never stored.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_MASKSTRETCHES_H
#define DTC_RUNTIME_BACKENDS_CPU_MASKSTRETCHES_H

#include "calls/RandomMask.h"

#include <algorithm>
#include <cstdint>

namespace dtc::runtime::cpu {

/// Room for the mask of a stretch.
struct KeepBuffer {
  /// Elements of the longest stretch.
  static constexpr int64_t capacity = 1024;
  /// Blocks of four elements that are computed together.
  static constexpr int64_t group = 16;
  /// A byte an element, in the order of memory. A stretch may begin inside of a block.
  alignas(64) uint32_t blocks[capacity / 4 + group];
};

/// The mask of the `count` elements (at most KeepBuffer::capacity) from index `first` of the whole
/// tensor on: a byte each, 1 where the element is kept, else 0. They lie in `buffer`. To be called
/// in simd(). Philox.h has the same function for one block at a time.
inline const uint8_t *keepsOf(const MaskWords &words, int64_t first, int64_t count,
                              KeepBuffer &buffer) {
  uint64_t block = static_cast<uint64_t>(first) / 4;
  int64_t before = first % 4, blocks = (before + count + 3) / 4;
  uint64_t seed = words.seed, op = words.op, iteration = words.iteration;
  uint32_t limit = words.limit, all = words.all;
  uint32_t *out = buffer.blocks;
  // Words are in SIMD lanes of 64 bits, as their products do.
  for (int64_t begin = 0; begin < blocks; begin += KeepBuffer::group, block += KeepBuffer::group) {
#pragma omp simd
    for (int64_t simdLane = 0; simdLane < KeepBuffer::group; ++simdLane) {
      uint64_t counter = block + static_cast<uint64_t>(simdLane);
      uint64_t a = counter & 0xFFFFFFFF, b = counter >> 32, c = iteration, d = 0;
      uint64_t key0 = seed, key1 = op;
#pragma GCC unroll 10
      for (int round = 0; round < 10; ++round) {
        uint64_t product0 = 0xD2511F53 * a, product1 = 0xCD9E8D57 * c;
        a = (product1 >> 32) ^ b ^ key0;
        b = product1 & 0xFFFFFFFF;
        c = (product0 >> 32) ^ d ^ key1;
        d = product0 & 0xFFFFFFFF;
        key0 = (key0 + 0x9E3779B9) & 0xFFFFFFFF;
        key1 = (key1 + 0xBB67AE85) & 0xFFFFFFFF;
      }
      auto larger = [=](uint64_t word) {
        return static_cast<uint32_t>(static_cast<uint32_t>(word) > limit);
      };
      // The bytes of a word of the host, the lowest address first.
      out[begin + simdLane] = all | larger(a) | larger(b) << 8 | larger(c) << 16 | larger(d) << 24;
    }
  }
  return reinterpret_cast<const uint8_t *>(out) + before;
}

/// Calls body(element, count, keeps) for the stretches that make up the elements [begin, end) of
/// the block, in order: `keeps` has a byte for each of the `count` elements from `element` on, 1
/// where it is kept, else 0. To be called in simd().
template <typename Body>
void forKeeps(const LocalMask &mask, int64_t begin, int64_t end, KeepBuffer &buffer,
              const Body &body) {
  mask.nest->forSegments(begin, end, [&](const auto &offsets, int64_t length) {
    // Neighbours in the block are not so in the whole if nothing but a split dimension of one
    // element follows theirs.
    int64_t stride = mask.nest->inner().strides[0];
    int64_t longest = stride == 1 ? KeepBuffer::capacity : 1;
    for (int64_t done = 0; done < length;) {
      int64_t count = std::min(longest, length - done);
      body(begin, count,
           keepsOf(mask.words, mask.origin + offsets[0] + done * stride, count, buffer));
      begin += count;
      done += count;
    }
  });
}

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_MASKSTRETCHES_H
