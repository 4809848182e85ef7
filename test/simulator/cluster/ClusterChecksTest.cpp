//===- ClusterChecksTest.cpp - Tests of the checks of clusters ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/ClusterReader.h"
#include "test/lib/plans/Expect.h"
#include "test/simulator/cluster/FullCluster.h"

#include <functional>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <vector>

namespace clusterChecksTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace cluster = dtc::cluster;

namespace {

cluster::Cluster full() {
  cluster::Cluster cluster;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kFullClusterText, &cluster));
  return cluster;
}

using Change = std::function<void(cluster::Cluster &)>;

std::string errorAfter(const Change &change) {
  cluster::Cluster cluster = full();
  change(cluster);
  return messageOf(checkCluster(cluster));
}

} // namespace

TEST(ClusterChecks, AcceptsEveryField) {
  EXPECT_EQ(errorAfter([](auto &) {}), "");
}

/// A change that is refused, and one close by that is not.
struct CheckCase {
  Change wrong;
  const char *message;
  Change right;
};

static void expectCases(const std::vector<CheckCase> &cases) {
  for (const CheckCase &test : cases) {
    EXPECT_EQ(errorAfter(test.wrong), test.message);
    EXPECT_EQ(errorAfter(test.right), "") << "beside " << test.message;
  }
}

using C = cluster::Cluster;

static cluster::DeviceKind *device(C &c) { return c.mutable_devices(0); }
static cluster::MatrixRate *rate(C &c) { return device(c)->mutable_matrix(0); }
static cluster::MatrixTable *table(C &c) { return device(c)->mutable_matrix(1)->mutable_table(); }
static cluster::KernelRate *kernel(C &c) { return device(c)->mutable_kernels(1); }
static cluster::NodeKind *node(C &c) { return c.mutable_node_kinds(0); }
static cluster::Link *link(C &c) { return node(c)->mutable_link(); }
static cluster::HostLink *hostLink(C &c) { return node(c)->mutable_host_link(); }
static cluster::CollectiveTable *collective(C &c) { return link(c)->mutable_collectives(1); }

static void addMeeting(C &c, int64_t members, double work, double wait) {
  cluster::ArrivalSkew &skew = *link(c)->add_arrival_skews();
  skew.set_members(members);
  skew.set_work_seconds(work);
  skew.set_wait_seconds(wait);
}

TEST(ClusterChecks, AsksForWhatMustBeThere) {
  expectCases({
      {[](C &c) { c.clear_devices(); }, "devices is empty, expected at least one kind of device",
       [](C &) {}},
      {[](C &c) { c.clear_node_kinds(); },
       "node_kinds is empty, expected at least one kind of node", [](C &) {}},
      {[](C &c) { c.clear_nodes(); }, "nodes is empty, expected at least one node group",
       [](C &c) { c.mutable_nodes()->RemoveLast(); }},
      {[](C &c) { device(c)->clear_matrix(); },
       "devices[0].matrix is empty, expected the rate of at least one dtype",
       [](C &c) { device(c)->mutable_matrix()->RemoveLast(); }},
      {[](C &c) { device(c)->clear_memory_bytes(); },
       "devices[0].memory_bytes is 0, expected more than 0",
       [](C &c) { device(c)->set_memory_bytes(1); }},
      {[](C &c) { device(c)->clear_memory_bandwidth(); },
       "devices[0].memory_bandwidth is 0, expected more than 0",
       [](C &c) { device(c)->set_memory_bandwidth(1); }},
      {[](C &c) { rate(c)->clear_flops(); },
       "devices[0].matrix[0].flops is 0, expected more than 0, or a table of measured rates",
       [](C &c) {
         rate(c)->clear_flops();
         *rate(c)->mutable_table() = *table(c);
       }},
      {[](C &c) { device(c)->clear_compute_units(); },
       "devices[0].compute_units is 0, expected more than 0 because devices[0].matrix[0] has tiles",
       [](C &c) {
         device(c)->clear_compute_units();
         rate(c)->clear_tiles();
       }},
      {[](C &c) { kernel(c)->clear_kernel(); },
       "devices[0].kernels[1].kernel is empty, expected the name of a kernel",
       [](C &c) { kernel(c)->set_kernel("softmax"); }},
      {[](C &c) { node(c)->clear_devices(); }, "node_kinds[0].devices is 0, expected more than 0",
       [](C &c) { node(c)->set_devices(1); }},
      {[](C &c) { node(c)->clear_host_link(); },
       "node_kinds[0].host_link is missing, expected it because the node has the host \"slow\"",
       [](C &c) {
         node(c)->clear_host_link();
         node(c)->clear_host();
       }},
      {[](C &c) { node(c)->clear_host(); },
       "node_kinds[0].host is empty, expected the name of a device because the node has a "
       "host_link",
       [](C &c) { node(c)->set_host("fast"); }},
      {[](C &c) { hostLink(c)->clear_bandwidth(); },
       "node_kinds[0].host_link.bandwidth is 0, expected more than 0",
       [](C &c) { hostLink(c)->set_bandwidth(1); }},
      {[](C &c) { c.mutable_nodes(1)->clear_count(); }, "nodes[1].count is 0, expected more than 0",
       [](C &c) { c.mutable_nodes(1)->set_count(7); }},
      {[](C &c) { link(c)->clear_bandwidth(); },
       "node_kinds[0].link.bandwidth is 0, expected more than 0 because the node has 4 devices",
       [](C &c) {
         node(c)->clear_link();
         node(c)->set_devices(1);
       }},
      {[](C &c) {
         node(c)->clear_device_network_bandwidth();
         node(c)->clear_network_bandwidth();
       },
       "node_kinds[0].device_network_bandwidth and node_kinds[0].network_bandwidth are 0, expected "
       "one of them to be more than 0 because the cluster has 3 nodes",
       [](C &c) {
         // A node that is alone needs no network.
         node(c)->clear_device_network_bandwidth();
         node(c)->clear_network_bandwidth();
         c.mutable_nodes()->RemoveLast();
         c.mutable_nodes(0)->set_count(1);
       }},
      {[](C &c) { c.mutable_node_kinds(1)->clear_network_bandwidth(); },
       "node_kinds[1].device_network_bandwidth and node_kinds[1].network_bandwidth are 0, expected "
       "one of them to be more than 0 because the cluster has 3 nodes",
       [](C &c) { node(c)->clear_network_bandwidth(); }},
  });
}

TEST(ClusterChecks, ChecksNames) {
  expectCases({
      {[](C &c) { device(c)->clear_name(); }, "devices[0].name is empty, expected a name",
       [](C &c) { c.clear_name(); }},
      {[](C &c) { node(c)->clear_name(); }, "node_kinds[0].name is empty, expected a name",
       [](C &) {}},
      {[](C &c) { c.mutable_devices(1)->set_name("fast"); },
       "devices[1] has the name \"fast\", expected another than that of devices[0]",
       [](C &c) { *c.add_devices() = c.devices(0), c.mutable_devices(2)->set_name("third"); }},
      {[](C &c) { c.mutable_node_kinds(1)->set_name("four"); },
       "node_kinds[1] has the name \"four\", expected another than that of node_kinds[0]",
       [](C &c) { c.mutable_nodes(1)->set_node("four"); }},
      {[](C &c) { node(c)->set_device("fsat"); },
       "node_kinds[0].device is \"fsat\", expected the name of one of devices: \"fast\", "
       "\"slow\"; did you mean \"fast\"?",
       [](C &c) { node(c)->set_device("slow"); }},
      {[](C &c) { node(c)->set_host("slwo"); },
       "node_kinds[0].host is \"slwo\", expected the name of one of devices: \"fast\", \"slow\"; "
       "did "
       "you mean \"slow\"?",
       [](C &c) { node(c)->set_host("fast"); }},
      {[](C &c) { c.mutable_nodes(1)->set_node("dgx-a100"); },
       "nodes[1].node is \"dgx-a100\", expected the name of one of node_kinds: \"four\", \"one\"",
       [](C &c) { c.mutable_nodes(1)->set_node("one"); }},
      {[](C &c) { c.mutable_nodes(1)->clear_node(); },
       "nodes[1].node is \"\", expected the name of one of node_kinds: \"four\", \"one\"",
       [](C &) {}},
      {[](C &c) { rate(c)->set_dtype("bf61"); },
       "devices[0].matrix[0].dtype is \"bf61\", expected one of \"f32\", \"f64\", \"bf16\", "
       "\"f16\", \"fp8\"; did you mean \"bf16\"?",
       [](C &c) { rate(c)->set_dtype("f64"); }},
      {[](C &c) { rate(c)->clear_dtype(); },
       "devices[0].matrix[0].dtype is \"\", expected one of \"f32\", \"f64\", \"bf16\", \"f16\", "
       "\"fp8\"",
       [](C &c) { rate(c)->set_dtype("f16"); }},
      {[](C &c) { rate(c)->set_dtype("f32"); },
       "devices[0].matrix[1] has the dtype \"f32\", expected another than that of "
       "devices[0].matrix[0]",
       [](C &) {}},
      {[](C &c) { kernel(c)->set_dtype("int8"); },
       "devices[0].kernels[1].dtype is \"int8\", expected one of \"\", \"f32\", \"f64\", \"bf16\", "
       "\"f16\"",
       [](C &c) { kernel(c)->set_dtype("f32"); }},
      {[](C &c) { kernel(c)->set_dtype("bf16"); },
       "devices[0].kernels[1] has the kernel \"attention\" and the dtype \"bf16\", expected "
       "another than that of devices[0].kernels[0]",
       [](C &c) { kernel(c)->set_kernel("softmax"), kernel(c)->set_dtype("bf16"); }},
      {[](C &c) { collective(c)->set_kind("allreduce"); },
       "node_kinds[0].link.collectives[1].kind is \"allreduce\", expected one of \"all_reduce\", "
       "\"all_gather\", \"reduce_scatter\", \"all_to_all\", \"permute\", \"transfer\"; did you "
       "mean \"all_reduce\"?",
       [](C &c) { collective(c)->set_kind("all_gather"); }},
      {[](C &c) { collective(c)->set_members(2); },
       "node_kinds[0].link.collectives[1] has the kind \"all_reduce\" and 2 members, expected "
       "another than that of node_kinds[0].link.collectives[0]",
       [](C &c) { collective(c)->set_members(3); }},
      {[](C &c) { addMeeting(c, 2, 1, 0), addMeeting(c, 2, 2, 0); },
       "node_kinds[0].link.arrival_skews[2] has 2 members, expected another than that of "
       "node_kinds[0].link.arrival_skews[1]",
       [](C &c) { addMeeting(c, 2, 1, 0), addMeeting(c, 4, 2, 0); }},
  });
}

TEST(ClusterChecks, ChecksRanges) {
  expectCases({
      {[](C &c) { rate(c)->set_sustained(1.01); },
       "devices[0].matrix[0].sustained is 1.01, expected a share from 0 to 1",
       [](C &c) { rate(c)->set_sustained(1); }},
      {[](C &c) { rate(c)->mutable_tiles(1)->set_efficiency(2); },
       "devices[0].matrix[0].tiles[1].efficiency is 2, expected a share from 0 to 1",
       [](C &c) { rate(c)->mutable_tiles(1)->clear_efficiency(); }},
      {[](C &c) { rate(c)->mutable_tiles(0)->clear_rows(); },
       "devices[0].matrix[0].tiles[0].rows is 0, expected more than 0",
       [](C &c) { rate(c)->mutable_tiles(0)->set_rows(1); }},
      {[](C &c) { rate(c)->mutable_tiles(0)->clear_columns(); },
       "devices[0].matrix[0].tiles[0].columns is 0, expected more than 0",
       [](C &c) { rate(c)->mutable_tiles(0)->set_columns(1); }},
      {[](C &c) { device(c)->set_usable_memory(94); },
       "devices[0].usable_memory is 94, expected a share from 0 to 1",
       [](C &c) { device(c)->clear_usable_memory(); }},
      {[](C &c) { device(c)->set_fuses_calls(device(c)->fuses_pointwise()); },
       "devices[0].fuses_pointwise and devices[0].fuses_calls are true, expected one of them: a "
       "kernel is fused in one way",
       [](C &c) { device(c)->clear_fuses_calls(); }},
      {[](C &c) { device(c)->set_overlap_slowdown(1); },
       "devices[0].overlap_slowdown is 1, expected a share from 0 to less than 1",
       [](C &c) { device(c)->set_overlap_slowdown(0.99); }},
      {[](C &c) { link(c)->set_sustained(80); },
       "node_kinds[0].link.sustained is 80, expected a share from 0 to 1",
       [](C &c) { link(c)->clear_sustained(); }},
      {[](C &c) { hostLink(c)->set_sustained(80); },
       "node_kinds[0].host_link.sustained is 80, expected a share from 0 to 1",
       [](C &c) { hostLink(c)->clear_sustained(); }},
      {[](C &c) { c.mutable_network()->set_sustained(1.5); },
       "network.sustained is 1.5, expected a share from 0 to 1",
       [](C &c) { c.mutable_network()->set_sustained(1); }},
      {[](C &c) { c.mutable_network()->set_oversubscription(0.5); },
       "network.oversubscription is 0.5, expected 1 or more, or 0 for 1",
       [](C &c) { c.mutable_network()->set_oversubscription(0); }},
      {[](C &c) { c.set_power_usage_effectiveness(0.8); },
       "power_usage_effectiveness is 0.8, expected 1 or more, or 0 for 1",
       [](C &c) { c.set_power_usage_effectiveness(1); }},
      {[](C &c) { collective(c)->set_members(1); },
       "node_kinds[0].link.collectives[1].members is 1, expected 2 or more",
       [](C &c) { collective(c)->set_members(8); }},
      {[](C &c) { addMeeting(c, 1, 1, 0); },
       "node_kinds[0].link.arrival_skews[1].members is 1, expected 2 or more",
       [](C &c) { addMeeting(c, 2, 1, 0); }},
      {[](C &c) { addMeeting(c, 2, 0, 1); },
       "node_kinds[0].link.arrival_skews[1].work_seconds is 0, expected more than 0",
       [](C &c) { addMeeting(c, 2, 1e-3, 1); }},
      {[](C &c) { addMeeting(c, 2, 1, -1); },
       "node_kinds[0].link.arrival_skews[1].wait_seconds is -1, expected 0 or more",
       [](C &c) { addMeeting(c, 2, 1, 0); }},
      {[](C &c) { device(c)->set_launch_seconds(-1e-6); },
       "devices[0].launch_seconds is -1e-06, expected 0 or more",
       [](C &c) { device(c)->set_launch_seconds(0); }},
      {[](C &c) { c.mutable_nodes(0)->set_count(1 << 29); },
       "nodes[1].count is 1, with which the cluster has 2147483649 devices; expected at most "
       "2147483648",
       [](C &c) { c.mutable_nodes(0)->set_count(1 << 29), c.mutable_nodes()->RemoveLast(); }},
      {[](C &c) {
         // The product does not fit 32 bits, and is near the end of 64.
         node(c)->set_devices(int64_t{1} << 31);
         c.mutable_nodes(0)->set_count(int64_t{1} << 31);
       },
       "nodes[0].count is 2147483648, with which the cluster has 4611686018427387904 devices; "
       "expected at most 2147483648",
       [](C &c) {
         node(c)->set_devices(int64_t{1} << 31);
         c.mutable_nodes(0)->set_count(1);
         c.mutable_nodes()->RemoveLast();
       }},
  });
}

TEST(ClusterChecks, ChecksTables) {
  expectCases({
      {[](C &c) { table(c)->clear_depths(); },
       "devices[0].matrix[1].table.depths is empty, expected at least one size",
       [](C &c) { device(c)->mutable_matrix()->RemoveLast(); }},
      {[](C &c) { device(c)->mutable_matrix(1)->mutable_transposed_table()->add_flops(1); },
       "devices[0].matrix[1].transposed_table.flops has 3 numbers, expected one for each of 2 "
       "rows, "
       "1 columns and 1 depths",
       [](C &c) { device(c)->mutable_matrix(1)->clear_transposed_table(); }},
      {[](C &c) { table(c)->set_rows(1, 1); },
       "devices[0].matrix[1].table.rows[1] is 1, expected more than the 1 before it",
       [](C &c) { table(c)->set_rows(1, 2); }},
      {[](C &c) { table(c)->set_columns(2, 31); },
       "devices[0].matrix[1].table.columns[2] is 31, expected more than the 32 before it",
       [](C &c) { table(c)->set_columns(2, 33); }},
      {[](C &c) { table(c)->set_rows(0, 0); },
       "devices[0].matrix[1].table.rows[0] is 0, expected more than 0",
       [](C &c) { table(c)->set_rows(0, 2); }},
      {[](C &c) { table(c)->set_columns(0, 0); },
       "devices[0].matrix[1].table.columns[0] is 0, expected more than 0",
       [](C &c) { table(c)->set_columns(0, 2); }},
      {[](C &c) { table(c)->set_depths(0, 0); },
       "devices[0].matrix[1].table.depths[0] is 0, expected more than 0",
       [](C &c) { table(c)->set_depths(0, 2); }},
      {[](C &c) { table(c)->clear_rows(); },
       "devices[0].matrix[1].table.rows is empty, expected at least one size", [](C &) {}},
      {[](C &c) { table(c)->clear_columns(); },
       "devices[0].matrix[1].table.columns is empty, expected at least one size", [](C &) {}},
      {[](C &c) { table(c)->set_flops(4, 0); },
       "devices[0].matrix[1].table.flops[4] is 0, expected more than 0",
       // Measured rates need not rise.
       [](C &c) { table(c)->set_flops(4, 1); }},
      {[](C &c) { table(c)->add_flops(1); },
       "devices[0].matrix[1].table.flops has 7 numbers, expected one for each of 2 rows, 3 columns "
       "and 1 depths",
       [](C &c) {
         table(c)->add_depths(256);
         for (int i = 0; i < 6; ++i)
           table(c)->add_flops(1e9);
       }},
      {[](C &c) { kernel(c)->mutable_points(1)->set_bytes(1024); },
       "devices[0].kernels[1].points[1].bytes is 1024, expected more than the 1024 before it",
       [](C &c) { kernel(c)->mutable_points(0)->set_bytes(0); }},
      {[](C &c) { kernel(c)->mutable_points(0)->set_seconds(0); },
       "devices[0].kernels[1].points[0].seconds is 0, expected more than 0",
       [](C &c) { kernel(c)->clear_points(); }},
      {[](C &c) { collective(c)->clear_points(); },
       "node_kinds[0].link.collectives[1].points is empty, expected at least one measured time",
       [](C &c) { link(c)->clear_collectives(); }},
      {[](C &c) { link(c)->mutable_collectives(0)->mutable_points()->SwapElements(0, 1); },
       "node_kinds[0].link.collectives[0].points[1].bytes is 1024, expected more than the 1048576 "
       "before it",
       [](C &c) { link(c)->mutable_collectives(0)->mutable_points()->RemoveLast(); }},
  });
}

} // namespace clusterChecksTest
