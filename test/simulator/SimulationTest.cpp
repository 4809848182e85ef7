//===- SimulationTest.cpp - Tests of simulation on a cluster --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/Simulation.h"

#include "report/SimulationReport.h"
#include "report/SimulationTrace.h"
#include "test/lib/RandomCases.h"
#include "test/lib/plans/ChainPlan.h"
#include "test/lib/plans/HostPlan.h"
#include "test/lib/plans/MutateMessage.h"
#include "test/lib/plans/TestPlans.h"
#include "test/report/SchedulePlans.h"
#include "test/simulator/cluster/FullCluster.h"
#include "test/simulator/cluster/ParsedCluster.h"

#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>

namespace simulationTest {

using namespace dtc;
using namespace dtc::runtime::testing;

namespace {

/// Four nodes of two devices. Each costs 3600 an hour and draws 30 watts at work, 10 else; a node
/// has 5 watts more.
const cluster::Cluster &pairs() {
  static const cluster::Cluster cluster =
      parsedCluster(plainDevice("busy_watts: 30 idle_watts: 10 price_per_hour: 3600 "
                                "usable_memory: 0.5 overlap_slowdown: 0.25 fuses_pointwise: true") +
                    R"(
        name: "pairs"
        node_kinds { name: "n" device: "plain" devices: 2 link { bandwidth: 10 latency: 0.1 }
                     device_network_bandwidth: 1 watts: 5 }
        nodes { node: "n" count: 4 }
        grams_co2_per_kwh: 100 power_usage_effectiveness: 2)");
  return cluster;
}

Simulation simulate(const plan::Plan &plan, const cluster::Cluster &cluster = pairs(),
                    const SimulationOptions &options = {}) {
  Expected<Simulation> simulation = simulateOnCluster(plan, cluster, options);
  EXPECT_OK(simulation);
  return simulation ? *simulation : Simulation();
}

double sum(const std::vector<AxesSeconds> &exposed) {
  double seconds = 0;
  for (const AxesSeconds &entry : exposed)
    seconds += entry.seconds;
  return seconds;
}

/// Checks the properties of every simulation.
void expectConsistent(const plan::Plan &plan, const Simulation &simulation) {
  double step = simulation.stepSeconds, tolerance = 1e-9 * step;
  EXPECT_GT(step, 0);
  ASSERT_EQ(simulation.stages.size(), static_cast<size_t>(plan.programs_size()));
  for (size_t p = 0; p < simulation.stages.size(); ++p) {
    const StageSimulation &stage = simulation.stages[p];
    const StepBreakdown &times = stage.times;
    EXPECT_NEAR(times.computing + times.exposedTransfers + times.exposedHost + times.idle +
                    std::accumulate(times.exposed.begin(), times.exposed.end(), 0.0),
                step, tolerance);
    // Computing takes the kernels' time or, slowed down, more.
    EXPECT_GE(times.computing,
              std::accumulate(stage.kernels.begin(), stage.kernels.end(), 0.0) - tolerance);
    EXPECT_EQ(stage.arenaBytes, plan.programs(static_cast<int>(p)).arena_bytes());
  }
  EXPECT_NEAR(simulation.computing + sum(simulation.exposed) + simulation.exposedTransfers +
                  simulation.idle,
              step, tolerance);
  EXPECT_GE(simulation.slowedDown(), -tolerance);
  EXPECT_GE(simulation.hfu(), 0);
  EXPECT_LE(simulation.hfu(), 1);
  EXPECT_TRUE(nlohmann::json::accept(simulationToJson(simulation)));
  EXPECT_TRUE(formatSimulation(simulation).ends_with("\n"));
}

std::vector<std::pair<std::string, std::shared_ptr<plan::Plan>>> allPlans() {
  return {{"training", trainingPlan({2, 2, 2})},
          {"one device", trainingPlan({1, 1, 1})},
          {"forward", forwardPlan()},
          {"overlap", overlapPlan(true)},
          {"in order", overlapPlan(false)},
          {"kernels", kernelPlan()},
          {"pipeline", pipelinePlan(2)},
          {"chain", chainPlan({.stages = 4, .dp = 2, .microbatches = 6, .extraKernel = ""})},
          {"gpipe", gpipePlan({.devices = 3, .microbatches = 4})},
          {"1f1b", oneForwardOneBackwardPlan({.devices = 3, .microbatches = 4})}};
}

} // namespace

TEST(Simulation, HangsTogetherForEveryPlan) {
  for (const auto &[name, plan] : allPlans()) {
    SCOPED_TRACE(name);
    Simulation simulation = simulate(*plan);
    expectConsistent(*plan, simulation);
    // The same bytes again.
    EXPECT_EQ(simulationToJson(simulate(*plan)), simulationToJson(simulation));
  }
}

/// Devices that share cores, and what was measured with them.
TEST(Simulation, HangsTogetherOnSharedCores) {
  cluster::Cluster cluster = pairs();
  cluster.mutable_node_kinds(0)->set_devices(8);
  cluster.mutable_node_kinds(0)->set_shared_cores(2);
  for (const auto &[name, plan] : allPlans()) {
    SCOPED_TRACE(name);
    expectConsistent(*plan, simulate(*plan, cluster));
  }
}

/// Collectives wait for the last of their members.
TEST(Simulation, MeetingsTakeTime) {
  cluster::Cluster cluster = pairs();
  for (int64_t members : {2, 4}) {
    cluster::ArrivalSkew &skew =
        *cluster.mutable_node_kinds(0)->mutable_link()->add_arrival_skews();
    skew.set_members(members);
    skew.set_work_seconds(1);
    skew.set_wait_seconds(0.1);
  }
  int longer = 0;
  for (const auto &[name, plan] : allPlans()) {
    SCOPED_TRACE(name);
    Simulation simulation = simulate(*plan, cluster);
    expectConsistent(*plan, simulation);
    longer += simulation.stepSeconds > simulate(*plan, pairs()).stepSeconds;
  }
  EXPECT_GT(longer, 0);
}

TEST(Simulation, AFasterClusterIsFaster) {
  cluster::Cluster faster = pairs();
  faster.mutable_devices(0)->set_memory_bandwidth(2);
  faster.mutable_node_kinds(0)->set_device_network_bandwidth(4);
  for (const auto &[name, plan] : allPlans())
    EXPECT_LT(simulate(*plan, faster).stepSeconds, simulate(*plan).stepSeconds) << name;
}

TEST(Simulation, EnergyAndCost) {
  Simulation simulation = simulate(*trainingPlan({2, 2, 2}), pairs(), {.tokens = 4800});
  double step = simulation.stepSeconds, busy = simulation.computing / step;
  EXPECT_EQ(simulation.devices, 4);
  EXPECT_EQ(simulation.nodes, 2);
  EXPECT_DOUBLE_EQ(simulation.cost, 4 * step);
  double watts = 2 * (4 * (10 + busy * 20) + 2 * 5);
  EXPECT_NEAR(simulation.joules, watts * step, 1e-9 * watts * step);
  EXPECT_DOUBLE_EQ(simulation.grams, simulation.joules / 3.6e6 * 100);
  EXPECT_EQ(simulation.tokens, 8 * 6);
  EXPECT_EQ(simulation.trainingSteps(), 100);
  EXPECT_TRUE(contains(formatSimulation(simulation), "4800 tokens: 100 steps"));
  nlohmann::json json = nlohmann::json::parse(simulationToJson(simulation));
  EXPECT_DOUBLE_EQ(json["training"]["cost"], 400 * step);
  EXPECT_DOUBLE_EQ(json["training"]["days"], 100 * step / 86400);

  // Values that the cluster does not give are unknown, not 0.
  cluster::Cluster silent = pairs();
  for (cluster::DeviceKind &device : *silent.mutable_devices()) {
    device.set_price_per_hour(0);
    device.set_busy_watts(0);
    device.set_idle_watts(0);
  }
  silent.mutable_node_kinds(0)->set_watts(0);
  json = nlohmann::json::parse(simulationToJson(simulate(*trainingPlan(), silent)));
  EXPECT_TRUE(json["step_cost"].is_null() && json["step_joules"].is_null());
  EXPECT_TRUE(json["step_grams_co2"].is_null());
  EXPECT_FALSE(json.contains("training"));
  EXPECT_FALSE(contains(formatSimulation(simulate(*trainingPlan(), silent)), "Energy"));
}

TEST(Simulation, Utilization) {
  auto plan = trainingPlan({2, 2, 2});
  plan->set_model_flops(1000);
  plan->set_masked_flops(200);
  Simulation simulation = simulate(*plan);
  EXPECT_EQ(simulation.peakFlops, 4); // of 1 FLOP/s each
  EXPECT_DOUBLE_EQ(simulation.mfu(), 1000 / simulation.stepSeconds / 4);
  EXPECT_DOUBLE_EQ(simulation.causalMfu(), 800 / simulation.stepSeconds / 4);
  EXPECT_TRUE(contains(formatSimulation(simulation), "(causal attention)"));
  plan->set_masked_flops(0);
  EXPECT_FALSE(contains(formatSimulation(simulate(*plan)), "(causal attention)"));
}

/// The peak is that of each device in the type that the plan multiplies in, or in the type that the
/// device computes it in; the time of the slowest device and the least memory count.
TEST(Simulation, MixedClusters) {
  cluster::Cluster mixed = parsedCluster(plainDevice() + R"(
    devices { name: "fast" memory_bytes: 5e5 memory_bandwidth: 1e6
              matrix { dtype: "bf16" flops: 100 } }
    node_kinds { name: "a" device: "plain" devices: 1 network_bandwidth: 1 }
    node_kinds { name: "b" device: "fast" devices: 1 network_bandwidth: 1 }
    nodes { node: "a" count: 1 }
    nodes { node: "b" count: 1 })");
  auto plan = trainingPlan({2, 1, 1});
  Simulation simulation = simulate(*plan, mixed);
  EXPECT_EQ(simulation.peakFlops, 1 + 100);
  EXPECT_EQ(simulation.stages[0].deviceKinds, (std::vector<std::string>{"plain", "fast"}));
  EXPECT_EQ(simulation.stages[0].memoryBytes, 5e5);
  cluster::Cluster slow = mixed;
  slow.mutable_nodes()->DeleteSubrange(1, 1);
  slow.mutable_nodes(0)->set_count(2);
  EXPECT_DOUBLE_EQ(simulate(*plan, slow).stepSeconds, simulation.stepSeconds);
}

TEST(Simulation, PlansThatDoNotFit) {
  cluster::Cluster small = pairs();
  small.mutable_devices(0)->set_memory_bytes(100);
  Simulation simulation = simulate(*trainingPlan({2, 2, 2}), small);
  EXPECT_EQ(simulation.stages[0].memoryBytes, 50);
  EXPECT_TRUE(contains(formatSimulation(simulation), "plain: does not fit"));
  EXPECT_EQ(nlohmann::json::parse(simulationToJson(simulation))["stages"][0]["memory"]["fits"],
            false);
  EXPECT_FALSE(contains(formatSimulation(simulate(*trainingPlan())), "does not fit"));
}

TEST(Simulation, TooFewDevices) {
  EXPECT_ERROR(simulateOnCluster(*trainingPlan({3, 3, 1}), pairs()),
               "the mesh has 9 devices, the cluster \"pairs\" has 8");
}

/// Whatever numbers a cluster has that checkCluster() accepts, times are numbers.
TEST(Simulation, ClustersOfAllSorts) {
  const uint64_t count = test::randomCases(3000), seed = test::randomSeed();
  std::mt19937_64 random(seed);
  Expected<cluster::Cluster> full = parseCluster(kFullClusterText);
  ASSERT_OK(full);
  auto plans = allPlans();
  uint64_t accepted = 0;
  for (uint64_t i = 0; i < count; ++i) {
    SCOPED_TRACE("DTC_RANDOM_SEED=" + std::to_string(seed) + ", cluster " + std::to_string(i));
    cluster::Cluster cluster = random() % 2 ? pairs() : *full;
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes)
      mutateMessage(cluster, random);
    if (checkCluster(cluster))
      continue;
    const plan::Plan &plan = *plans[random() % plans.size()].second;
    Expected<Simulation> simulation = simulateOnCluster(plan, cluster);
    if (!simulation) {
      EXPECT_ERROR(simulation, "the mesh has ");
      continue;
    }
    ++accepted;
    EXPECT_TRUE(std::isfinite(simulation->stepSeconds) && simulation->stepSeconds > 0);
    EXPECT_TRUE(std::isfinite(simulation->cost) && std::isfinite(simulation->joules));
    EXPECT_TRUE(std::isfinite(simulation->hfu()));
    ASSERT_FALSE(HasFailure()) << formatCluster(cluster);
  }
  EXPECT_GT(accepted, count / 30);
}

/// Integers of samples alone are no tokens: classes, say.
TEST(Simulation, PlansWithoutTokens) {
  auto plan = trainingPlan();
  plan->mutable_programs(0)->mutable_inputs(0)->mutable_shape()->RemoveLast();
  Simulation simulation = simulate(*plan, pairs(), {.tokens = 100});
  EXPECT_EQ(simulation.tokens, 0);
  EXPECT_FALSE(simulation.trainingSteps());
  EXPECT_FALSE(contains(formatSimulation(simulation), "tokens"));
}

/// Kernels without operands and FLOPs that no kernel has are no reason to stop.
TEST(Simulation, FlopsOfAKernelWithoutOperands) {
  auto plan = trainingPlan();
  plan::Instruction &instruction = *plan->mutable_programs(0)->mutable_tasks(0)->add_instructions();
  instruction.mutable_kernel()->set_kernel("attention");
  instruction.set_flops(1e6);
  EXPECT_EQ(simulate(*plan).peakDtype, "f32");
}

TEST(SimulationTrace, HasARowForWhatIsAtWork) {
  auto plan = chainPlan({.stages = 3, .dp = 2, .microbatches = 4, .extraKernel = ""});
  Simulation simulation = simulate(*plan, pairs(), {.keepCollectives = true});
  nlohmann::json trace = nlohmann::json::parse(simulationToTrace(*plan, simulation));
  std::set<std::string> names, threads;
  size_t sends = 0, receives = 0, begins = 0, ends = 0;
  for (const nlohmann::json &event : trace["traceEvents"]) {
    if (event["name"] == "process_name")
      names.insert(event["args"]["name"]);
    if (event["name"] == "thread_name")
      threads.insert(event["args"]["name"]);
    sends += event["name"] == "send";
    receives += event["name"] == "receive";
    begins += event["ph"] == "s";
    ends += event["ph"] == "f";
    if (event["ph"] == "X") {
      EXPECT_GE(event["dur"], 0);
      EXPECT_LE(event["ts"].get<double>() + event["dur"].get<double>(),
                simulation.stepSeconds * 1e6 * (1 + 1e-9));
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"pp=0", "pp=1", "pp=2"}));
  EXPECT_EQ(threads, (std::set<std::string>{"compute", "collectives", "transfers"}));
  EXPECT_EQ(sends, 16u); // to the next stage and back, 4 microbatches, 2 borders
  EXPECT_EQ(receives, sends);
  EXPECT_EQ(begins, sends);
  EXPECT_EQ(ends, sends);
}

/// A node of two devices whose host reads and writes 4 bytes a second, over links of 1 byte a
/// second.
static cluster::Cluster clusterWithHost(double memoryBytes) {
  return parsedCluster(plainDevice() + fmt::format(R"(
      devices {{ name: "h" memory_bytes: {} memory_bandwidth: 4 matrix {{ dtype: "f32" flops: 1 }} }}
      node_kinds {{ name: "n" device: "plain" devices: 2 link {{ bandwidth: 1 }}
                   host: "h" host_link {{ bandwidth: 2 sustained: 0.5 latency: 0.5 }} }}
      nodes {{ node: "n" count: 1 }})",
                                                   memoryBytes));
}

TEST(Simulation, TheHostTakesItsTimeAndMemory) {
  HostPlan builder;
  builder.waitForAll();
  auto plan = builder.build();
  Simulation simulation = simulate(*plan, clusterWithHost(512));
  // A kernel reads and writes 128 bytes; two copies take 0.5 + 64 each. The host reads and writes
  // 192 bytes for each of two devices, and the result comes back.
  EXPECT_DOUBLE_EQ(simulation.computing, 128);
  EXPECT_DOUBLE_EQ(simulation.exposedHost, 2 * 64.5 + 2 * 192 / 4.0 + 64.5);
  EXPECT_DOUBLE_EQ(simulation.stepSeconds, simulation.computing + simulation.exposedHost);
  const StageSimulation &stage = simulation.stages[0];
  EXPECT_EQ(stage.hostArenaBytes, 256u);
  EXPECT_EQ(stage.nodeHostBytes, 512);
  EXPECT_EQ(stage.hostMemoryBytes, 512);
  EXPECT_TRUE(stage.fits());
  EXPECT_TRUE(contains(formatSimulation(simulation), "exposed work of the host"));
  EXPECT_TRUE(contains(formatSimulation(simulation), "Memory of the host"));
  EXPECT_FALSE(simulate(*plan, clusterWithHost(511)).stages[0].fits());
  // The field comes before the memory of the kind of device.
  cluster::Cluster cluster = clusterWithHost(511);
  cluster.mutable_node_kinds(0)->set_host_memory_bytes(512);
  EXPECT_TRUE(simulate(*plan, cluster).stages[0].fits());
}

TEST(Simulation, APlanNeedsHostsThatTheClusterDescribes) {
  const char *expected =
      "values of the plan are to lie in the memory of the host, and the cluster does not describe "
      "the host of its nodes \"n\"; expected `host` and `host_link` there (docs/clusters.md)";
  HostPlan builder;
  builder.waitForAll();
  EXPECT_EQ(messageOf(simulateOnCluster(*builder.build(), pairs())), expected);
  // So too if nothing lies in the memory that a program claims.
  plan::Plan claims = *trainingPlan({2, 2, 2});
  claims.mutable_programs(0)->set_host_arena_bytes(64);
  EXPECT_EQ(messageOf(simulateOnCluster(claims, pairs())), expected);
}

TEST(SimulationTrace, NamesCollectives) {
  auto plan = overlapPlan(true);
  Simulation simulation = simulate(*plan, pairs(), {.keepCollectives = true});
  std::string trace = simulationToTrace(*plan, simulation);
  EXPECT_TRUE(nlohmann::json::accept(trace));
  EXPECT_TRUE(contains(trace, "\"name\":\"all_reduce\""));
  EXPECT_TRUE(contains(trace, "\"axes\":[\"a\"]"));
  EXPECT_TRUE(contains(trace, "\"every device\""));
}

} // namespace simulationTest
