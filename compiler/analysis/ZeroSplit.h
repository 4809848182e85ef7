//===- ZeroSplit.h - Choice of the dimensions that ZeRO splits ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_ZEROSPLIT_H
#define DTC_COMPILER_ANALYSIS_ZEROSPLIT_H

#include "compiler/analysis/Layout.h"

#include <optional>

namespace dtc {

/// The elements that a device has of a tensor of `shape` that lies as `layout`, padding included.
int64_t localElements(const LinkedMesh &mesh, llvm::ArrayRef<int64_t> shape, const Layout &layout);

/// Where ZeRO puts a tensor that lies as `layout`: the same with each of `axes`, none of which
/// splits it yet, appended to a dimension, such that a device has the fewest elements. Of layouts
/// with equally many, one that pads fewer dimensions is taken, then one whose dimensions are
/// `splittable`, then the first. A second dimension has to save 1 %, because it makes a second
/// collective. Some devices may have nothing but padding. None where a device has no fewer elements
/// than before: the tensor has one element, or there are no axes.
std::optional<Layout> splitForZero(const LinkedMesh &mesh, llvm::ArrayRef<int64_t> shape,
                                   const Layout &layout, llvm::ArrayRef<unsigned> axes,
                                   llvm::ArrayRef<bool> splittable);

/// A parameter that ZeRO splits, with what belongs to it.
struct ZeroTensor {
  llvm::SmallVector<int64_t> shape;
  Layout layout;     ///< without ZeRO
  double weight = 1; ///< how much its elements count: how many bytes one takes, say
};

/// An axis of the mesh as two, of `first` devices and of the rest.
struct ZeroCut {
  unsigned axis;
  int64_t first; ///< > 1, divides the axis, and is less than it
};

/// The cut of one of `axes` that leaves a device the least of all `tensors` together, as
/// splitForZero() puts them; none where no cut saves 1 % of that. The prime factors of 1,120 = 7 *
/// 160 devices divide different dimensions: 160 divides 20,480, and 7 of 20,480 pads one in 10,000.
/// If all of `axes` go to one dimension, the shards are those of the axis that was not cut.
std::optional<ZeroCut> findZeroCut(const LinkedMesh &mesh, llvm::ArrayRef<ZeroTensor> tensors,
                                   llvm::ArrayRef<unsigned> axes);

/// The mesh after the cut, and `axes` with it; the second part of the axis is the last of the mesh.
void applyZeroCut(const ZeroCut &cut, LinkedMesh &mesh, AxisList &axes);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_ZEROSPLIT_H
