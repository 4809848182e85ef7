//===- WaitTimes.h - Waiting times and stragglers -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_WAITTIMES_H
#define DTC_RUNTIME_TRAIN_WAITTIMES_H

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The processes that waited longest and shortest for others, the first ones of these.
struct WaitTimes {
  double most = 0, least = 0; // seconds
  int64_t mostProcess = 0, leastProcess = 0;
};

/// Of the times of all processes; there is at least one.
WaitTimes waitTimesOf(std::span<const double> seconds);

/// A line for the end of a run. Where one process waits for others much less than they do, they
/// wait for it, and the line says so. `seconds` is the time of all steps; `hosts` are those of the
/// processes.
std::string formatWaitTimes(const WaitTimes &times, double seconds,
                            const std::vector<std::string> &hosts);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_WAITTIMES_H
