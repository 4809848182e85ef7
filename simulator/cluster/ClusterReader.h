//===- ClusterReader.h - Clusters in files --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_CLUSTER_CLUSTERREADER_H
#define DTC_SIMULATOR_CLUSTER_CLUSTERREADER_H

#include "simulator/cluster/cluster.pb.h"
#include "support/Error.h"

#include <string>

namespace dtc {

/// The cluster that a text describes: JSON where its first character that is no white space is '{',
/// else Protobuf's text format. The error names the line, or the field by its path
/// ("devices[0].memory_bandwidth"). The returned cluster has passed checkCluster().
Expected<cluster::Cluster> parseCluster(const std::string &text);

/// The same for a file; the error names it too.
Expected<cluster::Cluster> readCluster(const std::string &path);

/// The first error of a cluster: a rate, a size or a count that is missing, negative, zero or not
/// finite where that makes no sense, a name that is given twice or that nothing has, tables whose
/// lengths do not agree. Fields are named by their paths. Numbers of a cluster that passes are 0 or
/// from 1e-18 to 1e18, whole numbers at most 2^31, which is also the most devices.
MaybeError checkCluster(const cluster::Cluster &cluster);

/// Makes a cluster as large as `devices` need: a cluster of one kind of node gets more nodes if it
/// has too few. An error for more devices than one of several node groups has, and where the
/// larger cluster lacks what checkCluster() asks for.
MaybeError extendCluster(cluster::Cluster &cluster, int64_t devices);

/// The text form, as parseCluster() reads it.
std::string formatCluster(const cluster::Cluster &cluster);

} // namespace dtc

#endif // DTC_SIMULATOR_CLUSTER_CLUSTERREADER_H
