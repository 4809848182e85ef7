//===- ClusterSpeeds.h - Rates of a cluster for passes and bounds ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_CLUSTERSPEEDS_H
#define DTC_COMPILER_PLANNER_CLUSTERSPEEDS_H

#include "compiler/driver/PassPipeline.h"
#include "simulator/cluster/Topology.h"
#include "simulator/cluster/cluster.pb.h"

#include <string>
#include <vector>

namespace dtc {

/// Tells the estimates of passes how fast the cluster is that the mesh of the options is on: the
/// link of each axis, and what products and the memory of the slowest device reach. Sets what the
/// options leave open, to three digits, so that a strategy can be read. Does nothing if the mesh
/// has more devices than the cluster.
void useClusterSpeeds(const cluster::Cluster &cluster, CompileOptions &options);

/// The slowest group over some axes on any coordinate of the pipeline axis, for long messages.
/// Nodes of one kind are taken to have equal groups.
GroupShape slowestGroup(const Topology &topology, const std::vector<std::string> &axes);

/// The FLOP/s that products of a type reach at best on the
/// first `devices` devices of a cluster, together.
double sustainedFlops(const cluster::Cluster &cluster, int64_t devices, ComputeType dtype);

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_CLUSTERSPEEDS_H
