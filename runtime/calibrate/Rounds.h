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

/// Combines several measurements of the same things; at least one, all with the same entries. Other
/// work of a machine makes work on cores slower and never faster: the fastest round counts for each
/// product, each kernel and an instruction. Collectives and messages depend on when threads wake,
/// which may go well or badly by chance: the median counts for these.
cluster::Cluster combineRounds(std::vector<cluster::Cluster> rounds);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_ROUNDS_H
