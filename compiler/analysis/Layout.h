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
#include "simulator/cluster/GroupShape.h"
#include "support/LinkSpeed.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>

namespace dtc {

/// Indices into LinkedMesh::axes, coarsest first.
using AxisList = llvm::SmallVector<unsigned, 2>;

/// The assumed rates of a device where none are given: about half of the rates of an NVIDIA A100
/// (its datasheet). It weighs computing the same thing on several devices against moving bytes.
inline constexpr double kDefaultDeviceFlops = 150e12;     ///< a second
inline constexpr double kDefaultDeviceBandwidth = 1.5e12; ///< of the memory, bytes a second

struct LinkedAxis {
  std::string name;
  int64_t size = 1;
  bool temporal = false;
  double bandwidth = kAssumedLink.bandwidth; ///< > 0, bytes a second in each direction
  double latency = kAssumedLink.latency;     ///< seconds before the first byte
  bool hasKnownLink = false;                 ///< the bandwidth is not the assumed one
  std::string subAxisOf = {}; ///< the axis that the user knows, if this is a part of it
  bool pipeline = false;      ///< devices along it work on different stages; it splits no tensor
};

struct LinkedMesh {
  std::string name;
  llvm::SmallVector<LinkedAxis> axes;
  double deviceFlops = kDefaultDeviceFlops;         ///< a second, of one device
  double deviceBandwidth = kDefaultDeviceBandwidth; ///< bytes a second, of one device's memory

  std::optional<unsigned> find(llvm::StringRef axis) const;
  /// The axes that a user means by a name: the axis of that name, or all parts of it.
  AxisList findAll(llvm::StringRef axis) const;
  /// The number of shards that `list` makes.
  int64_t product(llvm::ArrayRef<unsigned> list) const;
  /// The size in elements of one shard of `size` elements over `list`, padding included. Splitting
  /// axis by axis, each time rounding up, gives the same.
  int64_t localSize(int64_t size, llvm::ArrayRef<unsigned> list) const;
  /// Whether some shard of `size` elements over `list` is nothing but padding.
  bool leavesEmptyShards(int64_t size, llvm::ArrayRef<unsigned> list) const;
  /// Whether `list` makes shards of `size` elements without padding.
  bool divides(int64_t size, llvm::ArrayRef<unsigned> list) const;
  /// Whether splitting `size` elements axis by axis gives each rank, row-major over `list`, the
  /// block of that number. Blocks of blocks are that only where no axis after the first pads: 5
  /// elements over {2, 2} are blocks of 3, then of 2, and rank 2 starts at 3 and not at 4.
  bool splitsInRankOrder(int64_t size, llvm::ArrayRef<unsigned> list) const;
  /// The temporal axis, if there is one.
  std::optional<unsigned> temporalAxis() const;
  /// The axis over which the stages of a pipeline are laid, if there is one.
  std::optional<unsigned> pipelineAxis() const;
  bool isTemporal(unsigned axis) const { return axes[axis].temporal; }
  /// The devices of a group over `list`, as collectiveTime() takes them: a torus, since all that is
  /// known are the links of the axes.
  GroupShape groupOver(llvm::ArrayRef<unsigned> list) const;
  /// {"dp", "tp"}
  std::string str(llvm::ArrayRef<unsigned> list) const;
};

/// The sharding and the partial axes of a tensor; see #dist.sharding.
struct Layout {
  llvm::SmallVector<AxisList, 4> dims;
  AxisList partial; ///< sorted
  ReductionKind partialKind = ReductionKind::Sum;

  static Layout replicated(int64_t rank) { return {.dims = llvm::SmallVector<AxisList, 4>(rank)}; }
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
  Layout complete() const { return {.dims = dims}; }
  /// The shape of one shard, padding included: sizes are rounded up.
  llvm::SmallVector<int64_t> localShape(const LinkedMesh &mesh,
                                        llvm::ArrayRef<int64_t> shape) const;
  /// Whether no dimension of `shape` is padded.
  bool divides(const LinkedMesh &mesh, llvm::ArrayRef<int64_t> shape) const;
  std::string str(const LinkedMesh &mesh) const;
};

/// The axes of each factor of an op, for one execution of it on the mesh.
using FactorAxes = llvm::SmallVector<AxisList>;

/// The layout of a tensor when the factors are split by `axes`; nullopt where that is no list of
/// equal contiguous blocks (a minor factor of a dimension is split while a major one is not split
/// completely).
std::optional<Layout> layoutFromFactors(const LinkedMesh &mesh, const ShardingRule &rule,
                                        const TensorFactors &tensor, const FactorAxes &axes);

/// Hands the axes of dimension `dim` to its factors, major first. Returns how many axes could be
/// handed out: an axis that would split across two factors, and all after it, cannot.
unsigned factorsFromDim(const LinkedMesh &mesh, const ShardingRule &rule,
                        llvm::ArrayRef<unsigned> dimFactors, llvm::ArrayRef<unsigned> dimAxes,
                        FactorAxes &axes);

/// The bytes of an element of a tensor type; an i1 takes one.
int64_t elementBytes(mlir::Type tensor);

/// Conversions between IR and data.
LinkedMesh getMesh(dist::MeshOp op);
Layout getLayout(const LinkedMesh &mesh, dist::ShardingAttr attr);
dist::ShardingAttr toAttr(mlir::MLIRContext *context, const LinkedMesh &mesh, const Layout &layout);

/// The only mesh of a module; emits an error where there is none or more than one.
mlir::FailureOr<dist::MeshOp> findMesh(mlir::Operation *module);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_LAYOUT_H
