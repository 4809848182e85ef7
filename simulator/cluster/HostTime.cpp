//===- HostTime.cpp - Cost model of a node's host -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/HostTime.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc {

const cluster::DeviceKind &hostOf(const cluster::Cluster &cluster, const cluster::NodeKind &node) {
  return *std::find_if(
      cluster.devices().begin(), cluster.devices().end(),
      [&](const cluster::DeviceKind &device) { return device.name() == node.host(); });
}

MaybeError findMissingHost(const cluster::NodeKind &node) {
  if (!node.host().empty())
    return std::nullopt;
  return Error{fmt::format("values of the plan are to lie in the memory of the host, and the "
                           "cluster does not describe the host of its nodes \"{}\"; expected "
                           "`host` and `host_link` there (docs/clusters.md)",
                           node.name())};
}

double usableHostBytes(const cluster::Cluster &cluster, const cluster::NodeKind &node) {
  return node.host_memory_bytes() > 0 ? node.host_memory_bytes()
                                      : usableBytes(hostOf(cluster, node));
}

HostTime hostTime(const cluster::Cluster &cluster, const cluster::NodeKind &node,
                  const KernelWork &work, Lane lane) {
  const cluster::DeviceKind &host = hostOf(cluster, node);
  if (lane == Lane::Host)
    return {kernelSeconds(host, work) + host.launch_seconds(), 1};
  const cluster::HostLink &link = node.host_link();
  double sustained = link.sustained() > 0 ? link.sustained() : 1;
  double rate = std::min(link.bandwidth() * sustained, host.memory_bandwidth());
  // `bytes` counts the bytes that are read, and those that are written in the other memory.
  return {link.latency() + work.bytes / 2 / rate, rate / host.memory_bandwidth()};
}

} // namespace dtc
