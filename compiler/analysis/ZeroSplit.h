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

/// Chooses the layout that ZeRO gives a tensor of `layout`: it appends each of `axes` to a
/// dimension so that a device has the fewest elements. The axes must not split the tensor yet. If
/// several layouts have as few elements, the choice is one that pads fewer dimensions, then one
/// that splits `splittable` dimensions, then the first. A second dimension has to save 1 %, because
/// it makes a second collective. Some devices may have nothing but padding. Returns nothing where a
/// device has no fewer elements than before: the tensor has one element, or there are no axes.
std::optional<Layout> splitForZero(const LinkedMesh &mesh, llvm::ArrayRef<int64_t> shape,
                                   const Layout &layout, llvm::ArrayRef<unsigned> axes,
                                   llvm::ArrayRef<bool> splittable);

/// A parameter that ZeRO splits, together with its gradient and optimizer state.
struct ZeroTensor {
  llvm::SmallVector<int64_t> shape;
  Layout layout;     ///< without ZeRO
  double weight = 1; ///< of each element in a sum over tensors, such as its bytes
};

/// A mesh axis that becomes two axes: the first of size `first`, the second of the quotient.
struct ZeroCut {
  unsigned axis;
  int64_t first; ///< > 1, divides the axis, and is less than it
};

/// Finds the cut of one of `axes` after which a device holds least of all `tensors` together, by
/// splitForZero(). Returns nothing where no cut saves 1 %. For example, 1,120 devices do not divide
/// 20,480, but 160 of 7 * 160 do, and to split another dimension of 20,480 over 7 pads one element
/// in 10,000. If all of `axes` go to one dimension, the shards are those without the cut.
std::optional<ZeroCut> findZeroCut(const LinkedMesh &mesh, llvm::ArrayRef<ZeroTensor> tensors,
                                   llvm::ArrayRef<unsigned> axes);

/// The mesh after the cut, and `axes` with it; the second part of the axis is the last of the mesh.
void applyZeroCut(const ZeroCut &cut, LinkedMesh &mesh, AxisList &axes);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_ZEROSPLIT_H
