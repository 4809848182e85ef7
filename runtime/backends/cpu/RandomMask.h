//===- RandomMask.h - Which elements a random op keeps --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The masks of docs/kernels.md, "Random masks". A kernel describes its mask with checkRandomMask()
// while preparing. When it runs, at() gives the mask of the device's block, and forKeeps() its
// elements, a short stretch at a time in a buffer of the caller's, so that a mask is never stored.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_RANDOMMASK_H
#define DTC_RUNTIME_BACKENDS_CPU_RANDOMMASK_H

#include "runtime/backends/cpu/LoopNest.h"
#include "runtime/backends/cpu/SignatureChecker.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dtc::runtime::cpu {

/// What decides on an element besides its index in the whole tensor.
struct MaskWords {
  uint32_t seed = 0, op = 0, iteration = 0;
  /// An element is kept if its random word is larger, or if `all` has a 1 in each byte.
  uint32_t limit = 0, all = 0x01010101;

  MaskWords() = default;
  /// Keeps an element whose word is at least rate * 2^32, rounded to the nearest integer.
  /// 0 <= rate < 1.
  MaskWords(double rate, uint32_t op);
};

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
  // Words lie in lanes of 64 bits, as their products do.
  for (int64_t begin = 0; begin < blocks; begin += KeepBuffer::group, block += KeepBuffer::group) {
#pragma omp simd
    for (int64_t lane = 0; lane < KeepBuffer::group; ++lane) {
      uint64_t counter = block + static_cast<uint64_t>(lane);
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
      out[begin + lane] = all | larger(a) | larger(b) << 8 | larger(c) << 16 | larger(d) << 24;
    }
  }
  return reinterpret_cast<const uint8_t *>(out) + before;
}

/// The mask of a device's block of a tensor, while a kernel runs. Refers to its RandomMask.
struct LocalMask {
  MaskWords words;
  /// From element to element of the block, the steps in the whole tensor.
  const LoopNest<1> *nest = nullptr;
  /// The index in the whole tensor of the block's first element.
  int64_t origin = 0;

  /// Calls body(element, count, keeps) for the stretches that make up the elements [begin, end) of
  /// the block, in order: `keeps` has a byte for each of the `count` elements from `element` on, 1
  /// where it is kept, else 0. To be called in simd().
  template <typename Body>
  void forKeeps(int64_t begin, int64_t end, KeepBuffer &buffer, const Body &body) const {
    nest->forSegments(begin, end, [&](const auto &offsets, int64_t length) {
      // Neighbours in the block are not so in the whole if nothing but a split dimension of one
      // element lies behind theirs.
      int64_t stride = nest->inner().strides[0];
      int64_t longest = stride == 1 ? KeepBuffer::capacity : 1;
      for (int64_t done = 0; done < length;) {
        int64_t count = std::min(longest, length - done);
        body(begin, count, keepsOf(words, origin + offsets[0] + done * stride, count, buffer));
        begin += count;
        done += count;
      }
    });
  }
};

/// A mask as the attributes of a kernel call describe it.
class RandomMask {
public:
  /// Keeps everything and has no elements.
  RandomMask() : RandomMask(0, 0, {}, {}, {}) {}
  /// `shape` and `sharding` are those of the whole tensor, `local` is the shape of a block. They
  /// are as checkRandomMask() demands.
  RandomMask(double rate, uint32_t op, std::span<const int64_t> local,
             std::span<const int64_t> shape, std::vector<std::vector<std::string>> sharding);

  double rate() const { return share; }
  /// What kept elements are multiplied by: 1 / (1 - rate).
  double scale() const { return 1 / (1 - share); }
  /// The mask of the device at `position`; `key` holds the seed and the iteration.
  LocalMask at(std::span<const AxisPosition> position, const int32_t *key) const;

private:
  /// A dimension of the whole tensor that axes split.
  struct SplitDim {
    int64_t size, stride;
    std::vector<std::string> axes;
  };
  double share;
  MaskWords words;
  LoopNest<1> nest;
  std::vector<SplitDim> splitDims;
};

/// Checks what random kernels have in common: the attributes `rateName`, `op`, `shape` and
/// `sharding`, which must fit the shape `local` of the tensor that is masked, and the input
/// `keyIndex`, i32[2]. The result has no meaning if the check failed.
RandomMask checkRandomMask(SignatureChecker &check, const KernelSignature &signature,
                           const std::string &rateName, size_t keyIndex,
                           std::span<const int64_t> local);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_RANDOMMASK_H
