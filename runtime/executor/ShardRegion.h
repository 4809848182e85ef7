//===- ShardRegion.h - Index ranges of a shard ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_SHARDREGION_H
#define DTC_RUNTIME_EXECUTOR_SHARDREGION_H

#include "plan/plan.pb.h"
#include "support/Mesh.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace dtc::runtime {

/// The box of a global tensor that one device holds. All sizes are in elements. The box lies at the
/// beginning of the device's buffer; where the mesh axes do not divide a dimension, the buffer has
/// padding after the box.
///
/// Where the axis of microbatches splits the first dimension before other axes do, the box has a
/// piece of each microbatch: their rows follow each other in the buffer, and not in the whole.
struct ShardRegion {
  std::vector<int64_t> global; // the shape of the whole
  std::vector<int64_t> offset; // where the box begins in the whole
  std::vector<int64_t> size;   // the shape of the box; 0 where the shard is empty
  std::vector<int64_t> local;  // the shape of the buffer, padding included
  int64_t pieces = 1;          // as many rows of the box each
  int64_t rowsToNextPiece = 0; // in the whole, from the begin of one to that of the next

  /// Rows [begin, end) of the whole that a piece has.
  std::pair<int64_t, int64_t> rowsOfPiece(int64_t piece) const {
    int64_t begin = offset[0] + piece * rowsToNextPiece;
    return {begin, begin + size[0] / pieces};
  }

  /// The shard of `device`; the sharding is valid for the shape and the mesh.
  static ShardRegion of(const Mesh &mesh, const plan::Sharding &sharding,
                        std::vector<int64_t> globalShape, int64_t device);

  /// Calls visit(globalBegin, localBegin, count) for each longest run of elements that are
  /// neighbours both in the whole tensor and in the shard, in the order of both. Begins and counts
  /// are in elements; padding is in no run.
  void forEachRun(const std::function<void(int64_t, int64_t, int64_t)> &visit) const;

  bool operator==(const ShardRegion &) const = default;

private:
  void forEachRunOfPiece(const std::function<void(int64_t, int64_t, int64_t)> &visit) const;
};

/// Sets the padding of a shard to zero. `width` is the bytes of an element.
void clearPadding(const ShardRegion &region, size_t width, std::byte *shard);

/// Copies the shard out of the whole tensor and sets its padding to zero, so that nothing random
/// gets into a program; copies it back, without the padding. `width` is the bytes of an element.
void copyToShard(const ShardRegion &region, size_t width, const std::byte *whole, std::byte *shard);
void copyFromShard(const ShardRegion &region, size_t width, const std::byte *shard,
                   std::byte *whole);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_SHARDREGION_H
