//===- StepSimulatorTest.cpp - Simulated steps of plans -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/StepSimulator.h"

#include "plan/PlanTypes.h"
#include "simulator/TimedPlan.h"
#include "test/lib/plans/TimeGuard.h"
#include "test/report/SchedulePlans.h"
#include "test/simulator/cluster/ParsedCluster.h"

#include <chrono>
#include <gtest/gtest.h>
#include <numeric>

namespace stepSimulatorTest {

using namespace dtc;
using namespace dtc::runtime::testing;
using plan::Task;

namespace {

/// A cluster of nodes of 64 devices. `node` says more of a node, `device` of a device.
cluster::Cluster clusterOf(const std::string &device = "", const std::string &node = "") {
  return parsedCluster(plainDevice(device) + R"(
    node_kinds { name: "n" device: "plain" devices: 64 link { bandwidth: 1 }
                 device_network_bandwidth: 1 )" +
                       node + R"( }
    nodes { node: "n" count: 2 })");
}

/// A plan, the cluster and the steps on it, with times as tests want them.
struct Steps {
  explicit Steps(const std::shared_ptr<plan::Plan> &plan, cluster::Cluster cluster = clusterOf())
      : plan(plan), cluster(std::make_unique<cluster::Cluster>(std::move(cluster))),
        topology(*Topology::create(*this->cluster, meshOf(*plan))) {
    Expected<StepWork> made = workOnCluster(*plan, topology);
    EXPECT_OK(made);
    steps = std::move(*made);
  }

  /// Computing of tasks of a kind takes this long, on all devices or on one.
  void compute(Task::Kind kind, double seconds, int device = -1) {
    for (int p = 0; p < plan->programs_size(); ++p)
      for (int t = 0; t < plan->programs(p).tasks_size(); ++t)
        if (plan->programs(p).tasks(t).kind() == kind && (device < 0 || device == p))
          for (SimulatedOperation &step : stepsOf(p, t))
            if (step.kind == SimulatedOperation::Kind::Compute)
              step.seconds = seconds;
  }
  void transfers(double seconds) {
    for (auto &[number, channel] : steps.channels)
      channel.seconds = seconds;
  }
  std::vector<SimulatedOperation> &stepsOf(int p, int t) {
    return steps.devices[static_cast<size_t>(p)].tasks[static_cast<size_t>(t)].steps;
  }

  StepSimulation run() {
    Expected<StepSimulation> simulation = simulateStep(steps, /*keepCollectives=*/true);
    EXPECT_OK(simulation);
    if (!simulation)
      return {};
    for (const StepBreakdown &times : simulation->devices)
      EXPECT_NEAR(times.computing + times.exposedTransfers + times.idle +
                      std::accumulate(times.exposed.begin(), times.exposed.end(), 0.0),
                  simulation->seconds, 1e-9 * simulation->seconds);
    return *simulation;
  }

  std::shared_ptr<plan::Plan> plan;
  std::unique_ptr<cluster::Cluster> cluster;
  Topology topology;
  StepWork steps;
};

/// One task of computing and collectives over "dp" (of 2 devices) or "tp" (of 2), in the order that
/// the calls have. The steps get the seconds that are said there.
class OneTask {
public:
  OneTask() {
    builder.axis("dp", 2);
    builder.axis("tp", 2);
    x = builder.buffer(DType::F32, {8});
    y = builder.buffer(DType::F32, {8});
    builder.task("all");
  }
  void compute(double seconds) {
    builder.kernel("gelu", {x}, {y});
    times.push_back(seconds);
  }
  void collective(double seconds, const std::string &axis = "dp") {
    builder.collective(plan::Collective::ALL_REDUCE, {axis}, x, y);
    times.push_back(seconds);
  }
  uint32_t async(double seconds, const std::string &axis = "dp") {
    collective(seconds, axis);
    return builder.async();
  }
  void wait(uint32_t instruction) {
    builder.wait(instruction);
    times.push_back(0);
  }
  StepSimulation run(const cluster::Cluster &cluster = clusterOf()) {
    builder.schedule(0);
    Steps steps(builder.build(), cluster);
    std::vector<SimulatedOperation> &list = steps.stepsOf(0, 0);
    EXPECT_EQ(list.size(), times.size());
    for (size_t i = 0; i < list.size(); ++i)
      list[i].seconds = times[i];
    return steps.run();
  }

private:
  PlanBuilder builder;
  uint32_t x, y;
  std::vector<double> times;
};

} // namespace

//===--- Pipelines --------------------------------------------------------===//

/// As in compiler/analysis/PipelineSchedule.h: (p-1) (F+B) seconds of each device.
TEST(StepSimulator, TheBubbleIsThatOfTheFormula) {
  for (uint32_t p : {1, 2, 3, 4, 8})
    for (uint32_t m : {1, 2, 4, 8, 32})
      for (double backward : {1.0, 2.0})
        for (auto make : {gpipePlan, oneForwardOneBackwardPlan}) {
          Steps steps(make({.devices = p, .microbatches = m}));
          steps.compute(Task::FORWARD, 1);
          steps.compute(Task::BACKWARD, backward);
          steps.transfers(0);
          StepSimulation step = steps.run();
          double bubble = (p - 1) * (1 + backward);
          EXPECT_DOUBLE_EQ(step.seconds, m * (1 + backward) + bubble);
          EXPECT_NEAR(step.timeline.bubbleShare(), (p - 1.0) / (m + p - 1.0), 1e-9);
          for (const StepBreakdown &times : step.devices) {
            EXPECT_DOUBLE_EQ(times.computing, m * (1 + backward));
            EXPECT_NEAR(times.idle, bubble, 1e-9);
            EXPECT_EQ(times.exposedTransfers, 0);
          }
        }
}

/// As large as pipelines get; the guard ends what would need minutes.
TEST(StepSimulator, ManyStagesAndMicrobatches) {
  TimeGuard guard(std::chrono::seconds(60), "64 stages, 1024 microbatches");
  Steps steps(oneForwardOneBackwardPlan({.devices = 64, .microbatches = 1024}));
  steps.compute(Task::FORWARD, 1);
  steps.compute(Task::BACKWARD, 2);
  steps.transfers(0);
  StepSimulation step = steps.run();
  EXPECT_DOUBLE_EQ(step.seconds, (1024 + 63) * 3.0);
  EXPECT_EQ(step.timeline.transfers.size(), size_t{2 * 63 * 1024});
}

TEST(StepSimulator, TransfersAreOnTheWay) {
  Steps steps(gpipePlan({.devices = 2, .microbatches = 1}));
  steps.compute(Task::FORWARD, 1);
  steps.compute(Task::BACKWARD, 2);
  steps.transfers(10);
  StepSimulation step = steps.run();
  // F0 0-1, message 1-11, F1 11-12, B1 12-14, message 14-24, B0 24-26.
  EXPECT_DOUBLE_EQ(step.seconds, 26);
  ASSERT_EQ(step.timeline.transfers.size(), 2u);
  EXPECT_DOUBLE_EQ(step.timeline.transfers[0].start, 1);
  EXPECT_DOUBLE_EQ(step.timeline.transfers[0].end, 11);
  EXPECT_DOUBLE_EQ(step.timeline.transfers[1].start, 14);
  EXPECT_EQ(step.timeline.transfers[0].bytes, 32u);
  EXPECT_EQ(step.timeline.transfers[0].from, 0u);
  // Device 0 waits 13 s for the message to be sent and 10 s for it to come. Device 1 waits 1 s and
  // 10 s, and 10 s at its end, where it finishes its send.
  EXPECT_DOUBLE_EQ(step.devices[0].idle, 13);
  EXPECT_DOUBLE_EQ(step.devices[0].exposedTransfers, 10);
  EXPECT_DOUBLE_EQ(step.devices[1].idle, 3);
  EXPECT_DOUBLE_EQ(step.devices[1].exposedTransfers, 20);
}

/// The second message of a channel waits for the first.
TEST(StepSimulator, MessagesOfAChannelFollowEachOther) {
  Steps steps(gpipePlan({.devices = 2, .microbatches = 3}));
  steps.compute(Task::FORWARD, 1);
  steps.compute(Task::BACKWARD, 100);
  steps.transfers(10);
  StepSimulation step = steps.run();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(step.timeline.transfers[i].start, 1 + 10.0 * static_cast<double>(i));
    EXPECT_EQ(step.timeline.transfers[i].microbatch, i);
  }
}

/// The plan of the interleaved schedule: two channels between the same devices share their ports.
TEST(StepSimulator, ChannelsBetweenTheSameDevicesShare) {
  SchedulePlanBuilder builder({.devices = 2, .chunks = 2, .microbatches = 1});
  // Stages 0 and 2 are on device 0. Their sends start 1 s after each other.
  builder.work(0, {{Task::FORWARD, 0, 0}, {Task::FORWARD, 2, 0}});
  builder.work(1, {{Task::FORWARD, 1, 0}, {Task::FORWARD, 3, 0}});
  Steps steps(builder.build());
  steps.compute(Task::FORWARD, 1);
  steps.transfers(10);
  // Without a wait for stage 1 device 0 would send at 1 and 2.
  for (int t = 0; t < steps.plan->programs(0).tasks_size(); ++t)
    std::erase_if(steps.stepsOf(0, t), [](const SimulatedOperation &step) {
      return step.kind == SimulatedOperation::Kind::FinishTransfer;
    });
  StepSimulation step = steps.run();
  auto find = [&](uint32_t channel) {
    for (const TransferInterval &transfer : step.timeline.transfers)
      if (transfer.channel == channel)
        return transfer;
    return TransferInterval();
  };
  // Alone from 1 to 2, then both at half the speed: 9 s are left of the first, done at 20; by then
  // the second has 1 s left.
  EXPECT_DOUBLE_EQ(find(1).end, 20);
  EXPECT_DOUBLE_EQ(find(3).end, 21);
}

//===--- Collectives beside computing -------------------------------------===//

TEST(StepSimulator, ACollectiveThatIsWaitedFor) {
  OneTask task;
  task.compute(3);
  task.collective(4);
  task.compute(2);
  StepSimulation step = task.run();
  EXPECT_DOUBLE_EQ(step.seconds, 9);
  EXPECT_DOUBLE_EQ(step.devices[0].computing, 5);
  EXPECT_DOUBLE_EQ(step.devices[0].exposed[0], 4);
  ASSERT_EQ(step.collectives[0].size(), 1u);
  EXPECT_DOUBLE_EQ(step.collectives[0][0].start, 3);
  EXPECT_DOUBLE_EQ(step.collectives[0][0].end, 7);
}

TEST(StepSimulator, ACollectiveBesideComputing) {
  for (double computing : {4.0, 12.0}) {
    OneTask task;
    uint32_t collective = task.async(10);
    task.compute(computing);
    task.wait(collective);
    task.compute(1);
    StepSimulation step = task.run();
    EXPECT_DOUBLE_EQ(step.seconds, std::max(10.0, computing) + 1);
    EXPECT_DOUBLE_EQ(step.devices[0].exposed[0], std::max(0.0, 10 - computing));
    EXPECT_DOUBLE_EQ(step.devices[0].computing, computing + 1);
  }
}

/// Collectives are one after the other, and the time that is waited is that of those at work.
TEST(StepSimulator, CollectivesAreALane) {
  OneTask task;
  uint32_t first = task.async(3, "dp"), second = task.async(4, "tp");
  task.compute(1);
  task.wait(second);
  task.wait(first);
  StepSimulation step = task.run();
  EXPECT_DOUBLE_EQ(step.seconds, 7);
  EXPECT_DOUBLE_EQ(step.devices[0].exposed[0], 2);
  EXPECT_DOUBLE_EQ(step.devices[0].exposed[1], 4);
  ASSERT_EQ(step.collectives[0].size(), 2u);
  EXPECT_DOUBLE_EQ(step.collectives[0][1].start, 3);
  EXPECT_DOUBLE_EQ(step.collectives[0][1].end, 7);
}

TEST(StepSimulator, ComputingBesideCollectivesIsSlower) {
  cluster::Cluster cluster = clusterOf("overlap_slowdown: 0.5");
  for (double computing : {4.0, 8.0}) {
    OneTask task;
    uint32_t collective = task.async(10);
    task.compute(computing);
    task.wait(collective);
    StepSimulation step = task.run(cluster);
    // Half the speed in the first 10 s.
    EXPECT_DOUBLE_EQ(step.devices[0].computing, computing == 4 ? 8 : 13);
    EXPECT_DOUBLE_EQ(step.seconds, computing == 4 ? 10 : 13);
  }
}

/// Nothing is exposed where a collective and the computation beside it end at the same moment.
TEST(StepSimulator, EndsAtTheSameTime) {
  OneTask task;
  uint32_t collective = task.async(5);
  task.compute(5);
  task.wait(collective);
  task.compute(2);
  StepSimulation step = task.run();
  EXPECT_DOUBLE_EQ(step.seconds, 7);
  EXPECT_DOUBLE_EQ(step.devices[0].exposed[0], 0);
}

/// 4 devices, 2 cores: everything takes twice as long.
TEST(StepSimulator, SharedCores) {
  for (auto [cores, factor] : {std::pair(2, 2.0), {1, 4.0}, {4, 1.0}, {16, 1.0}}) {
    OneTask task;
    task.compute(3);
    task.collective(4);
    StepSimulation step = task.run(clusterOf("", "shared_cores: " + std::to_string(cores)));
    EXPECT_DOUBLE_EQ(step.seconds, 7 * factor) << cores;
    EXPECT_DOUBLE_EQ(step.devices[0].computing, 3 * factor);
  }
}

/// Stages on the same cores: those that wait leave them to others.
TEST(StepSimulator, StagesShareCores) {
  Steps steps(gpipePlan({.devices = 8, .microbatches = 16}), clusterOf("", "shared_cores: 2"));
  steps.compute(Task::FORWARD, 1);
  steps.compute(Task::BACKWARD, 1);
  steps.transfers(0);
  StepSimulation step = steps.run();
  // 8 * 32 seconds of work on two cores, and what one stage alone cannot use.
  EXPECT_GE(step.seconds, 8 * 32 / 2.0);
  EXPECT_LE(step.seconds, 8 * 32 / 2.0 + 2 * 8);
}

//===--- The host ---------------------------------------------------------===//

namespace {

/// A work of one task on each device, whose operations are these.
StepWork workOf(const std::vector<SimulatedOperation> &steps, size_t devices = 1) {
  StepWork work;
  work.axes = {{"dp"}};
  for (size_t p = 0; p < devices; ++p) {
    SimulatedDevice &device = work.devices.emplace_back();
    device.schedule.emplace_back();
    device.tasks.emplace_back().steps = steps;
    work.names.taskNames.push_back({"all"});
  }
  return work;
}

/// Copies take nothing of the bandwidth of the host's memory.
SimulatedOperation on(Lane lane, uint32_t id, double seconds,
                      const std::vector<uint32_t> &after = {}) {
  return {.kind = SimulatedOperation::Kind::OnLane,
          .lane = lane,
          .isAsync = true,
          .id = id,
          .seconds = seconds,
          .hostShare = lane == Lane::Host ? 1.0 : 0.0,
          .after = after};
}

SimulatedOperation waitFor(uint32_t id) {
  return {.kind = SimulatedOperation::Kind::Wait, .id = id};
}

StepSimulation simulated(const StepWork &work) {
  Expected<StepSimulation> step = simulateStep(work);
  EXPECT_OK(step);
  return step ? *step : StepSimulation();
}

} // namespace

/// While the host updates one parameter, the gradient of the next goes there and the one before
/// comes back.
TEST(StepSimulator, TheLanesOfTheHostOverlap) {
  std::vector<SimulatedOperation> steps = {on(Lane::ToHost, 0, 2),
                                           on(Lane::ToHost, 1, 3),
                                           on(Lane::Host, 2, 4, {0}),     // 2 to 6
                                           on(Lane::Host, 3, 1, {1}),     // 6 to 7
                                           on(Lane::ToDevice, 4, 2, {2}), // 6 to 8
                                           on(Lane::ToDevice, 5, 5, {3}), // 8 to 13
                                           {.seconds = 1}};
  for (uint32_t id = 0; id < 6; ++id)
    steps.push_back(waitFor(id));
  StepSimulation step = simulated(workOf(steps));
  EXPECT_DOUBLE_EQ(step.seconds, 13);
  EXPECT_DOUBLE_EQ(step.devices[0].computing, 1);
  EXPECT_DOUBLE_EQ(step.devices[0].exposedHost, 12);
  EXPECT_DOUBLE_EQ(step.devices[0].idle, 0);
  // Without the order between lanes the host would be done after 5, and the copies after 7.
  for (SimulatedOperation &each : steps)
    each.after.clear();
  EXPECT_DOUBLE_EQ(simulated(workOf(steps)).seconds, 7);
  // In order, a device waits for each.
  steps.resize(6);
  for (SimulatedOperation &each : steps)
    each.isAsync = false;
  EXPECT_DOUBLE_EQ(simulated(workOf(steps)).seconds, 17);
}

/// A device that waits for a collective waits for the host as long as the collective does.
TEST(StepSimulator, ACollectiveAfterWorkOfTheHost) {
  StepSimulation step = simulated(
      workOf({on(Lane::Host, 0, 3), on(Lane::Communication, 1, 2, {0}), waitFor(1), waitFor(0)}));
  EXPECT_DOUBLE_EQ(step.seconds, 5);
  EXPECT_DOUBLE_EQ(step.devices[0].exposedHost, 3);
  EXPECT_DOUBLE_EQ(step.devices[0].exposed[0], 2);
}

/// Devices of a node share the memory of its host, and on a CPU its cores.
TEST(StepSimulator, DevicesShareTheirHost) {
  SimulatedOperation call = on(Lane::Host, 0, 2);
  for (auto [share, inNode, cores, seconds] : {std::tuple(1.0, 1.0, 0.0, 4.0),
                                               {0.25, 1.0, 0.0, 2.0},
                                               {0.25, 4.0, 0.0, 4.0},
                                               {1.0, 1.0, 2.0, 2.0},
                                               {1.0, 1.0, 1.0, 4.0}}) {
    call.hostShare = share;
    StepWork work = workOf({call, waitFor(0)}, /*devices=*/2);
    for (SimulatedDevice &device : work.devices) {
      device.devicesInNode = inNode;
      device.sharedCores = cores;
    }
    EXPECT_DOUBLE_EQ(simulated(work).seconds, seconds) << share << " " << inNode << " " << cores;
    work.devices[1].node = 1;
    EXPECT_DOUBLE_EQ(simulated(work).seconds, std::max(2.0, cores > 0 ? 2.0 : 2 * share * inNode));
  }
}

//===--- Several at once --------------------------------------------------===//

/// A message and a collective through the same port take twice as long together.
TEST(StepSimulator, AMessageAndACollectiveShareAPort) {
  PlanBuilder builder;
  builder.pipelineAxis("pp", 2);
  builder.axis("dp", 2);
  for (int p : {0, 1}) {
    builder.inProgram(p);
    uint32_t x = builder.buffer(DType::F32, {8}), y = builder.buffer(DType::F32, {8});
    uint32_t move = builder.transfer(p == 0 ? plan::Transfer::SEND : plan::Transfer::RECEIVE,
                                     p == 0 ? 1 : 0, 1, {x});
    builder.schedule(builder.task("all"));
    builder.startTransfer(move);
    if (p == 0) {
      builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, y, y);
      builder.finishTransfer(move);
    } else {
      builder.finishTransfer(move);
    }
  }
  Steps steps(builder.build());
  steps.transfers(6);
  steps.stepsOf(0, 0)[1].seconds = 2;
  StepSimulation step = steps.run();
  // Both at half the speed up to 4, then the message alone: 4 s are left.
  EXPECT_DOUBLE_EQ(step.collectives[0][0].end, 4);
  EXPECT_DOUBLE_EQ(step.timeline.transfers[0].end, 8);
  EXPECT_DOUBLE_EQ(step.devices[0].exposed[0], 4);
  EXPECT_DOUBLE_EQ(step.devices[0].exposedTransfers, 4);

  // Not where one is between nodes and the other inside of one.
  for (SimulatedChannel *channel : {&steps.steps.channels.at(1)}) {
    channel->ports = DevicePorts::Network;
  }
  EXPECT_DOUBLE_EQ(steps.run().seconds, 6);
}

/// A step that nothing waits for is over when all operations that it started are over.
TEST(StepSimulator, TheStepEndsWithItsLastCollective) {
  OneTask task;
  task.async(10);
  task.compute(3);
  StepSimulation step = task.run();
  EXPECT_DOUBLE_EQ(step.seconds, 10);
  EXPECT_DOUBLE_EQ(step.devices[0].computing, 3);
}

//===--- Plans that are wrong ---------------------------------------------===//

TEST(StepSimulator, DevicesThatWaitForEver) {
  SchedulePlanBuilder builder({.devices = 2, .microbatches = 1});
  builder.work(0, {{Task::BACKWARD, 0, 0}, {Task::FORWARD, 0, 0}});
  builder.work(1, {{Task::FORWARD, 1, 0}, {Task::BACKWARD, 1, 0}});
  Steps steps(builder.build());
  EXPECT_ERROR(
      simulateStep(steps.steps),
      "the plan stalls: pipeline coordinate 0 waits in task \"backward.0\" of microbatch 0");
}

TEST(TimedPlan, EinsumsThatAreNone) {
  auto errorOf = [](const char *equation) {
    PlanBuilder builder;
    uint32_t a = builder.buffer(DType::F32, {2, 3}), b = builder.buffer(DType::F32, {3, 5});
    uint32_t c = builder.buffer(DType::F32, {2, 5});
    builder.schedule(builder.task("t"));
    plan::KernelCall &call = builder.kernel("einsum", {a, b}, {c});
    if (equation)
      (*call.mutable_attributes())["equation"] = stringAttribute(equation);
    cluster::Cluster cluster = clusterOf();
    auto plan = builder.build();
    Expected<Topology> topology = Topology::create(cluster, meshOf(*plan));
    Expected<StepWork> steps = workOnCluster(*plan, *topology);
    return steps ? "" : steps.error().message;
  };
  EXPECT_EQ(errorOf("ab,bc->ac"), "");
  for (const char *equation : {"", "ab", "ab,bc", "ab->ac", "ab,b->ac", "ab,bcd->ac", "AB,bc->ac",
                               "ab,b->c->ac", "->,", "a\xffg,bc->ac"})
    EXPECT_TRUE(contains(errorOf(equation), "task \"t\", instruction 0 (kernel einsum"))
        << equation;
  EXPECT_TRUE(contains(errorOf(nullptr), "expected an equation such as \"bsd,df->bsf\""));
}

} // namespace stepSimulatorTest
