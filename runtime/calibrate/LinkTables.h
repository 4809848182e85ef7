//===- LinkTables.h - Tables of collectives -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_LINKTABLES_H
#define DTC_RUNTIME_CALIBRATE_LINKTABLES_H

#include "simulator/cluster/cluster.pb.h"
#include "support/Collective.h"

#include <cstdint>

namespace dtc::runtime {

/// A collective of f32 whose members have inputs of `bytes` bytes, or of an element for each
/// member if that is more.
CollectiveSpec specOf(CollectiveKind kind, int64_t members, int64_t bytes);

void addPoint(cluster::CollectiveTable &table, double bytes, double seconds);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_LINKTABLES_H
