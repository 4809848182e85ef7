//===- ZeroSplit.cpp - Choice of the dimensions that ZeRO splits ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// All assignments of axes to dimensions are tried: few axes split the batch, and parameters have
// few dimensions. The size of a shard depends on the number of shards of each dimension alone
// (LinkedMesh::localSize), so that the order of the axes does not matter.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/ZeroSplit.h"

#include <tuple>

using namespace mlir;
using namespace dtc;

/// The least saving that justifies one more collective, or a cut, as a part of the whole.
static constexpr double kWorthwhile = 0.01;

/// The number of axes that go to dimensions one by one; the axes after them go where the last of
/// these goes.
static constexpr size_t kMaxAxesApart = 6;

int64_t dtc::localElements(const LinkedMesh &mesh, ArrayRef<int64_t> shape, const Layout &layout) {
  int64_t elements = 1;
  for (int64_t size : layout.localShape(mesh, shape))
    elements *= size;
  return elements;
}

namespace {
/// How good it is to split a tensor so; less is better.
using Rank = std::tuple<double, unsigned, unsigned>;
} // namespace

static Rank rankOf(const LinkedMesh &mesh, ArrayRef<int64_t> shape, const Layout &before,
                   const Layout &after, ArrayRef<bool> splittable) {
  unsigned dims = 0, padded = 0, unsplittable = 0;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (after.dims[dim].size() == before.dims[dim].size())
      continue;
    ++dims;
    padded += !mesh.divides(size, after.dims[dim]);
    unsplittable += !splittable[dim];
  }
  double extra = dims > 1 ? kWorthwhile * (dims - 1) : 0;
  return {double(localElements(mesh, shape, after)) * (1 + extra), padded, unsplittable};
}

std::optional<Layout> dtc::splitForZero(const LinkedMesh &mesh, ArrayRef<int64_t> shape,
                                        const Layout &layout, ArrayRef<unsigned> axes,
                                        ArrayRef<bool> splittable) {
  if (axes.empty() || shape.empty())
    return std::nullopt;
  std::optional<Layout> best;
  Rank bestRank;
  // The dimensions of the axes, counted up like the digits of a number, the first axis first.
  SmallVector<unsigned> dims(std::min(axes.size(), kMaxAxesApart), 0);
  for (bool more = true; more;) {
    Layout next = layout;
    for (auto [index, axis] : llvm::enumerate(axes))
      next.dims[dims[std::min(index, dims.size() - 1)]].push_back(axis);
    Rank rank = rankOf(mesh, shape, layout, next, splittable);
    if (!best || rank < bestRank) {
      best = std::move(next);
      bestRank = rank;
    }
    more = false;
    for (unsigned &dim : llvm::reverse(dims)) {
      more = ++dim < shape.size();
      if (more)
        break;
      dim = 0;
    }
  }
  bool saves = localElements(mesh, shape, *best) < localElements(mesh, shape, layout);
  return saves || mesh.product(axes) == 1 ? best : std::nullopt;
}

void dtc::applyZeroCut(const ZeroCut &cut, LinkedMesh &mesh, AxisList &axes) {
  LinkedAxis second = mesh.axes[cut.axis];
  second.size /= cut.first;
  mesh.axes[cut.axis].size = cut.first;
  if (auto *place = llvm::find(axes, cut.axis); place != axes.end())
    axes.insert(place + 1, unsigned(mesh.axes.size()));
  mesh.axes.push_back(std::move(second));
}

/// The elements of all tensors on a device, by weight.
static double heldElements(const LinkedMesh &mesh, ArrayRef<ZeroTensor> tensors,
                           ArrayRef<unsigned> axes) {
  double sum = 0;
  for (const ZeroTensor &tensor : tensors) {
    AxisList free;
    for (unsigned axis : axes)
      if (!tensor.layout.isShardedOver(axis))
        free.push_back(axis);
    std::optional<Layout> split = splitForZero(mesh, tensor.shape, tensor.layout, free,
                                               SmallVector<bool>(tensor.shape.size(), true));
    sum +=
        tensor.weight * double(localElements(mesh, tensor.shape, split ? *split : tensor.layout));
  }
  return sum;
}

std::optional<ZeroCut> dtc::findZeroCut(const LinkedMesh &mesh, ArrayRef<ZeroTensor> tensors,
                                        ArrayRef<unsigned> axes) {
  double least = heldElements(mesh, tensors, axes) * (1 - kWorthwhile);
  // As even as it can be: the rest is for what is at best.
  double ideal = 0;
  for (const ZeroTensor &tensor : tensors) {
    double shards = 1;
    for (unsigned axis : axes)
      if (!tensor.layout.isShardedOver(axis))
        shards *= double(mesh.axes[axis].size);
    ideal += tensor.weight * double(localElements(mesh, tensor.shape, tensor.layout)) / shards;
  }
  if (ideal >= least)
    return std::nullopt;
  std::optional<ZeroCut> best;
  for (unsigned axis : axes)
    for (int64_t first = 2; first < mesh.axes[axis].size; ++first) {
      if (mesh.axes[axis].size % first != 0)
        continue;
      LinkedMesh parts = mesh;
      AxisList partAxes(axes);
      ZeroCut cut{axis, first};
      applyZeroCut(cut, parts, partAxes);
      // Both parts split the dimensions that the axis splits already.
      SmallVector<ZeroTensor> moved(tensors);
      for (ZeroTensor &tensor : moved)
        for (AxisList &dim : tensor.layout.dims)
          if (auto *place = llvm::find(dim, axis); place != dim.end())
            dim.insert(place + 1, unsigned(mesh.axes.size()));
      double held = heldElements(parts, moved, partAxes);
      if (held < least) {
        least = held;
        best = cut;
      }
    }
  return best;
}
