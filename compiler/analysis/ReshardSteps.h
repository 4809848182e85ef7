//===- ReshardSteps.h - Steps of a reshard ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_RESHARDSTEPS_H
#define DTC_COMPILER_ANALYSIS_RESHARDSTEPS_H

#include "compiler/analysis/Layout.h"
#include "support/Kinds.h"

#include <map>
#include <optional>
#include <vector>

namespace dtc {

/// One step of a reshard. Ranks in a group are row-major over `axes`.
///
/// Sizes are those of a shard, in elements, padding included; a step says what its emitter needs:
///  * before a slice, ReduceScatter or AllToAll, the dimension that is split is padded at its end
///  to
///    `splitSize` times the number of devices in `axes` (the value of the padding does not matter);
///  * after an AllGather or AllToAll, the dimension that is joined is cut to its first
///    `gatheredSize` elements.
/// Where dimensions divide, neither changes anything.
///
///   collective its effect on the layout none: a slice appends unused axes to `dim` AllReduce
///   completes the sum over partial axes ReduceScatter completes the sum over partial axes and
///   appends them to `dim` AllGather removes the last axes of `dim` AllToAll moves the last axes of
///   `dim` to the end of `splitDim`, in the same order Permute any change of the axes of dimensions
///   that keeps all shards' sizes: each device
///                   receives the shard of the member of its group (the devices that differ on
///                   `axes`) whose rank is the receiver's own number, row-major over `sourceAxes`:
///                   the same axes in another order.
struct ReshardStep {
  std::optional<CollectiveKind> collective; ///< none of a slice, which moves nothing
  AxisList axes;
  int64_t dim = 0;          ///< not AllReduce, Permute
  int64_t splitDim = 0;     ///< AllToAll only
  int64_t gatheredSize = 0; ///< AllGather, AllToAll: the size of `dim` after the step
  /// Slice and ReduceScatter: the size of `dim` after the step. AllToAll: the size of `splitDim`.
  int64_t splitSize = 0;
  AxisList sourceAxes; ///< Permute only
};

struct ReshardSteps {
  llvm::SmallVector<ReshardStep> steps;
  double seconds = 0; ///< estimated, see CollectiveTime.h
  double bytes = 0;   ///< sent by each device
};

/// The cheapest steps that take a tensor of the global shape `shape` from `from` to `to`, by the
/// costs of CollectiveTime.h. For up to four axes of more than one device and tensors of up to four
/// dimensions there is no cheaper plan; beyond, the search is bounded, and the plan costs at most
/// what completing sums, gathering all that differs and slicing costs.
///
/// Returns nullopt where there is no plan: where a temporal axis would have to be gathered, reduced
/// or moved, since microbatches cannot see each other, and where `to` is partial over an axis that
/// `from` is not partial over.
///
/// Steps leave out spatial axes of size one, which split nothing.
std::optional<ReshardSteps> findReshardSteps(const LinkedMesh &mesh, int64_t elementBytes,
                                             llvm::ArrayRef<int64_t> shape, const Layout &from,
                                             const Layout &to);

/// findReshardSteps on one mesh, with a memory: a model of many equal layers asks for the same few
/// steps again and again, and so do the passes of a compilation and the candidates of a search,
/// which share the results of a thread. Not for use by several threads at a time.
class ReshardCache {
public:
  explicit ReshardCache(const LinkedMesh &mesh);

  /// The result of findReshardSteps; the reference lives as long as the thread.
  const std::optional<ReshardSteps> &plan(int64_t elementBytes, llvm::ArrayRef<int64_t> shape,
                                          const Layout &from, const Layout &to);

private:
  using Known = std::map<std::vector<int64_t>, std::optional<ReshardSteps>>;

  LinkedMesh mesh;
  Known &known; ///< of all meshes that are like this one but for names
};

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_RESHARDSTEPS_H
