//===- FlightRecord.h - Flight record of a process ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_FLIGHTRECORD_H
#define DTC_RUNTIME_TRAIN_FLIGHTRECORD_H

#include "runtime/executor/RunWatch.h"
#include "support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtc::runtime {

/// Writes to `folder`, which it makes, a file process-N.json for a process whose run has ended for
/// `reason`: of each of its devices the last collectives and transfers, with their sizes, states
/// and times, and those that were to come next, each with its predicted time alone.
/// Times are in seconds before the record; they are those of the host, which on a GPU enqueues what
/// is done later.
MaybeError writeFlightRecord(const std::string &folder, int64_t process, const std::string &host,
                             const std::string &reason, const std::vector<DeviceFlight> &devices);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_FLIGHTRECORD_H
