//===- ClusterSpeedsTest.cpp - Tests of the rates of a cluster ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/ClusterSpeeds.h"

#include "test/lib/compile/PlannerCases.h"

#include <gtest/gtest.h>

namespace clusterSpeedsTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// Links of 4 GB/s and 2 us inside of nodes of 2 devices, network cards of 1 GB/s for each device
/// and 10 us between them.
TEST(ClusterSpeeds, LinksAreThoseOfTheAxes) {
  cluster::Cluster cluster = smallCluster(2, 2);
  CompileOptions options;
  options.mesh = {{"dp", 2}, {"tp", 2}};
  useClusterSpeeds(cluster, options);
  EXPECT_NEAR(options.links.at("tp").first, 4e9, 1e7);
  EXPECT_NEAR(options.links.at("tp").second, 2e-6, 1e-8);
  EXPECT_NEAR(options.links.at("dp").first, 1e9, 1e7);
  EXPECT_NEAR(options.links.at("dp").second, 1e-5, 1e-7);
  EXPECT_NEAR(options.deviceFlops.value_or(0), 160e9, 1e9); // 0.8 of 200 GFLOP/s
  EXPECT_NEAR(options.deviceBandwidth.value_or(0), 20e9, 1e7);
}

TEST(ClusterSpeeds, APipelineSendsMessages) {
  cluster::Cluster cluster = smallCluster(2, 2);
  CompileOptions options;
  options.mesh = {{"pp", 4}};
  useClusterSpeeds(cluster, options);
  EXPECT_NEAR(options.links.at("pp").first, 1e9, 1e7); // between the nodes
}

TEST(ClusterSpeeds, TheSlowestKindCounts) {
  cluster::Cluster cluster = mixedCluster(2, 3);
  CompileOptions options;
  options.mesh = {{"dp", 4}};
  useClusterSpeeds(cluster, options);
  EXPECT_NEAR(options.deviceFlops.value_or(0), 160e9, 1e9);
  // Also of links, wherever on the pipeline they are.
  cluster.mutable_node_kinds(1)->mutable_link()->set_bandwidth(1e9);
  CompileOptions staged;
  staged.mesh = {{"pp", 2}, {"tp", 2}};
  useClusterSpeeds(cluster, staged);
  EXPECT_NEAR(staged.links.at("tp").first, 1e9, 1e7);
}

TEST(ClusterSpeeds, WhatIsSaidStays) {
  cluster::Cluster cluster = smallCluster(2, 2);
  CompileOptions options;
  options.mesh = {{"dp", 2}, {"tp", 2}};
  options.links["dp"] = {7, 8};
  options.deviceFlops = 9;
  useClusterSpeeds(cluster, options);
  EXPECT_EQ(options.links.at("dp"), std::pair(7.0, 8.0));
  EXPECT_EQ(options.deviceFlops, 9);
  // A mesh that the cluster is too small for is refused elsewhere.
  CompileOptions large;
  large.mesh = {{"dp", 8}};
  useClusterSpeeds(cluster, large);
  EXPECT_TRUE(large.links.empty());
  for (const auto &mesh : {std::vector<std::pair<std::string, int64_t>>{{"a", int64_t(1) << 32},
                                                                        {"b", int64_t(1) << 32}},
                           {{"dp", 2}, {"dp", 2}},
                           {{"dp", 0}}}) {
    CompileOptions wrong;
    wrong.mesh = mesh;
    useClusterSpeeds(cluster, wrong);
    EXPECT_TRUE(wrong.links.empty());
  }
}

} // namespace

} // namespace clusterSpeedsTest
