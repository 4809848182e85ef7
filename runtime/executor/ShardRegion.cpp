//===- ShardRegion.cpp - Where a shard lies in its tensor -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/ShardRegion.h"

#include "runtime/plan/PlanTypes.h"

#include <cstring>

namespace dtc::runtime {

ShardRegion ShardRegion::of(const Mesh &mesh, const plan::Sharding &sharding,
                            std::vector<int64_t> globalShape, int64_t device) {
  ShardRegion region;
  region.global = std::move(globalShape);
  std::vector<std::vector<std::string>> axes = axesByDim(sharding);
  for (size_t d = 0; d < region.global.size(); ++d) {
    region.size.push_back(region.global[d] / mesh.groupSize(axes[d]));
    region.offset.push_back(mesh.blockIndex(device, axes[d]) * region.size[d]);
  }
  return region;
}

void ShardRegion::forEachRun(const std::function<void(int64_t, int64_t, int64_t)> &visit) const {
  // Dimensions behind the last one that is split are whole; with that one they make a run.
  size_t outerDims = 0;
  for (size_t d = 0; d < global.size(); ++d)
    if (size[d] != global[d])
      outerDims = d;
  int64_t run = 1, runStart = 0, runs = 1;
  for (size_t d = outerDims; d < global.size(); ++d) {
    run *= size[d];
    runStart = runStart * global[d] + offset[d];
  }
  for (size_t d = 0; d < outerDims; ++d)
    runs *= size[d];
  if (run == 0)
    return;
  int64_t globalRun = 1;
  for (size_t d = outerDims; d < global.size(); ++d)
    globalRun *= global[d];
  std::vector<int64_t> index(outerDims, 0);
  for (int64_t r = 0; r < runs; ++r) {
    int64_t row = 0;
    for (size_t d = 0; d < outerDims; ++d)
      row = row * global[d] + offset[d] + index[d];
    visit(row * globalRun + runStart, r * run, run);
    for (size_t d = outerDims; d-- > 0;) {
      if (++index[d] < size[d])
        break;
      index[d] = 0;
    }
  }
}

void copyToShard(const ShardRegion &region, size_t width, const std::byte *whole,
                 std::byte *shard) {
  region.forEachRun([&](int64_t globalBegin, int64_t localBegin, int64_t count) {
    std::memcpy(shard + static_cast<size_t>(localBegin) * width,
                whole + static_cast<size_t>(globalBegin) * width,
                static_cast<size_t>(count) * width);
  });
}

void copyFromShard(const ShardRegion &region, size_t width, const std::byte *shard,
                   std::byte *whole) {
  region.forEachRun([&](int64_t globalBegin, int64_t localBegin, int64_t count) {
    std::memcpy(whole + static_cast<size_t>(globalBegin) * width,
                shard + static_cast<size_t>(localBegin) * width,
                static_cast<size_t>(count) * width);
  });
}

} // namespace dtc::runtime
