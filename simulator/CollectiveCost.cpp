//===- CollectiveCost.cpp - How long a collective takes ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/CollectiveCost.h"

#include <algorithm>

namespace dtc::runtime {

double estimateSeconds(CollectiveKind kind, uint64_t bytes, const std::vector<GroupAxis> &axes) {
  double delay = 0;
  LinkSpeed slowest;
  for (const GroupAxis &axis : axes) {
    if (axis.size <= 1)
      continue;
    delay += static_cast<double>(axis.size - 1) * axis.link.latency;
    slowest.latency = std::max(slowest.latency, axis.link.latency);
    slowest.bandwidth = slowest.bandwidth == 0 ? axis.link.bandwidth
                                               : std::min(slowest.bandwidth, axis.link.bandwidth);
  }
  if (slowest.bandwidth == 0)
    return 0; // one device
  if (kind == CollectiveKind::AllReduce)
    delay *= 2;
  else if (kind == CollectiveKind::Permute)
    delay = slowest.latency;
  return delay + static_cast<double>(bytes) / slowest.bandwidth;
}

} // namespace dtc::runtime
