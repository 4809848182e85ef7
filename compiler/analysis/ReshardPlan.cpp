//===- ReshardPlan.cpp - From one layout to another -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// On each dimension the axes that already agree, from the coarsest on, are a common prefix. Axes of
// the present layout past it are misplaced, axes of the target past it are missing.
//
// Termination: a slice or reduce_scatter adds a missing axis where it belongs; an all_to_all takes
// a misplaced axis to where it is missing; an all_gather removes misplaced axes; an all_reduce
// completes a sum. No step takes an axis out of a common prefix and none adds a misplaced one, so
// (misplaced, partial, missing) falls lexicographically.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/ReshardPlan.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;

namespace {

class Planner {
public:
  Planner(const Mesh &mesh, const Layout &from, const Layout &to) : mesh(mesh), now(from), to(to) {}

  std::optional<SmallVector<ReshardStep>> run() {
    while (sliceOrScatter())
      ;
    AxisList rest;
    for (unsigned axis : now.partial)
      if (!to.isPartialOver(axis))
        rest.push_back(axis);
    if (!rest.empty()) {
      steps.push_back({ReshardStep::AllReduce, rest});
      dropPartial(rest);
    }
    while (sliceOrScatter() || exchange() || gather())
      ;
    for (const ReshardStep &step : steps)
      if (step.kind != ReshardStep::Slice &&
          llvm::any_of(step.axes, [&](unsigned axis) { return mesh.isTemporal(axis); }))
        return std::nullopt;
    return steps;
  }

private:
  size_t commonPrefix(size_t dim) const {
    size_t length = 0;
    while (length < now.dims[dim].size() && length < to.dims[dim].size() &&
           now.dims[dim][length] == to.dims[dim][length])
      ++length;
    return length;
  }
  bool isPrefix(size_t dim) const { return commonPrefix(dim) == now.dims[dim].size(); }

  void dropPartial(ArrayRef<unsigned> axes) {
    llvm::erase_if(now.partial, [&](unsigned axis) { return llvm::is_contained(axes, axis); });
  }

  /// Appends missing axes to a dimension that has no misplaced ones: partial ones by a
  /// reduce_scatter, unused ones by a slice. Both make the tensor smaller, so they come before
  /// everything else.
  bool sliceOrScatter() {
    for (size_t dim = 0; dim < now.dims.size(); ++dim) {
      if (!isPrefix(dim))
        continue;
      ArrayRef<unsigned> missing = ArrayRef(to.dims[dim]).drop_front(now.dims[dim].size());
      auto isPartial = [&](unsigned axis) { return now.isPartialOver(axis); };
      auto isFree = [&](unsigned axis) { return !now.mentions(axis); };
      AxisList run(missing.take_while(isPartial));
      if (!run.empty()) {
        steps.push_back({ReshardStep::ReduceScatter, run, int64_t(dim)});
        dropPartial(run);
      } else {
        run = AxisList(missing.take_while(isFree));
        if (run.empty())
          continue;
        steps.push_back({ReshardStep::Slice, run, int64_t(dim)});
      }
      now.dims[dim].append(run);
      return true;
    }
    return false;
  }

  /// Moves a misplaced last axis of one dimension to another that misses it next.
  bool exchange() {
    for (size_t dim = 0; dim < now.dims.size(); ++dim) {
      if (isPrefix(dim))
        continue;
      unsigned axis = now.dims[dim].back();
      for (size_t split = 0; split < now.dims.size(); ++split) {
        size_t have = now.dims[split].size();
        if (split == dim || !isPrefix(split) || have == to.dims[split].size() ||
            to.dims[split][have] != axis)
          continue;
        steps.push_back({ReshardStep::AllToAll, {axis}, int64_t(dim), int64_t(split)});
        now.dims[dim].pop_back();
        now.dims[split].push_back(axis);
        return true;
      }
    }
    return false;
  }

  /// Gathers the misplaced axes of a dimension.
  bool gather() {
    for (size_t dim = 0; dim < now.dims.size(); ++dim) {
      size_t keep = commonPrefix(dim);
      if (keep == now.dims[dim].size())
        continue;
      steps.push_back({ReshardStep::AllGather, AxisList(ArrayRef(now.dims[dim]).drop_front(keep)),
                       int64_t(dim)});
      now.dims[dim].truncate(keep);
      return true;
    }
    return false;
  }

  const Mesh &mesh;
  Layout now;
  const Layout &to;
  SmallVector<ReshardStep> steps;
};

} // namespace

std::optional<SmallVector<ReshardStep>> dtc::planReshard(const Mesh &mesh, const Layout &from,
                                                         const Layout &to) {
  return Planner(mesh, from, to).run();
}
