//===- CollectiveCost.h - What moving bytes is taken to cost --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The costs of ring algorithms (pairwise exchange for all_to_all), as in Thakur, Rabenseifner and
// Gropp, "Optimization of Collective Communication Operations in MPICH", 2005. They are for
// choosing between plans: what matters is that they order plans rightly, not that they predict
// times.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_COLLECTIVECOST_H
#define DTC_COMPILER_ANALYSIS_COLLECTIVECOST_H

#include "compiler/analysis/Layout.h"

namespace dtc {

enum class CollectiveKind { AllReduce, AllGather, ReduceScatter, AllToAll, Permute };

struct CollectiveCost {
  double bytes = 0;   ///< what each device sends
  double seconds = 0; ///< from the first byte to the last
};

/// The cost of a collective over the n devices of `axes`, where each has an input of `localBytes`
/// bytes, padding included:
///
///   kind             bytes                      delay
///   all_gather       localBytes * (n - 1)       d
///   reduce_scatter   localBytes * (n - 1) / n   d
///   all_to_all       localBytes * (n - 1) / n   d
///   all_reduce       twice a reduce_scatter     2 * d
///   permute          localBytes                 the largest latency of the axes
///
/// where d is the sum over the axes of (size - 1) * latency: a ring along each axis in turn.
/// seconds = bytes / (the least bandwidth of the axes) + delay. Over one device a collective costs
/// nothing.
CollectiveCost collectiveCost(const Mesh &mesh, CollectiveKind kind, llvm::ArrayRef<unsigned> axes,
                              double localBytes);

/// collectiveCost(...).seconds
double collectiveSeconds(const Mesh &mesh, CollectiveKind kind, llvm::ArrayRef<unsigned> axes,
                         double localBytes);

/// What taking a part of a tensor over one axis is counted as. It moves nothing between devices;
/// the cost is there so that of two plans that send the same, the one with fewer slices is chosen.
inline constexpr double kSliceSeconds = 1e-9;

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_COLLECTIVECOST_H
