//===- CollectiveCost.h - What a collective sends and takes ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The time of a collective is estimated with the model of Thakur, Rabenseifner and Gropp,
// "Optimization of Collective Communication Operations in MPICH", International Journal of High
// Performance Computing Applications 19(1), 2005, sections 3 and 4: a message of m bytes takes
// latency + m / bandwidth, and devices send and receive at the same time. With the algorithms in
// which every device sends to its neighbour on a ring, or to one other device at a time, a group of
// n devices that sends b bytes from each takes
//
//   all_gather, reduce_scatter, all_to_all   (n - 1) latency + b / bandwidth
//   all_reduce                               2 (n - 1) latency + b / bandwidth
//   permute                                  latency + b / bandwidth
//
// where an all_reduce is a reduce_scatter and an all_gather. Neither the arithmetic of reductions
// nor other traffic on the same links is counted.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_REPORT_COLLECTIVECOST_H
#define DTC_RUNTIME_REPORT_COLLECTIVECOST_H

#include "runtime/plan/plan.pb.h"
#include "runtime/support/LinkSpeed.h"

#include <cstdint>
#include <vector>

namespace dtc::runtime {

/// "all_reduce", "permute".
const char *collectiveName(plan::Collective::Kind kind);

/// The bytes that one device of a group of `members` sends for one tensor of a collective; see
/// CollectiveSpec::ringBytes(). In a permute every device counts as sending its whole shard, also
/// one that keeps it. The plan is one that validatePlan() accepts.
uint64_t sentBytes(const plan::Program &program, const plan::Collective &collective,
                   const plan::CollectiveTensor &tensor, int64_t members);

/// The link that decides where a group spans several axes: the least bandwidth and the largest
/// latency among them.
LinkSpeed slowestLink(const std::vector<LinkSpeed> &links);

/// Seconds of one collective in which every device sends `bytes`. `link` has a bandwidth.
double estimateSeconds(plan::Collective::Kind kind, int64_t members, uint64_t bytes,
                       const LinkSpeed &link);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_REPORT_COLLECTIVECOST_H
