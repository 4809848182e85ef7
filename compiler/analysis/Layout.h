//===- Layout.h - Shardings as plain data ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The analyses work on these types, not on attributes: mesh axes are small integers, and nothing
// here knows IR except the two conversions at the end.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_LAYOUT_H
#define DTC_COMPILER_ANALYSIS_LAYOUT_H

#include "dialects/dist/Dist.h"
#include "dialects/dtc/ShardingRule.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>

namespace dtc {

/// Indices into Mesh::axes, coarsest first.
using AxisList = llvm::SmallVector<unsigned, 2>;

struct MeshAxis {
  std::string name;
  int64_t size = 1;
  bool temporal = false;
};

struct Mesh {
  std::string name;
  llvm::SmallVector<MeshAxis> axes;

  std::optional<unsigned> find(llvm::StringRef axis) const;
  /// The number of shards that `list` makes.
  int64_t product(llvm::ArrayRef<unsigned> list) const;
  /// The temporal axis, if there is one.
  std::optional<unsigned> temporalAxis() const;
  bool isTemporal(unsigned axis) const { return axes[axis].temporal; }
  /// {"dp", "tp"}
  std::string str(llvm::ArrayRef<unsigned> list) const;
};

/// How a tensor lies on a mesh; see #dist.sharding.
struct Layout {
  llvm::SmallVector<AxisList, 4> dims;
  AxisList partial; ///< sorted
  dist::ReductionKind partialKind = dist::ReductionKind::Sum;

  static Layout replicated(int64_t rank) { return {llvm::SmallVector<AxisList, 4>(rank), {}, {}}; }
  bool operator==(const Layout &other) const {
    return dims == other.dims && partial == other.partial &&
           (partial.empty() || partialKind == other.partialKind);
  }
  bool operator!=(const Layout &other) const { return !(*this == other); }

  bool isPartialOver(unsigned axis) const { return llvm::is_contained(partial, axis); }
  /// Whether `axis` splits a dimension.
  bool isShardedOver(unsigned axis) const;
  bool mentions(unsigned axis) const { return isPartialOver(axis) || isShardedOver(axis); }
  /// The same without partial axes.
  Layout complete() const { return {dims, {}, {}}; }
  /// The shape of one shard; each dimension must divide.
  llvm::SmallVector<int64_t> localShape(const Mesh &mesh, llvm::ArrayRef<int64_t> shape) const;
  std::string str(const Mesh &mesh) const;
};

/// The axes of each factor of an op, for one execution of it on the mesh.
using FactorAxes = llvm::SmallVector<AxisList>;

/// The layout of a tensor when the factors are split by `axes`; nullopt where that is no list of
/// equal contiguous blocks (a minor factor of a dimension is split while a major one is not split
/// completely).
std::optional<Layout> layoutFromFactors(const Mesh &mesh, const ShardingRule &rule,
                                        const TensorFactors &tensor, const FactorAxes &axes);

/// Hands the axes of dimension `dim` to its factors, major first. Returns how many axes could be
/// handed out: an axis that would split across two factors, and all after it, cannot.
unsigned factorsFromDim(const Mesh &mesh, const ShardingRule &rule,
                        llvm::ArrayRef<unsigned> dimFactors, llvm::ArrayRef<unsigned> dimAxes,
                        FactorAxes &axes);

/// Conversions between IR and data.
Mesh getMesh(dist::MeshOp op);
Layout getLayout(const Mesh &mesh, dist::ShardingAttr attr);
dist::ShardingAttr toAttr(mlir::MLIRContext *context, const Mesh &mesh, const Layout &layout);

/// The only mesh of a module; emits an error where there is none or more than one.
mlir::FailureOr<dist::MeshOp> findMesh(mlir::Operation *module);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_LAYOUT_H
