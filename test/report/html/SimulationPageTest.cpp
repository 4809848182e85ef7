//===- SimulationPageTest.cpp - Tests of HTML reports ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/html/SimulationPage.h"

#include "simulator/cluster/ClusterReader.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"
#include "test/lib/plans/TestPlans.h"
#include "test/report/SchedulePlans.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace simulationPageTest {

using namespace dtc;
using namespace dtc::runtime::testing;

namespace {

/// Nodes of four devices.
cluster::Cluster clusterOf(int64_t nodes) {
  Expected<cluster::Cluster> cluster = parseCluster(fmt::format(R"(
    name: "a lab"
    devices {{ name: "gpu" memory_bytes: 24e9 memory_bandwidth: 800e9
               matrix {{ dtype: "f32" flops: 30e12 }} busy_watts: 300 price_per_hour: 1.5 }}
    node_kinds {{ name: "machine" device: "gpu" devices: 4 link {{ bandwidth: 25e9 latency: 1e-5 }}
                  network_bandwidth: 10e9 }}
    nodes {{ node: "machine" count: {} }}
    grams_co2_per_kwh: 400)",
                                                                nodes));
  EXPECT_OK(cluster);
  return *cluster;
}

std::string pageOf(const plan::Plan &plan, const cluster::Cluster &cluster,
                   const SimulationPageOptions &options = {}, bool keepCollectives = true) {
  SimulationOptions simulate;
  simulate.keepCollectives = keepCollectives;
  simulate.tokens = 1e9;
  Expected<Simulation> simulation = simulateOnCluster(plan, cluster, simulate);
  EXPECT_OK(simulation);
  Expected<std::string> page = simulationToHtml(plan, cluster, *simulation, options);
  EXPECT_OK(page);
  return *page;
}

size_t count(const std::string &text, const std::string &what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

} // namespace

TEST(SimulationPage, HasItsSections) {
  std::string page = pageOf(*pipelinePlan(2), clusterOf(1));
  for (const char *id :
       {"strategy", "topology", "step", "times", "memory", "communication", "cost"}) {
    EXPECT_EQ(count(page, fmt::format("<section id=\"{}\">", id)), 1u) << id;
    EXPECT_EQ(count(page, fmt::format("href=\"#{}\"", id)), 1u) << id;
  }
  EXPECT_EQ(count(page, "id=\"alternatives\""), 0u);
  EXPECT_EQ(count(page, "href=\"#alternatives\""), 0u);
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_EQ(page, pageOf(*pipelinePlan(2), clusterOf(1)));
}

TEST(SimulationPage, DrawsEveryDeviceAndTask) {
  std::shared_ptr<plan::Plan> plan = oneForwardOneBackwardPlan({.devices = 2, .microbatches = 5});
  std::string page = pageOf(*plan, clusterOf(1));
  EXPECT_EQ(count(page, ">device 0<") + count(page, ">device 1<"), 2u);
  EXPECT_EQ(count(page, ">not used<"), 2u);
  EXPECT_EQ(count(page, "of stage 0, microbatch"), 10u);
  EXPECT_EQ(count(page, "forward of stage 1, microbatch 4:"), 1u);
  EXPECT_EQ(count(page, "class=\"move\""), 10u);
}

TEST(SimulationPage, TellsNodesApart) {
  // Two devices of each coordinate: the pipeline crosses nodes, dp does not.
  std::string page = pageOf(*pipelinePlan(4), clusterOf(2));
  EXPECT_TRUE(contains(page, "neighbours in two nodes"));
  EXPECT_TRUE(contains(page, "<td>inside a node</td>"));
  EXPECT_TRUE(contains(page, "in 2 nodes"));
  EXPECT_FALSE(contains(pageOf(*pipelinePlan(2), clusterOf(1)), "neighbours in two nodes"));
}

TEST(SimulationPage, ShowsWhatTheCallerKnows) {
  SimulationPageOptions options;
  options.strategy = {{"recompute", "selective", "it fits with <40 GiB"}};
  options.alternatives = {{"pp=4", 1, uint64_t{3} << 30, "the bubble"},
                          {"tp=8", 0, 0, "too large"}};
  options.lowerBoundSeconds = 1e-9;
  options.lowerBoundReason = "its products alone";
  std::string page = pageOf(*pipelinePlan(2), clusterOf(1), options);
  EXPECT_TRUE(contains(page, "it fits with &lt;40 GiB"));
  EXPECT_EQ(count(page, "<section id=\"alternatives\">"), 1u);
  EXPECT_TRUE(contains(page, "No plan of this model can take less than 1.0 ns here: its products "
                             "alone."));
  EXPECT_TRUE(contains(page, "3.0 GiB"));
  EXPECT_TRUE(contains(page, "too large"));
}

TEST(SimulationPage, SaysWhatDoesNotFit) {
  cluster::Cluster cluster = clusterOf(1);
  EXPECT_FALSE(contains(pageOf(*pipelinePlan(2), cluster), "does not fit"));
  cluster.mutable_devices(0)->set_memory_bytes(64);
  EXPECT_TRUE(contains(pageOf(*pipelinePlan(2), cluster), "The plan does not fit: pp=0 needs"));
}

TEST(SimulationPage, EscapesNamesOfFiles) {
  const std::string hostile = "</title><script>alert(1)</script>\"'&\u202E\u2066\xFF\x01";
  std::shared_ptr<plan::Plan> plan = pipelinePlan(2);
  cluster::Cluster cluster = clusterOf(1);
  std::string plain = pageOf(*plan, cluster);
  plan->set_model(hostile);
  plan->set_producer(hostile);
  plan->mutable_pipeline()->set_schedule(hostile);
  for (std::string &location : *plan->mutable_locations())
    location = hostile;
  for (plan::Program &program : *plan->mutable_programs())
    for (plan::Task &task : *program.mutable_tasks())
      task.set_name(task.name() + hostile);
  cluster.set_name(hostile);
  cluster.mutable_devices(0)->set_name(hostile);
  cluster.mutable_node_kinds(0)->set_name(hostile);
  cluster.mutable_node_kinds(0)->set_device(hostile);
  cluster.mutable_nodes(0)->set_node(hostile);
  SimulationPageOptions options;
  options.strategy = {{hostile, hostile, hostile}};
  options.alternatives = {{hostile, 1, 1, hostile}};
  std::string page = pageOf(*plan, cluster, options);
  EXPECT_GT(count(page, "&lt;script&gt;"), 10u);
  EXPECT_EQ(count(page, "<script>"), count(plain, "<script>"));
  for (const char *raw : {"\u202E", "\u2066", "\xFF", "\x01"})
    EXPECT_EQ(count(page, raw), 0u);
  EXPECT_GT(count(page, R"(\u202E\u2066\xFF\x01)"), 0u);
}

TEST(SimulationPage, SaysWhatItLeavesOut) {
  std::string without = pageOf(*trainingPlan({2, 2, 2}), clusterOf(1), {}, false);
  EXPECT_TRUE(contains(without, "the simulation did not keep their times"));
  EXPECT_FALSE(contains(pageOf(*trainingPlan({2, 2, 2}), clusterOf(1)), "did not keep"));
}

TEST(SimulationPage, StaysSmall) {
  SchedulePlanShape shape{.devices = 64, .microbatches = 512};
  std::string page = pageOf(*oneForwardOneBackwardPlan(shape), clusterOf(16));
  EXPECT_LT(page.size(), size_t{2} << 20);
  EXPECT_TRUE(contains(page, "A part of the middle: "));
  EXPECT_TRUE(contains(page, "a part of its middle and its end are drawn"));
  EXPECT_TRUE(contains(page, "6 of 64 stages are drawn."));
  EXPECT_EQ(count(page, "<summary>A table of all 64 stages</summary>"), 2u);
  EXPECT_TRUE(contains(page, "12 more nodes are not drawn"));
}

TEST(SimulationPage, RefusesASmallerCluster) {
  Expected<Simulation> simulation = simulateOnCluster(*pipelinePlan(4), clusterOf(2));
  ASSERT_OK(simulation);
  Expected<std::string> page = simulationToHtml(*pipelinePlan(4), clusterOf(1), *simulation);
  ASSERT_FALSE(page);
  EXPECT_TRUE(contains(page.error().message, "the mesh has 8 devices"));
}

TEST(WritePage, MakesTheFolder) {
  TempDir dir;
  EXPECT_OK(writePage(dir.path("a/b"), "one"));
  EXPECT_EQ(dir.read("a/b/index.html"), "one");
  EXPECT_OK(writePage(dir.path("a/b"), "two"));
  EXPECT_EQ(dir.read("a/b/index.html"), "two");
}

TEST(WritePage, NamesWhatIsInTheWay) {
  TempDir dir;
  std::string file = dir.write("file", "x");
  MaybeError error = writePage(file, "page");
  ASSERT_TRUE(error);
  EXPECT_TRUE(contains(error->message, file + ": is no folder"));
  error = writePage(file + "/below", "page");
  ASSERT_TRUE(error);
  EXPECT_TRUE(contains(error->message, "cannot make the folder"));
}

} // namespace simulationPageTest
