//===- ClusterNodes.cpp - The nodes of a cluster and the hosts of a run ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/ClusterNodes.h"

#include "runtime/fabrics/processes/DevicePlacement.h"
#include "simulator/cluster/ClusterReader.h"
#include "simulator/cluster/Topology.h"

#include <cstdint>
#include <fmt/format.h>

namespace dtc {

/// The last device of those that lie together with `first`.
template <typename PlaceOf>
static int64_t lastTogether(int64_t first, int64_t devices, const PlaceOf &placeOf) {
  int64_t last = first;
  while (last + 1 < devices && placeOf(last + 1) == placeOf(first))
    ++last;
  return last;
}

/// "device 3", "devices 0-3".
static std::string describeDevices(int64_t first, int64_t last) {
  return first == last ? fmt::format("device {}", first)
                       : fmt::format("devices {}-{}", first, last);
}

MaybeError checkNodes(const std::string &clusterPath, const Mesh &mesh,
                      const std::vector<std::string> &hosts) {
  Expected<cluster::Cluster> cluster = readCluster(clusterPath);
  if (!cluster)
    return cluster.error();
  Expected<Topology> topology = Topology::create(*cluster, mesh);
  if (!topology)
    return topology.error().inContext(clusterPath);
  int64_t devices = mesh.numDevices();
  std::vector<int64_t> processes = runtime::placeDevices(devices, std::ssize(hosts));
  auto hostOf = [&](int64_t device) -> const std::string & {
    return hosts[static_cast<size_t>(processes[static_cast<size_t>(device)])];
  };
  auto nodeOf = [&](int64_t device) { return topology->nodeOf(device); };
  for (int64_t first = 0; first < devices;) {
    int64_t ofNode = lastTogether(first, devices, nodeOf);
    int64_t ofHost = lastTogether(first, devices, hostOf);
    if (ofNode != ofHost)
      return Error{fmt::format(
          "{}: node {} has {}, but host {} has {}, so that links are not what the plan was made "
          "for; start as many processes on each host as have the devices of a node, or make a plan "
          "for a cluster with such nodes",
          clusterPath, topology->nodeOf(first), describeDevices(first, ofNode), hostOf(first),
          describeDevices(first, ofHost))};
    first = ofNode + 1;
  }
  return std::nullopt;
}

} // namespace dtc
