//===- CollectiveCost.h - How long a collective takes --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The time of a collective is estimated with the model of Thakur, Rabenseifner and Gropp,
// "Optimization of Collective Communication Operations in MPICH", International Journal of High
// Performance Computing Applications 19(1), 2005, sections 3 and 4: a message of m bytes takes
// latency + m / bandwidth, and devices send and receive at the same time. With the algorithms in
// which every device sends to its neighbour on a ring, or to one other device at a time, a group
// that sends b bytes from each device takes
//
//   all_gather, reduce_scatter, all_to_all   d + b / bandwidth
//   all_reduce                               2 d + b / bandwidth
//   permute                                  latency + b / bandwidth
//
// where d is the sum over the axes of the group of (size - 1) * latency (a ring along each axis in
// turn), bandwidth is the least of the axes and latency the largest. An all_reduce is a
// reduce_scatter and an all_gather. Neither the arithmetic of reductions nor other traffic on the
// same links is counted. The compiler chooses by the same costs; a test holds the two together.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_COLLECTIVECOST_H
#define DTC_SIMULATOR_COLLECTIVECOST_H

#include "support/Collective.h"
#include "support/LinkSpeed.h"

#include <cstdint>
#include <vector>

namespace dtc::runtime {

/// One of the mesh axes that a group spans.
struct GroupAxis {
  int64_t size = 1;
  LinkSpeed link; ///< has a bandwidth
};

/// Seconds of one collective over `axes` in which every device sends `bytes`.
double estimateSeconds(CollectiveKind kind, uint64_t bytes, const std::vector<GroupAxis> &axes);

} // namespace dtc::runtime

#endif // DTC_SIMULATOR_COLLECTIVECOST_H
