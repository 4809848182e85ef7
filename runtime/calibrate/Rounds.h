//===- Rounds.h - Calibration rounds --------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_ROUNDS_H
#define DTC_RUNTIME_CALIBRATE_ROUNDS_H

#include "simulator/cluster/cluster.pb.h"

#include <vector>

namespace dtc::runtime {

/// What several measurements of the same things say together; at least one, all with the same
/// entries. What else a machine does makes work on cores slower and never faster: of each product,
/// of each kernel and of an instruction the fastest round counts. Collectives and messages depend
/// on when threads wake, which may go well or badly by chance: of these the median counts.
cluster::Cluster combineRounds(std::vector<cluster::Cluster> rounds);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_ROUNDS_H
