//===- GroupShape.h - Links between the devices of a group ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_CLUSTER_GROUPSHAPE_H
#define DTC_SIMULATOR_CLUSTER_GROUPSHAPE_H

#include "support/LinkSpeed.h"

#include <cstdint>
#include <optional>
#include <span>

namespace dtc::cluster {
class Link;
} // namespace dtc::cluster

namespace dtc {

/// One of the mesh axes that a group spans, where all that is known are the links along it.
struct GroupAxis {
  int64_t size = 1;
  LinkSpeed link; ///< has a bandwidth
};

/// The connection between the devices of a group: the group of a collective, or the two ends of a
/// message. A Topology gives it for the devices of a cluster, ofTorus() for a mesh of an unknown
/// cluster.
struct GroupShape {
  int64_t members = 1;
  int64_t nodes = 1;
  int64_t perNode = 1; ///< the most members in one node
  /// Bytes a second of one member inside of a node, and seconds: of the slowest of the nodes that
  /// have several members. Infinite and 0 where none has.
  double linkBandwidth = 0;
  double linkLatency = 0;
  /// Bytes a second that the members in one node send together to other nodes, beside the other
  /// groups like this one that use the node's network cards at the same time.
  double networkBandwidth = 0;
  double networkLatency = 0;
  const cluster::Link *link = nullptr; ///< of that node, or null; for its measured times
  /// The latency of a torus: that of a ring along each axis in turn, (size - 1) * latency summed
  /// over the axes. Only neighbours have links, so that only rings can be used.
  std::optional<double> torusLatency;

  /// One node that is a torus: the least bandwidth of the axes counts, and for messages their
  /// largest latency. An axis of one device has no links.
  static GroupShape ofTorus(std::span<const GroupAxis> axes);

  bool operator==(const GroupShape &) const = default;
};

} // namespace dtc

#endif // DTC_SIMULATOR_CLUSTER_GROUPSHAPE_H
