//===- HostTime.h - Cost model of a node's host ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_CLUSTER_HOSTTIME_H
#define DTC_SIMULATOR_CLUSTER_HOSTTIME_H

#include "simulator/cluster/DeviceTime.h"
#include "simulator/cluster/cluster.pb.h"
#include "support/Error.h"
#include "support/Kinds.h"

namespace dtc {

/// The host of a node, which has one, of a cluster that checkCluster() accepts.
const cluster::DeviceKind &hostOf(const cluster::Cluster &cluster, const cluster::NodeKind &node);

/// The error of a node without a host, whose devices are to keep states there.
MaybeError findMissingHost(const cluster::NodeKind &node);

/// The bytes of that host that plans may use, of all devices of the node together.
double usableHostBytes(const cluster::Cluster &cluster, const cluster::NodeKind &node);

/// The time of work that one device gives its host.
struct HostTime {
  double seconds = 0; ///< while no other device uses the host
  double share = 1;   ///< of the bandwidth of the host's memory that the work takes then
};

/// The time of a call on a lane of the host: a copy, which reads or writes the host's memory once,
/// or a kernel, which has all of the host's cores.
HostTime hostTime(const cluster::Cluster &cluster, const cluster::NodeKind &node,
                  const KernelWork &work, Lane lane);

} // namespace dtc

#endif // DTC_SIMULATOR_CLUSTER_HOSTTIME_H
