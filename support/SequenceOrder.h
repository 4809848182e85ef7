//===- SequenceOrder.h - Places of elements in a sequence -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The zigzag order with n parts: a sequence is 2 n chunks, and part i has chunk i and then chunk
// 2 n - 1 - i. Among parts of causal attention all see as many keys (Grattafiori et al., "The Llama
// 3 Herd of Models", arXiv:2407.21783, section 3.3.2).
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_SEQUENCEORDER_H
#define DTC_SUPPORT_SEQUENCEORDER_H

#include "support/ShardExtent.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace dtc {

/// Where in a sequence the elements of a dimension lie. Without chunks they are in its order, from
/// `offset` on; else they are from `offset` on in the order of `zigzag` with `parts` parts.
struct SequenceOrder {
  int64_t offset = 0;
  int64_t chunk = 0; ///< elements of a chunk; 0: there are none
  int64_t parts = 0;
  /// The elements that exist; those after them are padding.
  int64_t held = std::numeric_limits<int64_t>::max();

  /// The order of a block of a sequence of `size` elements: zigzag order if `parts` is not 0.
  static SequenceOrder of(const ShardExtent &block, int64_t size, int64_t parts) {
    return {block.offset, parts == 0 ? 0 : size / (2 * parts), parts, block.count};
  }

  /// The place of element `i`.
  int64_t at(int64_t i) const {
    int64_t place = offset + i;
    if (chunk == 0)
      return place;
    int64_t part = place / (2 * chunk), rest = place % (2 * chunk);
    return rest < chunk ? part * chunk + rest : (2 * parts - 2 - part) * chunk + rest;
  }
  /// The end of the elements from `i` on, `end` at most, whose places follow each other.
  int64_t endOfRun(int64_t i, int64_t end) const {
    return chunk == 0 ? end : std::min(end, ((offset + i) / chunk + 1) * chunk - offset);
  }
  /// How many of `count` elements that exist and are increasing lie before `place`.
  int64_t countBefore(int64_t place, int64_t count) const {
    count = std::min(count, held);
    int64_t run = endOfRun(0, count), before = place - at(0);
    if (before > run && run < count)
      before = run + std::max<int64_t>(place - at(run), 0);
    return std::clamp<int64_t>(before, 0, count);
  }
  /// Whether later ones of `count` elements lie further on.
  bool isIncreasing(int64_t count) const {
    return chunk == 0 || count <= 2 * chunk - offset % (2 * chunk);
  }
};

} // namespace dtc

#endif // DTC_SUPPORT_SEQUENCEORDER_H
