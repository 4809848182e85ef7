//===- ReshardBuilder.h - Construction of reshard steps -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_RESHARDBUILDER_H
#define DTC_COMPILER_ANALYSIS_RESHARDBUILDER_H

#include "compiler/analysis/ReshardSteps.h"
#include "support/Collective.h"

namespace dtc {

/// The cost of taking a part of a tensor over one axis. A slice moves nothing between devices; the
/// cost only decides between two plans that send the same bytes, in favour of the one with fewer
/// slices.
inline constexpr double kSliceSeconds = 1e-9;

/// The input of a reshard, without spatial axes of size one.
struct ReshardProblem {
  const LinkedMesh &mesh;
  int64_t elementBytes;
  llvm::ArrayRef<int64_t> shape; ///< global
  Layout from, to;
};

/// The axes of a permute from `from` to `to`, the same in another order. An axis that splits the
/// same dimension and has the same product of axes after it in both is left out: no shard moves
/// along it. Nullopt where this is not a permute: where the sizes of shards would differ, a
/// dimension that changes is padded, or an axis that moves is temporal or partial.
struct PermuteAxes {
  AxisList axes, sourceAxes;
};
std::optional<PermuteAxes> getPermute(const LinkedMesh &mesh, llvm::ArrayRef<int64_t> shape,
                                      const Layout &from, const Layout &to);

/// A layout and the plan that leads to it. Every step that is added must be possible.
class ReshardBuilder {
public:
  ReshardBuilder(const ReshardProblem &problem, Layout start)
      : problem(problem), mesh(problem.mesh), now(std::move(start)) {}

  const ReshardSteps &getPlan() const { return plan; }

  void slice(size_t dim, unsigned axis);
  void allReduce(const AxisList &axes);
  void reduceScatter(size_t dim, unsigned axis);
  /// Gathers the last axis of `dim`.
  void allGather(size_t dim);
  void allToAll(size_t dim, size_t splitDim, size_t count);
  void permute(const Layout &next, const PermuteAxes &axes);

  /// Adds steps that end at the problem's target, without looking for the best: completes sums,
  /// then permutes, where that is all that is left and is cheaper; else gathers what differs, and
  /// slices. Returns false where the target cannot be reached from here, by any steps.
  bool complete();

private:
  int64_t size(size_t dim) const { return mesh.localSize(problem.shape[dim], now.dims[dim]); }
  /// The bytes of a shard when its size along `dim` is `size`.
  double bytesWith(size_t dim, int64_t size) const;
  double bytes() const;
  /// Adds a collective.
  void add(ReshardStep step, double localBytes);
  bool gatherThenSlice();

  const ReshardProblem &problem;
  const LinkedMesh &mesh;
  Layout now;
  ReshardSteps plan;
};

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_RESHARDBUILDER_H
