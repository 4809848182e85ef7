//===- ParsedCluster.h - Clusters for tests from their text -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_SIMULATOR_CLUSTER_PARSEDCLUSTER_H
#define DTC_TEST_SIMULATOR_CLUSTER_PARSEDCLUSTER_H

#include "simulator/cluster/ClusterReader.h"
#include "test/lib/plans/Expect.h"

namespace dtc::runtime::testing {

/// The cluster of a text that is right.
inline cluster::Cluster parsedCluster(const std::string &text) {
  Expected<cluster::Cluster> cluster = parseCluster(text);
  EXPECT_OK(cluster);
  return cluster ? *cluster : cluster::Cluster();
}

/// A kind of device "plain" that reads and writes a byte a second and multiplies at 1 FLOP/s, and
/// what else `more` says of it.
inline std::string plainDevice(const std::string &more = "") {
  return "devices { name: 'plain' memory_bytes: 1e6 memory_bandwidth: 1 "
         "matrix { dtype: 'f32' flops: 1 } " +
         more + " }";
}

} // namespace dtc::runtime::testing

#endif // DTC_TEST_SIMULATOR_CLUSTER_PARSEDCLUSTER_H
