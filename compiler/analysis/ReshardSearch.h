//===- ReshardSearch.h - Search for the cheapest reshard steps ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The graph that findReshardSteps searches: its nodes are layouts, its edges single steps.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_RESHARDSEARCH_H
#define DTC_COMPILER_ANALYSIS_RESHARDSEARCH_H

#include "compiler/analysis/ReshardBuilder.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <array>

namespace dtc {

/// A layout, small enough to search among many: for each axis where it is. Spatial axes of size one
/// are left out; the others are numbered in the order of the mesh.
using LayoutKey = std::array<uint8_t, 16>;

/// The step of an edge. A slice, a reduce_scatter and an all_gather are of one axis: over several
/// one after the other is as cheap, and possible where dimensions are padded.
struct ReshardMove {
  std::optional<CollectiveKind> collective; ///< as in ReshardStep
  uint8_t axis = 0;                         ///< Slice, ReduceScatter: a number in LayoutKey
  uint8_t dim = 0;                          ///< as in ReshardStep
  uint8_t splitDim = 0;                     ///< AllToAll
  uint8_t count = 0;                        ///< AllToAll: how many axes
  uint16_t mask = 0;                        ///< AllReduce: a bit for each axis
};

class ReshardGraph {
public:
  /// Called with the layout at the end of an edge, its cost in seconds, and its step.
  using Visitor =
      llvm::function_ref<void(const LayoutKey &next, double seconds, const ReshardMove &)>;

  explicit ReshardGraph(const ReshardProblem &problem);

  /// Whether layouts fit into a key; else there is no graph.
  bool fits() const { return axes.size() <= LayoutKey().size() && problem.shape.size() < 15; }
  size_t getNumAxes() const { return axes.size(); }
  LayoutKey encode(const Layout &layout) const;
  Layout decode(const LayoutKey &key) const;

  /// Goes over the edges from `key`. There may be as many permutes as orders of all axes: looking
  /// for them ends after placing axes `maxTries` times. Those that bring axes to their target come
  /// first.
  void forEachEdge(const LayoutKey &key, size_t maxTries, Visitor visit);

  /// No path from `key` to the target costs less seconds.
  double lowerBound(const LayoutKey &key);

  /// Adds the step of an edge between these layouts.
  void replay(const LayoutKey &from, const LayoutKey &to, const ReshardMove &move,
              ReshardBuilder &builder) const;

private:
  struct Dim {
    llvm::SmallVector<uint8_t, 8> list; ///< numbers in LayoutKey
    int64_t shards = 1;
    int64_t size = 1;   ///< of a shard, with padding
    bool prefix = true; ///< of the target's list
  };

  void load(const LayoutKey &key);
  double cost(CollectiveKind kind, uint32_t mask, double localBytes) const;
  bool mayAppend(size_t dim, unsigned axis) const;
  void slicesAndReduceScatters(Visitor visit) const;
  void allReduces(Visitor visit) const;
  void allGathers(Visitor visit) const;
  void allToAlls(Visitor visit) const;
  void permutes(Visitor visit);
  void permuteFrom(size_t dim, int64_t shards, unsigned position, uint32_t free, Visitor visit);

  const ReshardProblem &problem;
  llvm::SmallVector<unsigned, 16> axes; ///< number in LayoutKey -> axis of the mesh
  llvm::SmallVector<int64_t, 16> sizes;
  uint32_t temporal = 0;   ///< a bit for each temporal axis
  uint32_t reducible = 0;  ///< a bit for each axis that is not to stay partial
  double targetBytes = 0;  ///< of a shard
  double bandwidth = 0;    ///< the largest of all axes
  double leastLatency = 0; ///< the smallest of all axes
  LayoutKey target;

  // The layout that `load` was given.
  LayoutKey now, next;
  llvm::SmallVector<Dim, 4> dims;
  double bytes = 0; ///< of a shard
  size_t triesLeft = 0;
};

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_RESHARDSEARCH_H
