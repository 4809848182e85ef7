//===- ShardRegion.h - Where a shard lies in its tensor -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_SHARDREGION_H
#define DTC_RUNTIME_EXECUTOR_SHARDREGION_H

#include "runtime/plan/plan.pb.h"
#include "runtime/support/Mesh.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace dtc::runtime {

/// The box of a global tensor that one device holds. All sizes are in elements.
struct ShardRegion {
  std::vector<int64_t> global; // the shape of the whole
  std::vector<int64_t> offset;
  std::vector<int64_t> size;

  /// The shard of `device`; the sharding is valid for the shape and the mesh.
  static ShardRegion of(const Mesh &mesh, const plan::Sharding &sharding,
                        std::vector<int64_t> globalShape, int64_t device);

  /// Calls visit(globalBegin, localBegin, count) for each longest run of elements that are
  /// neighbours both in the whole tensor and in the shard, in order.
  void forEachRun(const std::function<void(int64_t, int64_t, int64_t)> &visit) const;
};

/// Copies the shard out of the whole tensor, and back into it. `width` is the bytes of an element.
void copyToShard(const ShardRegion &region, size_t width, const std::byte *whole, std::byte *shard);
void copyFromShard(const ShardRegion &region, size_t width, const std::byte *shard,
                   std::byte *whole);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_SHARDREGION_H
