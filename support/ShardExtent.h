//===- ShardExtent.h - The part of a dimension that a shard holds ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Mesh axes split a dimension one after the other, as plan.proto's DimSharding says. If they do not
// divide it, the last shards are short or empty, but all have room for the same number of elements.
// The room after the existing elements is padding.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_SHARDEXTENT_H
#define DTC_SUPPORT_SHARDEXTENT_H

#include "support/CheckedMath.h"

#include <algorithm>
#include <cstdint>

namespace dtc {

/// The elements for which each of `blocks` shards of a dimension of `size` elements has room,
/// padding included. Rounding up axis by axis gives the same number as rounding up once, so that
/// neither the order of the axes nor the device matters.
inline int64_t paddedShardSize(int64_t size, int64_t blocks) {
  return size / blocks + (size % blocks != 0);
}

/// Whether all shards together, padding included, have a number of elements that fits an int64_t.
/// Then the offsets of ShardExtent fit as well.
inline bool paddedShardsFit(int64_t size, int64_t blocks) {
  return checkedMul(paddedShardSize(size, blocks), blocks).has_value();
}

/// A block of a dimension; all numbers are in elements of it.
struct ShardExtent {
  int64_t offset = 0; // where the block begins in the whole; may lie after the end if it is empty
  int64_t count = 0;  // the elements that exist: a prefix of the block
  int64_t room = 0;   // the elements that its buffer holds, padding included

  /// A dimension that nothing splits yet.
  static ShardExtent whole(int64_t size) { return {0, size, size}; }

  /// The part at `coordinate` of an axis of size `axisSize` that splits this block. The parts are
  /// equal parts of the room and not of the elements that exist, or devices would disagree on the
  /// size of their buffers.
  ShardExtent part(int64_t axisSize, int64_t coordinate) const {
    int64_t size = paddedShardSize(room, axisSize);
    int64_t begin = coordinate * size;
    return {offset + begin, std::clamp<int64_t>(count - begin, 0, size), size};
  }

  bool operator==(const ShardExtent &) const = default;
};

} // namespace dtc

#endif // DTC_SUPPORT_SHARDEXTENT_H
