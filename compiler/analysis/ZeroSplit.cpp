//===- ZeroSplit.cpp - Choice of the dimension that ZeRO splits -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/ZeroSplit.h"

using namespace mlir;
using namespace dtc;

std::optional<unsigned> dtc::chooseZeroDim(const LinkedMesh &mesh, ArrayRef<int64_t> shape,
                                           const Layout &layout, ArrayRef<unsigned> axes,
                                           ArrayRef<bool> splittable) {
  int64_t shards = mesh.product(axes);
  SmallVector<int64_t> local = layout.localShape(mesh, shape);
  for (bool any : {false, true})
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if ((any || splittable[dim]) && shape[dim] % (shards * mesh.product(layout.dims[dim])) == 0)
        return dim;
  auto *largest = llvm::max_element(local);
  if (largest == local.end() || mesh.leavesEmptyShards(*largest, axes))
    return std::nullopt;
  return largest - local.begin();
}
