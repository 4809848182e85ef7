//===- LinkCheck.h - Measurement of links ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_LINKCHECK_H
#define DTC_RUNTIME_FABRICS_PROCESSES_LINKCHECK_H

#include "runtime/fabrics/processes/Messages.h"
#include "support/Error.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The measurement: medians of this many rounds, or of fewer where these take long.
struct LinkCheckOptions {
  size_t bytes = 4 << 20;           ///< of the messages whose bandwidth is measured
  size_t allReduceBytes = 32 << 20; ///< of each process
  int latencyRounds = 101;
  int bandwidthRounds = 7;
};

/// The way between two processes.
struct LinkTime {
  int64_t first = 0, second = 0;
  double latency = 0;   // seconds for a small message, one way
  double bandwidth = 0; // bytes per second, one way, in the slower direction
};

struct LinkTimes {
  std::vector<LinkTime> links; // of each two processes
  double allReduceSeconds = 0;
  size_t allReduceBytes = 0;
};

/// Measures one way after the other, then an all-reduce of all. All processes call it together,
/// while nothing else goes between them; all get the same.
Expected<LinkTimes> measureLinks(const std::shared_ptr<Messages> &messages,
                                 const LinkCheckOptions &options);

/// Lines about them. A link with more than twice the latency of the median, or less than half of
/// its bandwidth, is called slow; `hosts` are those of the processes. Links in hosts and links
/// between hosts have medians of their own.
std::string formatLinks(const LinkTimes &times, const std::vector<std::string> &hosts);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_LINKCHECK_H
