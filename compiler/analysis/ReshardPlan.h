//===- ReshardPlan.h - From one layout to another -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_RESHARDPLAN_H
#define DTC_COMPILER_ANALYSIS_RESHARDPLAN_H

#include "compiler/analysis/Layout.h"

#include <optional>

namespace dtc {

/// One step of a reshard; the ops of the local view with the same names.
struct ReshardStep {
  enum Kind { Slice, AllReduce, ReduceScatter, AllGather, AllToAll } kind;
  AxisList axes;
  int64_t dim = 0;
  int64_t splitDim = 0; ///< AllToAll only
};

/// The steps that take a tensor from `from` to `to` (whose partial axes are among those of `from`),
/// for any two layouts on any mesh. Returns nullopt where a temporal axis would have to be gathered
/// or reduced, which no step does: slices are the only steps over a temporal axis.
std::optional<llvm::SmallVector<ReshardStep>> planReshard(const Mesh &mesh, const Layout &from,
                                                          const Layout &to);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_RESHARDPLAN_H
