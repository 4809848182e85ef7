//===- ShardRegion.cpp - Index ranges of a shard --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/ShardRegion.h"

#include "plan/PlanTypes.h"
#include "support/CheckedMath.h"

#include <algorithm>
#include <cstring>

namespace dtc::runtime {

ShardRegion ShardRegion::of(const Mesh &mesh, const plan::Sharding &sharding,
                            std::vector<int64_t> globalShape, int64_t device) {
  ShardRegion region;
  region.global = std::move(globalShape);
  std::vector<std::vector<std::string>> axes = axesByDim(sharding);
  for (size_t d = 0; d < region.global.size(); ++d) {
    std::vector<std::string> inside = mesh.axesInsideMicrobatches(axes[d]);
    ShardExtent extent = mesh.shardExtent(device, axes[d], region.global[d]);
    if (d == 0 && !inside.empty()) {
      // The parts are even, as the plan was verified.
      std::vector<std::string> outside(axes[d].begin(), axes[d].end() - std::ssize(inside) - 1);
      ShardExtent ofDevice = mesh.shardExtent(device, outside, region.global[d]);
      region.pieces = mesh.find(axes[d][outside.size()])->size;
      region.rowsToNextPiece = ofDevice.count / region.pieces;
      ShardExtent piece = mesh.shardExtent(device, inside, region.rowsToNextPiece);
      extent = {ofDevice.offset + piece.offset, piece.count * region.pieces,
                piece.room * region.pieces};
    }
    region.offset.push_back(extent.offset);
    region.size.push_back(extent.count);
    region.local.push_back(extent.room);
  }
  return region;
}

void ShardRegion::forEachRun(const std::function<void(int64_t, int64_t, int64_t)> &visit) const {
  if (pieces == 1)
    return forEachRunOfPiece(visit);
  int64_t rowsOfPiece = size[0] / pieces, rowElements = 1;
  for (size_t d = 1; d < local.size(); ++d)
    rowElements *= local[d];
  ShardRegion one = *this;
  one.size[0] = rowsOfPiece;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    one.offset[0] = this->rowsOfPiece(piece).first;
    int64_t before = piece * rowsOfPiece * rowElements;
    one.forEachRunOfPiece([&](int64_t globalBegin, int64_t localBegin, int64_t count) {
      visit(globalBegin, before + localBegin, count);
    });
  }
}

/// Does what forEachRun() does, for a box of one piece.
void ShardRegion::forEachRunOfPiece(
    const std::function<void(int64_t, int64_t, int64_t)> &visit) const {
  // Dimensions after the last one that is split are whole; with that one they make a run.
  size_t outerDims = 0;
  for (size_t d = 0; d < global.size(); ++d)
    if (size[d] != global[d] || size[d] != local[d])
      outerDims = d;
  // An empty shard's offset may lie outside of the whole, so that nothing is computed with it.
  if (std::find(size.begin(), size.end(), 0) != size.end())
    return;
  int64_t run = 1, runStart = 0, runs = 1, globalRow = 1, localRow = 1;
  for (size_t d = outerDims; d < global.size(); ++d) {
    run *= size[d];
    runStart = runStart * global[d] + offset[d];
    globalRow *= global[d];
    localRow *= local[d];
  }
  for (size_t d = 0; d < outerDims; ++d)
    runs *= size[d];
  std::vector<int64_t> index(outerDims, 0);
  for (int64_t r = 0; r < runs; ++r) {
    int64_t inGlobal = 0, inLocal = 0;
    for (size_t d = 0; d < outerDims; ++d) {
      inGlobal = inGlobal * global[d] + offset[d] + index[d];
      inLocal = inLocal * local[d] + index[d];
    }
    visit(inGlobal * globalRow + runStart, inLocal * localRow, run);
    for (size_t d = outerDims; d-- > 0;) {
      if (++index[d] < size[d])
        break;
      index[d] = 0;
    }
  }
}

void clearPadding(const ShardRegion &region, size_t width, std::byte *shard) {
  if (region.size == region.local)
    return;
  // Runs come in the order of the shard, so that the padding is between them.
  int64_t end = 0;
  auto clearUpTo = [&](int64_t next) {
    std::fill(shard + static_cast<size_t>(end) * width, shard + static_cast<size_t>(next) * width,
              std::byte{0});
  };
  region.forEachRun([&](int64_t, int64_t localBegin, int64_t count) {
    clearUpTo(localBegin);
    end = localBegin + count;
  });
  clearUpTo(checkedElements(region.local).value_or(0));
}

void copyToShard(const ShardRegion &region, size_t width, const std::byte *whole,
                 std::byte *shard) {
  clearPadding(region, width, shard);
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
