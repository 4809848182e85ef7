//===- ClusterFields.h - Ranges and words of cluster fields ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_CLUSTER_CLUSTERFIELDS_H
#define DTC_SIMULATOR_CLUSTER_CLUSTERFIELDS_H

#include "simulator/cluster/cluster.pb.h"
#include "support/Error.h"

namespace dtc {

/// Numbers are 0 or of a size within these, so that no sum or product of a few of them overflows: a
/// number beyond is a mistake of units of measure. Whole numbers are at most `largestCount`.
inline constexpr double kSmallestNumber = 1e-18;
inline constexpr double kLargestNumber = 1e18;
inline constexpr int64_t kLargestCount = int64_t{1} << 31;

/// The first field whose value makes no sense by itself: numbers out of their range, names that are
/// empty, unknown words, lists that are empty or do not rise.
MaybeError checkFields(const cluster::Cluster &cluster);

} // namespace dtc

#endif // DTC_SIMULATOR_CLUSTER_CLUSTERFIELDS_H
