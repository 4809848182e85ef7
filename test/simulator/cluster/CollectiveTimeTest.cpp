//===- CollectiveTimeTest.cpp - Tests of the costs of collectives ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/CollectiveTime.h"

#include "simulator/cluster/Topology.h"

#include "test/lib/RandomCases.h"
#include "test/simulator/cluster/ParsedCluster.h"

#include <gtest/gtest.h>
#include <random>

namespace collectiveTimeTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace cluster = dtc::cluster;

namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::AllReduce, CollectiveKind::AllGather,
                                     CollectiveKind::ReduceScatter, CollectiveKind::AllToAll,
                                     CollectiveKind::Permute};

/// `members` devices of one node: 100 bytes a second, 1 second.
GroupShape inNode(int64_t members) {
  GroupShape group;
  group.members = group.perNode = members;
  group.linkBandwidth = 100;
  group.linkLatency = 1;
  return group;
}

/// `perNode` in each of `nodes`; the members of a node send 50 bytes a second together, 10 seconds.
GroupShape acrossNodes(int64_t nodes, int64_t perNode) {
  GroupShape group = inNode(nodes * perNode);
  group.nodes = nodes;
  group.perNode = perNode;
  group.networkBandwidth = 50;
  group.networkLatency = 10;
  return group;
}

void expectTime(CollectiveKind kind, double bytes, const GroupShape &group, double seconds,
                CollectiveAlgorithm algorithm) {
  MovingTime time = collectiveTime(kind, bytes, group);
  EXPECT_NEAR(time.seconds, seconds, 1e-9 * seconds)
      << "kind " << static_cast<int>(kind) << ", " << bytes << " bytes";
  EXPECT_EQ(time.algorithm, algorithm)
      << "kind " << static_cast<int>(kind) << ", " << bytes << " bytes";
}

} // namespace

/// Seconds of a collective on a torus in which each device sends `sent` bytes.
static double onTorus(CollectiveKind kind, double sent, const std::vector<GroupAxis> &axes) {
  GroupShape group = GroupShape::ofTorus(axes);
  return collectiveTime(kind, sent / sentBytes(kind, 1, group.members), group).seconds;
}

TEST(CollectiveTime, TorusOfOneAxis) {
  const std::vector<GroupAxis> four = {{4, {1000, 0.5}}}, two = {{2, {1000, 0.5}}};
  EXPECT_DOUBLE_EQ(onTorus(CollectiveKind::AllReduce, 3000, four), 6 * 0.5 + 3);
  EXPECT_DOUBLE_EQ(onTorus(CollectiveKind::AllGather, 3000, four), 3 * 0.5 + 3);
  EXPECT_DOUBLE_EQ(onTorus(CollectiveKind::ReduceScatter, 3000, two), 0.5 + 3);
  EXPECT_DOUBLE_EQ(onTorus(CollectiveKind::AllToAll, 3000, four), 3 * 0.5 + 3);
  EXPECT_DOUBLE_EQ(onTorus(CollectiveKind::Permute, 3000, four), 0.5 + 3);
  const std::vector<GroupAxis> one = {{1, {1000, 0.5}}};
  EXPECT_EQ(collectiveTime(CollectiveKind::AllReduce, 0, GroupShape::ofTorus(one)).seconds, 0);
}

TEST(CollectiveTime, TorusOfSeveralAxes) {
  // A ring along each axis in turn, at the speed of the slower one.
  const std::vector<GroupAxis> axes = {{4, {100, 2}}, {3, {50, 1}}, {1, {1, 9}}};
  EXPECT_DOUBLE_EQ(onTorus(CollectiveKind::AllGather, 3000, axes), 3 * 2 + 2 * 1 + 60);
  EXPECT_DOUBLE_EQ(onTorus(CollectiveKind::AllReduce, 3000, axes), 2 * (3 * 2 + 2 * 1) + 60);
  EXPECT_DOUBLE_EQ(onTorus(CollectiveKind::Permute, 3000, axes), 2 + 60);
}

/// A node in which all reach each other works like a torus of one axis, and has trees.
TEST(CollectiveTime, TorusesHaveRingsAlone) {
  GroupShape node = inNode(8), torus = GroupShape::ofTorus(std::vector<GroupAxis>{{8, {100, 1}}});
  for (CollectiveKind kind : kKinds)
    if (kind != CollectiveKind::AllReduce)
      EXPECT_DOUBLE_EQ(collectiveTime(kind, 800, torus).seconds,
                       collectiveTime(kind, 800, node).seconds)
          << name(kind);
  EXPECT_DOUBLE_EQ(collectiveTime(CollectiveKind::AllReduce, 800, torus).seconds, 14 + 2 * 7);
  EXPECT_DOUBLE_EQ(collectiveTime(CollectiveKind::AllReduce, 800, node).seconds, 16 + 2 * 3);
}

/// The bytes of a collective are those that a plan's summary counts.
TEST(CollectiveTime, BytesThatAreSent) {
  for (CollectiveKind kind : kKinds)
    for (int64_t members : {2, 3, 8}) {
      CollectiveSpec spec;
      spec.kind = kind;
      spec.input = {DType::F32, {48}};
      spec.members = members;
      EXPECT_EQ(sentBytes(kind, 4 * 48, members), static_cast<double>(spec.ringBytes()))
          << name(kind);
    }
}

TEST(CollectiveTime, OneDeviceTakesNoTime) {
  for (CollectiveKind kind : kKinds) {
    MovingTime time = collectiveTime(kind, 1e9, inNode(1));
    EXPECT_EQ(time.seconds, 0);
    EXPECT_EQ(time.algorithm, CollectiveAlgorithm::None);
    EXPECT_FALSE(time.usesLink || time.usesNetwork);
  }
}

TEST(CollectiveTime, InsideOfANode) {
  using enum CollectiveAlgorithm;
  GroupShape four = inNode(4);
  // 6 steps of a quarter each, or two passes of a tree of 2 levels.
  expectTime(CollectiveKind::AllReduce, 1e6, four, 6 * (2.5e5 / 100 + 1), Ring);
  expectTime(CollectiveKind::AllReduce, 8, four, 2 * 8 / 100.0 + 2 * 2, Tree);
  expectTime(CollectiveKind::AllReduce, 1e6, inNode(2), 2 * (5e5 / 100 + 1), Ring);
  expectTime(CollectiveKind::AllGather, 400, four, 3 * (400 / 100.0 + 1), Ring);
  expectTime(CollectiveKind::ReduceScatter, 400, four, 3 * (100 / 100.0 + 1), Ring);
  expectTime(CollectiveKind::AllToAll, 400, four, 3 * (100 / 100.0 + 1), Ring);
  expectTime(CollectiveKind::Permute, 400, four, 400 / 100.0 + 1, Ring);
  EXPECT_TRUE(collectiveTime(CollectiveKind::AllGather, 8, four).usesLink);
  EXPECT_FALSE(collectiveTime(CollectiveKind::AllGather, 8, four).usesNetwork);
}

TEST(CollectiveTime, OneMemberInEachNode) {
  using enum CollectiveAlgorithm;
  GroupShape four = acrossNodes(4, 1);
  expectTime(CollectiveKind::AllReduce, 1e6, four, 6 * (2.5e5 / 50 + 10), Ring);
  expectTime(CollectiveKind::AllReduce, 8, four, 2 * 8 / 50.0 + 2 * 2 * 10, Tree);
  expectTime(CollectiveKind::AllGather, 400, four, 3 * (400 / 50.0 + 10), Ring);
  expectTime(CollectiveKind::ReduceScatter, 400, four, 3 * (100 / 50.0 + 10), Ring);
  expectTime(CollectiveKind::AllToAll, 400, four, 300 / 50.0 + 10, Ring);
  expectTime(CollectiveKind::Permute, 400, four, 400 / 50.0 + 10, Ring);
  EXPECT_FALSE(collectiveTime(CollectiveKind::AllGather, 8, four).usesLink);
  EXPECT_TRUE(collectiveTime(CollectiveKind::AllGather, 8, four).usesNetwork);
  // The work of the link does not matter.
  GroupShape other = four;
  other.linkBandwidth = 1;
  for (CollectiveKind kind : kKinds)
    EXPECT_EQ(collectiveTime(kind, 1e6, other).seconds, collectiveTime(kind, 1e6, four).seconds);
}

/// Two nodes of four.
TEST(CollectiveTime, SeveralMembersInEachNode) {
  using enum CollectiveAlgorithm;
  GroupShape eight = acrossNodes(2, 4);
  // A ring passes the node's border once: 6 links and 1 hop between nodes, in both halves.
  double ring = 14 * (1e6 / 8 / 50) + 2 * (6 * 1 + 10);
  // A reduce_scatter and an all_gather inside, an all_reduce of a quarter by each pair between.
  double hierarchical = 2 * 3 * (2.5e5 / 100 + 1) + 2 * (1.25e5 / (50.0 / 4) + 10);
  EXPECT_LT(hierarchical, ring);
  expectTime(CollectiveKind::AllReduce, 1e6, eight, hierarchical, Hierarchical);
  expectTime(CollectiveKind::AllReduce, 8, eight, 2 * 8 / 50.0 + 2 * (2 * 1 + 10), Tree);
  // Where the link is no faster than the network, the ring does not lose by its border.
  GroupShape slow = eight;
  slow.linkBandwidth = 50;
  expectTime(CollectiveKind::AllReduce, 1e6, slow, ring, Ring);

  // Gathered between the nodes (1 step, 4 at once), then 2 of each inside (3 steps).
  double gather = 1e6 / (50.0 / 4) + 10 + 3 * (2e6 / 100 + 1);
  EXPECT_LT(gather, 7 * (1e6 / 50) + 6 + 10);
  expectTime(CollectiveKind::AllGather, 1e6, eight, std::min(gather, 7e6 / 50 + 16),
             gather < 7e6 / 50 + 16 ? Hierarchical : Ring);
  // Scattered inside (3 steps of a quarter), then half of that between the nodes.
  double scatter = 3 * (2.5e5 / 100 + 1) + 1.25e5 / (50.0 / 4) + 10;
  expectTime(CollectiveKind::ReduceScatter, 1e6, eight, std::min(scatter, 7e6 / 8 / 50 + 16),
             scatter < 7e6 / 8 / 50 + 16 ? Hierarchical : Ring);
  // Half of each member's input leaves the node, through a quarter of its network cards.
  expectTime(CollectiveKind::AllToAll, 1e6, eight, 5e5 / (50.0 / 4) + 3 * 1 + 10, Ring);
  // The members of a node send at the same time.
  expectTime(CollectiveKind::Permute, 1e6, eight, 1e6 / (50.0 / 4) + 10, Ring);
  EXPECT_TRUE(collectiveTime(CollectiveKind::AllReduce, 8, eight).usesLink);
  EXPECT_TRUE(collectiveTime(CollectiveKind::AllReduce, 8, eight).usesNetwork);
}

TEST(CollectiveTime, Messages) {
  MovingTime inside = messageTime(400, inNode(2)), across = messageTime(400, acrossNodes(2, 1));
  EXPECT_DOUBLE_EQ(inside.seconds, 400 / 100.0 + 1);
  EXPECT_TRUE(inside.usesLink && !inside.usesNetwork);
  EXPECT_DOUBLE_EQ(across.seconds, 400 / 50.0 + 10);
  EXPECT_TRUE(!across.usesLink && across.usesNetwork);
}

/// More bytes take no less time, and inside of a node, or with one member in each, nor do more
/// members.
TEST(CollectiveTime, GrowsWithBytesAndMembers) {
  const uint64_t count = dtc::test::randomCases(3000), seed = dtc::test::randomSeed();
  SCOPED_TRACE("DTC_RANDOM_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto logUniform = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution<>(std::log(low), std::log(high))(random));
  };
  for (uint64_t i = 0; i < count; ++i) {
    GroupShape group;
    group.linkBandwidth = logUniform(1e8, 1e12);
    group.linkLatency = logUniform(1e-7, 1e-3);
    group.networkBandwidth = logUniform(1e8, 1e12);
    group.networkLatency = logUniform(1e-7, 1e-3);
    group.nodes = 1 + static_cast<int64_t>(random() % 9);
    group.perNode = group.nodes == 1 ? 2 + static_cast<int64_t>(random() % 15)
                                     : 1 + static_cast<int64_t>(random() % 8);
    group.members = group.nodes * group.perNode;
    double bytes = logUniform(1, 1e10), more = bytes * logUniform(1, 100);
    for (CollectiveKind kind : kKinds) {
      double seconds = collectiveTime(kind, bytes, group).seconds;
      ASSERT_GT(seconds, 0);
      ASSERT_LE(seconds, collectiveTime(kind, more, group).seconds) << i;
      if (group.nodes > 1 && group.perNode > 1)
        continue;
      GroupShape larger = group;
      ++(group.nodes == 1 ? larger.perNode : larger.nodes);
      ++larger.members;
      ASSERT_LE(seconds, collectiveTime(kind, bytes, larger).seconds * (1 + 1e-12))
          << i << ", kind " << static_cast<int>(kind) << ", " << bytes << " bytes, "
          << group.members << " members";
    }
  }
}

TEST(CollectiveTime, MeasuredTimesComeFirst) {
  cluster::Cluster cluster = parsedCluster(plainDevice() + R"(
    node_kinds {
      name: "n" device: "plain" devices: 8
      device_network_bandwidth: 1
      link {
        bandwidth: 100
        collectives { kind: "all_reduce" members: 4 points { bytes: 100 seconds: 7 } }
        collectives { kind: "all_reduce" members: 2 points { bytes: 100 seconds: 5 } }
        collectives { kind: "transfer" members: 2 points { bytes: 100 seconds: 3 } }
      }
    }
    nodes { node: "n" count: 2 })");
  auto seconds = [&](CollectiveKind kind, int64_t members) {
    Expected<Topology> topology =
        Topology::create(cluster, Mesh({{"a", 8 / members}, {"b", members}}));
    MovingTime time = collectiveTime(kind, 100, topology->group(0, {"b"}));
    EXPECT_EQ(time.algorithm == CollectiveAlgorithm::Measured, time.seconds > 2) << time.seconds;
    return time.seconds;
  };
  EXPECT_EQ(seconds(CollectiveKind::AllReduce, 2), 5);
  EXPECT_EQ(seconds(CollectiveKind::AllReduce, 4), 7);
  // For more devices than were measured, the time of the most measured devices holds.
  EXPECT_EQ(seconds(CollectiveKind::AllReduce, 8), 7);
  EXPECT_EQ(seconds(CollectiveKind::AllGather, 2), 1); // not measured
  // A permute is messages, if it was not measured itself.
  EXPECT_EQ(seconds(CollectiveKind::Permute, 2), 3);
  // Between nodes nothing was measured.
  Expected<Topology> wide = Topology::create(cluster, Mesh({{"a", 16}}));
  EXPECT_EQ(collectiveTime(CollectiveKind::AllReduce, 100, wide->group(0, {"a"})).algorithm ==
                CollectiveAlgorithm::Measured,
            false);
}

TEST(CollectiveTime, TheLastOneComesLater) {
  cluster::Cluster cluster = parsedCluster(plainDevice() + R"(
    node_kinds {
      name: "n" device: "plain" devices: 8
      device_network_bandwidth: 1
      link {
        bandwidth: 100
        arrival_skews { members: 4 work_seconds: 2 wait_seconds: 0.5 }
        arrival_skews { members: 2 work_seconds: 1 wait_seconds: 0.25 }
      }
    }
    nodes { node: "n" count: 2 })");
  auto wait = [&](double work, int64_t members) {
    Expected<Topology> topology =
        Topology::create(cluster, Mesh({{"a", 8 / members}, {"b", members}}));
    return waitForLast(work, topology->group(0, {"b"}));
  };
  EXPECT_DOUBLE_EQ(wait(1, 2), 0.25);
  // Four times the work, twice the wait.
  EXPECT_DOUBLE_EQ(wait(4, 2), 0.5);
  EXPECT_EQ(wait(0, 2), 0);
  EXPECT_DOUBLE_EQ(wait(2, 4), 0.5);
  EXPECT_DOUBLE_EQ(wait(2, 8), 0.5); // of more than were measured the most hold
  EXPECT_EQ(wait(1, 1), 0);
  // Between nodes nothing was measured.
  Expected<Topology> wide = Topology::create(cluster, Mesh({{"a", 16}}));
  EXPECT_EQ(waitForLast(1, wide->group(0, {"a"})), 0);
}

} // namespace collectiveTimeTest
