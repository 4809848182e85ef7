//===- RandomMask.h - Random masks ----------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The masks of docs/kernels.md, "Random masks". A kernel describes its mask with checkRandomMask()
// while preparing. When it runs, at() gives the mask of the device's block. A mask is never stored:
// a backend computes its elements where it needs them.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_RANDOMMASK_H
#define DTC_CALLS_RANDOMMASK_H

#include "calls/LoopNest.h"
#include "calls/SignatureChecker.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dtc {

/// The words that decide about an element, together with its index in the whole tensor.
struct MaskWords {
  uint32_t seed = 0, op = 0, iteration = 0;
  /// An element is kept if its random word is larger, or if `all` has a 1 in each byte.
  uint32_t limit = 0, all = 0x01010101;

  MaskWords() = default;
  /// Keeps an element whose word is at least rate * 2^32, rounded to the nearest integer.
  /// 0 <= rate < 1.
  MaskWords(double rate, uint32_t op);
};

/// The mask of a device's block of a tensor, while a kernel runs. Refers to its RandomMask.
struct LocalMask {
  MaskWords words;
  /// From element to element of the block, the steps in the whole tensor.
  const LoopNest<1> *nest = nullptr;
  /// The index in the whole tensor of the block's first element.
  int64_t origin = 0;
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
  /// The factor of kept elements: 1 / (1 - rate).
  double scale() const { return 1 / (1 - share); }
  /// The mask of the device at `position`. `key` holds the seed and the iteration of the step's
  /// first batch; each further repetition of the loop over microbatches in the step is the next
  /// iteration.
  LocalMask at(std::span<const AxisCoordinate> position, const int32_t *key) const;

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

/// Checks the common part of random kernels: the attributes `rateName` (none if empty), `op`,
/// `shape` and `sharding`, which must fit the shape `local` of the tensor that is masked, and the
/// input `keyIndex`, i32[2]. The result has no meaning if the check failed.
RandomMask checkRandomMask(SignatureChecker &check, const KernelSignature &signature,
                           const std::string &rateName, size_t keyIndex,
                           std::span<const int64_t> local);

} // namespace dtc

#endif // DTC_CALLS_RANDOMMASK_H
