//===- Topology.cpp - Assignment of devices to nodes ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/Topology.h"

#include "simulator/cluster/ClusterReader.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <tuple>
#include <utility>

namespace dtc {

static double orElse(double value, double other) { return value > 0 ? value : other; }

static const cluster::NodeKind *findNode(const cluster::Cluster &cluster, const std::string &name) {
  for (const cluster::NodeKind &node : cluster.node_kinds())
    if (node.name() == name)
      return &node;
  return nullptr;
}

static const cluster::DeviceKind *findDevice(const cluster::Cluster &cluster,
                                             const std::string &name) {
  for (const cluster::DeviceKind &device : cluster.devices())
    if (device.name() == name)
      return &device;
  return nullptr;
}

std::vector<UsedNodes> findUsedNodes(const cluster::Cluster &cluster, int64_t devices) {
  std::vector<UsedNodes> used;
  for (const cluster::NodeGroup &group : cluster.nodes()) {
    const cluster::NodeKind *node = findNode(cluster, group.node());
    int64_t count = std::min(devices, group.count() * node->devices());
    if (count > 0)
      used.push_back({node, findDevice(cluster, node->device()), count});
    devices -= count;
  }
  return used;
}

int64_t countDevices(const cluster::Cluster &cluster) {
  int64_t count = 0;
  for (const cluster::NodeGroup &group : cluster.nodes())
    count += group.count() * findNode(cluster, group.node())->devices();
  return count;
}

MaybeError extendCluster(cluster::Cluster &cluster, int64_t devices) {
  int64_t available = countDevices(cluster);
  if (devices <= available)
    return std::nullopt;
  if (cluster.nodes_size() > 1)
    return Error{fmt::format("{} devices are asked for, the cluster \"{}\" has {} in nodes of "
                             "several node groups; say in nodes[...].count which there are more of",
                             devices, cluster.name(), available)};
  int64_t inNode = findNode(cluster, cluster.nodes(0).node())->devices();
  cluster.mutable_nodes(0)->set_count((devices + inNode - 1) / inNode);
  return checkCluster(cluster); // several nodes need a network
}

Expected<Topology> Topology::create(const cluster::Cluster &cluster, Mesh mesh) {
  int64_t available = countDevices(cluster);
  if (mesh.numDevices() > available)
    return Error{fmt::format("the mesh has {} devices, the cluster \"{}\" has {}; use a smaller "
                             "mesh, or more nodes in nodes[0].count",
                             mesh.numDevices(), cluster.name(), available)};
  Topology topology;
  topology.description = &cluster;
  NodeRange range;
  for (const cluster::NodeGroup &entry : cluster.nodes()) {
    range.node = findNode(cluster, entry.node());
    range.device = findDevice(cluster, range.node->device());
    range.count = entry.count();
    topology.nodeRanges.push_back(range);
    range.firstDevice += range.count * range.node->devices();
    range.firstNode += range.count;
  }
  topology.devices = std::move(mesh);
  const MeshAxis *pipeline = topology.devices.pipelineAxis();
  topology.byProgram.resize(pipeline ? static_cast<size_t>(pipeline->size) : 1);
  int64_t count = topology.devices.numDevices();
  for (int64_t d = 0; d < count; ++d)
    topology.byProgram[static_cast<size_t>(topology.devices.programOf(d))].push_back(d);
  topology.usedNodes = topology.nodeOf(count - 1) + 1;
  return topology;
}

const Topology::NodeRange &Topology::rangeOf(int64_t device) const {
  auto it =
      std::upper_bound(nodeRanges.begin(), nodeRanges.end(), device,
                       [](int64_t d, const NodeRange &range) { return d < range.firstDevice; });
  return *std::prev(it);
}

int64_t Topology::nodeOf(int64_t device) const {
  const NodeRange &range = rangeOf(device);
  return range.firstNode + (device - range.firstDevice) / range.node->devices();
}

const cluster::NodeKind &Topology::nodeKindOf(int64_t device) const {
  return *rangeOf(device).node;
}

const cluster::DeviceKind &Topology::deviceKindOf(int64_t device) const {
  return *rangeOf(device).device;
}

int64_t Topology::devicesInNodeOf(int64_t device) const {
  const NodeRange &range = rangeOf(device);
  int64_t size = range.node->devices();
  int64_t first = device - (device - range.firstDevice) % size;
  return std::min(size, devices.numDevices() - first);
}

GroupShape GroupShape::ofTorus(std::span<const GroupAxis> axes) {
  GroupShape shape;
  shape.linkBandwidth = std::numeric_limits<double>::infinity();
  double latency = 0;
  for (const GroupAxis &axis : axes) {
    if (axis.size == 1)
      continue;
    shape.members *= axis.size;
    latency += static_cast<double>(axis.size - 1) * axis.link.latency;
    shape.linkLatency = std::max(shape.linkLatency, axis.link.latency);
    shape.linkBandwidth = std::min(shape.linkBandwidth, axis.link.bandwidth);
  }
  shape.perNode = shape.members;
  shape.torusLatency = latency;
  return shape;
}

GroupShape Topology::shapeOf(std::vector<int64_t> members) const {
  GroupShape shape;
  shape.members = static_cast<int64_t>(members.size());
  shape.linkBandwidth = shape.networkBandwidth = std::numeric_limits<double>::infinity();
  std::sort(members.begin(), members.end());
  const cluster::Network &network = description->network();
  shape.nodes = 0;
  for (size_t begin = 0, end = 0; begin < members.size(); begin = end) {
    int64_t node = nodeOf(members[begin]);
    while (end < members.size() && nodeOf(members[end]) == node)
      ++end;
    auto inside = static_cast<int64_t>(end - begin);
    const cluster::NodeKind &kind = nodeKindOf(members[begin]);
    ++shape.nodes;
    shape.perNode = std::max(shape.perNode, inside);
    // One member alone uses no link, and its node need not have one.
    double bandwidth = kind.link().bandwidth() * orElse(kind.link().sustained(), 1);
    if (inside > 1 && bandwidth < shape.linkBandwidth) {
      shape.linkBandwidth = bandwidth;
      shape.link = &kind.link();
    }
    if (inside > 1)
      shape.linkLatency = std::max(shape.linkLatency, kind.link().latency());
    double ofDevices = static_cast<double>(devicesInNodeOf(members[begin]));
    double card = orElse(kind.device_network_bandwidth(),
                         kind.network_bandwidth() / static_cast<double>(kind.devices()));
    double ofNode = orElse(kind.network_bandwidth(), card * static_cast<double>(kind.devices())) /
                    orElse(network.oversubscription(), 1);
    double share = std::min(card * static_cast<double>(inside),
                            ofNode * static_cast<double>(inside) / ofDevices);
    shape.networkBandwidth =
        std::min(shape.networkBandwidth, share * orElse(network.sustained(), 1));
  }
  shape.networkLatency = network.latency();
  return shape;
}

GroupShape Topology::group(int64_t device, const std::vector<std::string> &axes) const {
  return shapeOf(devices.group(device, axes));
}

/// Whether a group takes longer than another with the same number of members.
static bool isSlower(const GroupShape &a, const GroupShape &b) {
  if ((a.nodes > 1) != (b.nodes > 1))
    return a.nodes > 1;
  return std::tuple(a.nodes > 1 ? a.networkBandwidth : 0, a.linkBandwidth, b.nodes) <
         std::tuple(a.nodes > 1 ? b.networkBandwidth : 0, b.linkBandwidth, a.nodes);
}

GroupShape Topology::slowestGroup(int64_t program, const std::vector<std::string> &axes) const {
  std::optional<GroupShape> slowest;
  // A group is looked at once, from its first member.
  for (int64_t device : devicesOf(program)) {
    if (devices.blockIndex(device, axes) != 0)
      continue;
    GroupShape shape = group(device, axes);
    if (!slowest || isSlower(shape, *slowest))
      slowest = shape;
  }
  return *slowest;
}

GroupShape Topology::slowestPair(int64_t from, int64_t to) const {
  std::optional<GroupShape> slowest;
  // Devices that differ on the pipeline axis alone have the same place among those of their
  // program.
  for (size_t i = 0; i < devicesOf(from).size(); ++i) {
    GroupShape shape = shapeOf({devicesOf(from)[i], devicesOf(to)[i]});
    if (!slowest || isSlower(shape, *slowest))
      slowest = shape;
  }
  return *slowest;
}

template <typename Kind>
std::vector<const Kind *> Topology::kindsOf(int64_t program, const Kind *NodeRange::*kind) const {
  std::vector<const Kind *> kinds;
  const NodeRange *last = nullptr;
  // Devices rise, and so do the node groups that they are in.
  for (int64_t device : devicesOf(program))
    if (const NodeRange *range = &rangeOf(device); range != std::exchange(last, range))
      if (std::find(kinds.begin(), kinds.end(), range->*kind) == kinds.end())
        kinds.push_back(range->*kind);
  return kinds;
}

std::vector<const cluster::DeviceKind *> Topology::kindsOf(int64_t program) const {
  return kindsOf(program, &NodeRange::device);
}

std::vector<const cluster::NodeKind *> Topology::nodeKindsOf(int64_t program) const {
  return kindsOf(program, &NodeRange::node);
}

} // namespace dtc
