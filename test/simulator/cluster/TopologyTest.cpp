//===- TopologyTest.cpp - Tests of the assignment of devices --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/Topology.h"

#include "simulator/cluster/CollectiveTime.h"
#include "test/simulator/cluster/ParsedCluster.h"

#include <cmath>
#include <gtest/gtest.h>

namespace topologyTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace cluster = dtc::cluster;

namespace {

/// Three nodes of four devices. A card carries 10, a node 20 / 2 = 10, and half of that is
/// sustained; a link carries 50.
const cluster::Cluster &threeNodes() {
  static const cluster::Cluster cluster = parsedCluster(plainDevice() + R"(
    name: "three"
    node_kinds {
      name: "four" device: "plain" devices: 4
      link { bandwidth: 100 sustained: 0.5 latency: 2 }
      device_network_bandwidth: 10 network_bandwidth: 20
    }
    nodes { node: "four" count: 3 }
    network { latency: 5 sustained: 0.5 oversubscription: 2 })");
  return cluster;
}

/// A node of two devices with a link, and two nodes of one device each, which have none.
const cluster::Cluster &pairAndSingles() {
  static const cluster::Cluster cluster = parsedCluster(plainDevice() + R"(
    devices { name: "other" memory_bytes: 5e5 memory_bandwidth: 2 matrix { dtype: "f32" flops: 3 } }
    node_kinds {
      name: "pair" device: "plain" devices: 2 link { bandwidth: 100 latency: 1 }
      device_network_bandwidth: 10
    }
    node_kinds { name: "single" device: "other" devices: 1 network_bandwidth: 4 }
    nodes { node: "pair" count: 1 }
    nodes { node: "single" count: 2 }
    network { latency: 3 })");
  return cluster;
}

Topology topologyOf(const cluster::Cluster &cluster, std::vector<MeshAxis> axes) {
  Expected<Topology> topology = Topology::create(cluster, Mesh(std::move(axes)));
  EXPECT_OK(topology);
  return *topology;
}

} // namespace

TEST(Topology, TheLastAxisLiesInANode) {
  Topology topology = topologyOf(threeNodes(), {{"dp", 2}, {"micro", 7, true}, {"tp", 4}});
  EXPECT_EQ(countDevices(threeNodes()), 12);
  EXPECT_EQ(topology.numNodes(), 2);
  EXPECT_EQ(topology.nodeOf(3), 0);
  EXPECT_EQ(topology.nodeOf(4), 1);
  EXPECT_EQ(topology.devicesInNodeOf(6), 4);
  GroupShape tp = topology.group(5, {"tp"});
  EXPECT_EQ(tp.members, 4);
  EXPECT_EQ(tp.nodes, 1);
  EXPECT_EQ(tp.perNode, 4);
  EXPECT_EQ(tp.linkBandwidth, 50);
  EXPECT_EQ(tp.linkLatency, 2);
  EXPECT_EQ(tp, topology.slowestGroup(0, {"tp"}));

  // Four groups of two share the resources of the node.
  GroupShape dp = topology.group(5, {"dp"});
  EXPECT_EQ(dp.members, 2);
  EXPECT_EQ(dp.nodes, 2);
  EXPECT_EQ(dp.perNode, 1);
  EXPECT_EQ(dp.networkBandwidth, 10.0 / 4 * 0.5);
  EXPECT_EQ(dp.networkLatency, 5);
  // One group has all of it.
  GroupShape all = topology.slowestGroup(0, {"dp", "tp"});
  EXPECT_EQ(all.members, 8);
  EXPECT_EQ(all.perNode, 4);
  EXPECT_EQ(all.networkBandwidth, 10.0 * 0.5);
  EXPECT_EQ(all.linkBandwidth, 50);
}

TEST(Topology, AGroupOfOneIsNowhereElse) {
  Topology topology = topologyOf(threeNodes(), {{"dp", 1}, {"tp", 4}});
  EXPECT_EQ(topology.slowestGroup(0, {"dp"}).members, 1);
  EXPECT_EQ(topology.slowestGroup(0, {}).members, 1);
  EXPECT_EQ(topology.slowestGroup(0, {"dp"}).nodes, 1);
}

/// Six devices in groups of three: the second group lies in two nodes.
TEST(Topology, GroupsThatStraddleNodes) {
  Topology topology = topologyOf(threeNodes(), {{"dp", 2}, {"tp", 3}});
  EXPECT_EQ(topology.numNodes(), 2);
  EXPECT_EQ(topology.devicesInNodeOf(3), 4);
  EXPECT_EQ(topology.devicesInNodeOf(5), 2); // of the mesh
  EXPECT_EQ(topology.group(0, {"tp"}).nodes, 1);
  GroupShape straddles = topology.group(4, {"tp"});
  EXPECT_EQ(straddles.nodes, 2);
  EXPECT_EQ(straddles.perNode, 2);
  // One member has a quarter of the first node's network cards; two have all of the second node's.
  EXPECT_EQ(straddles.networkBandwidth, 10.0 / 4 * 0.5);
  EXPECT_EQ(topology.slowestGroup(0, {"tp"}), straddles);
}

/// A device's own card bounds it where the node has more.
TEST(Topology, CardsOfDevices) {
  cluster::Cluster cluster = threeNodes();
  cluster.mutable_network()->Clear();
  cluster.mutable_node_kinds(0)->set_network_bandwidth(0); // that of its devices
  Topology all = topologyOf(cluster, {{"dp", 3}, {"tp", 4}});
  EXPECT_EQ(all.group(0, {"dp"}).networkBandwidth, 10);
  EXPECT_EQ(all.group(0, {"dp", "tp"}).networkBandwidth, 40);
  cluster.mutable_node_kinds(0)->set_network_bandwidth(100);
  EXPECT_EQ(topologyOf(cluster, {{"dp", 3}, {"tp", 4}}).group(0, {"dp"}).networkBandwidth, 10);
  // Where only a node's total is given, a device has its share of it.
  cluster.mutable_node_kinds(0)->set_device_network_bandwidth(0);
  EXPECT_EQ(topologyOf(cluster, {{"dp", 3}, {"tp", 4}}).group(0, {"dp"}).networkBandwidth, 25);
}

TEST(Topology, KindsOfNodesAreInTheirOrder) {
  Topology topology = topologyOf(pairAndSingles(), {{"dp", 4}});
  EXPECT_EQ(topology.numNodes(), 3);
  EXPECT_EQ(topology.nodeOf(1), 0);
  EXPECT_EQ(topology.nodeOf(2), 1);
  EXPECT_EQ(topology.nodeOf(3), 2);
  EXPECT_EQ(topology.deviceKindOf(1).name(), "plain");
  EXPECT_EQ(topology.deviceKindOf(2).name(), "other");
  EXPECT_EQ(topology.nodeKindOf(3).name(), "single");
  auto kinds = topology.kindsOf(0);
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0]->name(), "plain");
  EXPECT_EQ(kinds[1]->name(), "other");
  EXPECT_EQ(topologyOf(pairAndSingles(), {{"dp", 2}}).kindsOf(0).size(), 1u);
  // The least of the nodes' network cards holds.
  EXPECT_EQ(topology.group(0, {"dp"}).networkBandwidth, 4);
}

/// Nodes of one device have no link, which does not slow down those that have one.
TEST(Topology, NodesWithoutLinks) {
  Topology topology = topologyOf(pairAndSingles(), {{"dp", 4}});
  GroupShape group = topology.group(0, {"dp"});
  EXPECT_EQ(group.nodes, 3);
  EXPECT_EQ(group.perNode, 2);
  EXPECT_EQ(group.linkBandwidth, 100);
  for (CollectiveKind kind :
       {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
        CollectiveKind::AllToAll, CollectiveKind::Permute}) {
    double seconds = collectiveTime(kind, 1000, group).seconds;
    EXPECT_TRUE(std::isfinite(seconds) && seconds > 0) << seconds;
  }
}

TEST(Topology, ProgramsOfAPipeline) {
  Topology topology =
      topologyOf(threeNodes(), {{"pp", 3, false, /*pipeline=*/true}, {"dp", 2}, {"tp", 2}});
  EXPECT_EQ(topology.devicesOf(1), (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(topology.slowestGroup(2, {"dp", "tp"}).nodes, 1);
  GroupShape pair = topology.slowestPair(0, 2);
  EXPECT_EQ(pair.members, 2);
  EXPECT_EQ(pair.nodes, 2);
  EXPECT_EQ(pair.networkBandwidth, 10.0 / 4 * 0.5);

  // The slowest of the pairs: one pair is in one node, and others are not.
  Topology inside = topologyOf(threeNodes(), {{"pp", 2, false, true}, {"tp", 3}});
  EXPECT_EQ(inside.slowestPair(0, 1).nodes, 2);
  EXPECT_EQ(inside.group(0, {"pp"}).nodes, 1);
}

/// A look at every group needs time for every device, not for every pair.
TEST(Topology, ManyDevices) {
  cluster::Cluster cluster = threeNodes();
  cluster.mutable_nodes(0)->set_count(1 << 18);
  Topology topology = topologyOf(cluster, {{"dp", int64_t{1} << 19}, {"tp", 2}});
  EXPECT_EQ(topology.slowestGroup(0, {"dp"}).members, int64_t{1} << 19);
  EXPECT_EQ(topology.slowestGroup(0, {"tp"}).members, 2);
  EXPECT_EQ(topology.numNodes(), 1 << 18);
}

TEST(Topology, TooFewDevices) {
  EXPECT_ERROR(Topology::create(threeNodes(), Mesh({{"dp", 13}})),
               "the mesh has 13 devices, the cluster \"three\" has 12; use a smaller mesh, or more "
               "nodes in nodes[0].count");
  EXPECT_OK(Topology::create(threeNodes(), Mesh({{"dp", 12}})));
}

} // namespace topologyTest
