//===- Topology.h - Assignment of devices to nodes ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_CLUSTER_TOPOLOGY_H
#define DTC_SIMULATOR_CLUSTER_TOPOLOGY_H

#include "simulator/cluster/GroupShape.h"
#include "simulator/cluster/cluster.pb.h"
#include "support/Error.h"
#include "support/Mesh.h"

#include <string>
#include <vector>

namespace dtc {

/// The devices of a mesh on a cluster: device d of the mesh is device d of the cluster, whose nodes
/// are numbered through their groups in order. The cluster outlives the topology.
class Topology {
public:
  /// An error if the cluster has fewer devices than the mesh. The cluster is one that
  /// checkCluster() accepts.
  static Expected<Topology> create(const cluster::Cluster &cluster, Mesh mesh);

  const cluster::Cluster &cluster() const { return *description; }
  const Mesh &mesh() const { return devices; }
  int64_t numNodes() const { return usedNodes; }
  int64_t nodeOf(int64_t device) const;
  const cluster::NodeKind &nodeKindOf(int64_t device) const;
  const cluster::DeviceKind &deviceKindOf(int64_t device) const;
  /// The devices of the mesh in the device's node.
  int64_t devicesInNodeOf(int64_t device) const;

  /// The group of a device over some axes.
  GroupShape group(int64_t device, const std::vector<std::string> &axes) const;
  /// The slowest of the groups over some axes that devices with a coordinate on the pipeline axis
  /// are in.
  GroupShape slowestGroup(int64_t program, const std::vector<std::string> &axes) const;
  /// The slowest pair of devices that differ only on the pipeline axis, where their coordinates are
  /// these two.
  GroupShape slowestPair(int64_t from, int64_t to) const;
  /// The devices with a coordinate on the pipeline axis, rising.
  const std::vector<int64_t> &devicesOf(int64_t program) const {
    return byProgram[static_cast<size_t>(program)];
  }
  /// The kinds of their nodes, likewise.
  std::vector<const cluster::NodeKind *> nodeKindsOf(int64_t program) const;
  /// The kinds of the devices with a coordinate on the pipeline axis, in the cluster's order.
  std::vector<const cluster::DeviceKind *> kindsOf(int64_t program) const;

private:
  /// The nodes of a node group, and where they begin.
  struct NodeRange {
    const cluster::NodeKind *node = nullptr;
    const cluster::DeviceKind *device = nullptr;
    int64_t firstDevice = 0, firstNode = 0, count = 0;
  };
  const NodeRange &rangeOf(int64_t device) const;
  template <typename Kind>
  std::vector<const Kind *> kindsOf(int64_t program, const Kind *NodeRange::*kind) const;
  GroupShape shapeOf(std::vector<int64_t> members) const;

  const cluster::Cluster *description = nullptr;
  Mesh devices;
  std::vector<NodeRange> nodeRanges;
  std::vector<std::vector<int64_t>> byProgram;
  int64_t usedNodes = 0;
};

/// The nodes of a node group that are used.
struct UsedNodes {
  const cluster::NodeKind *node = nullptr;
  const cluster::DeviceKind *device = nullptr;
  int64_t devices = 0; ///< of these nodes that are used, more than 0
};

/// The nodes of the first `devices` devices of a cluster, in the order of its node groups. The
/// cluster is one that checkCluster() accepts.
std::vector<UsedNodes> findUsedNodes(const cluster::Cluster &cluster, int64_t devices);

/// How many devices a cluster has.
int64_t countDevices(const cluster::Cluster &cluster);

} // namespace dtc

#endif // DTC_SIMULATOR_CLUSTER_TOPOLOGY_H
