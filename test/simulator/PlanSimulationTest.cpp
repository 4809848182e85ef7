//===- PlanSimulationTest.cpp - Tests of simulation without a cluster -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/PlanSimulation.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TestPlans.h"
#include "test/report/SchedulePlans.h"

#include <gtest/gtest.h>
#include <tuple>

namespace planSimulationTest {

using namespace dtc;
using namespace dtc::runtime::testing;
using plan::Task;

static Timeline simulate(const plan::Plan &plan, const TimelineOptions &options = {}) {
  Expected<Timeline> timeline = simulatePlan(plan, options);
  EXPECT_TRUE(timeline) << timeline.error().message;
  return timeline ? *timeline : Timeline();
}

static std::string errorOf(const plan::Plan &plan, const TimelineOptions &options = {}) {
  Expected<Timeline> timeline = simulatePlan(plan, options);
  EXPECT_FALSE(timeline);
  return timeline ? "" : timeline.error().message;
}

/// "F0@0-1 B0@2-4": the pipelined work of a device, times rounded to what is printed.
static std::string workOf(const Timeline &timeline, size_t program) {
  std::string text;
  for (const TaskInterval &interval : timeline.programs[program]) {
    if (!interval.isPipelined())
      continue;
    text += text.empty() ? "" : " ";
    text += "FBW"[indexOf(interval.pass.value())];
    text += std::to_string(interval.microbatch);
    char times[64];
    std::snprintf(times, sizeof times, "@%g-%g", interval.start, interval.end);
    text += times;
  }
  return text;
}

TEST(PlanSimulation, Gpipe) {
  Timeline timeline = simulate(*gpipePlan({.devices = 3, .microbatches = 2}));
  ASSERT_EQ(timeline.programs.size(), 3u);
  EXPECT_EQ(workOf(timeline, 0), "F0@0-1 F1@1-2 B0@6-7 B1@7-8");
  EXPECT_EQ(workOf(timeline, 1), "F0@1-2 F1@2-3 B0@5-6 B1@6-7");
  EXPECT_EQ(workOf(timeline, 2), "F0@2-3 F1@3-4 B0@4-5 B1@5-6");
  EXPECT_EQ(timeline.axis, "pp");
  EXPECT_EQ(timeline.schedule, "gpipe");
  EXPECT_EQ(timeline.stages, 3u);
  EXPECT_EQ(timeline.microbatches, 2);
  EXPECT_DOUBLE_EQ(timeline.step().seconds(), 8);
  EXPECT_DOUBLE_EQ(timeline.pipelined().seconds(), 8);
  EXPECT_DOUBLE_EQ(timeline.busySeconds(0, timeline.step()), 4);
}

TEST(PlanSimulation, OneForwardOneBackward) {
  Timeline timeline = simulate(
      *oneForwardOneBackwardPlan({.devices = 2, .microbatches = 3, .forward = 1, .backward = 2}));
  EXPECT_EQ(workOf(timeline, 0), "F0@0-1 F1@1-2 B0@4-6 F2@6-7 B1@7-9 B2@10-12");
  EXPECT_EQ(workOf(timeline, 1), "F0@1-2 B0@2-4 F1@4-5 B1@5-7 F2@7-8 B2@8-10");
}

TEST(PlanSimulation, TheBubbleIsThatOfTheFormula) {
  for (uint32_t p : {1, 2, 3, 4, 8})
    for (uint32_t m : {1, 2, 4, 8, 32})
      for (double backward : {1.0, 2.0}) {
        SchedulePlanShape shape{.devices = p, .microbatches = m, .backward = backward};
        double formula = (p - 1.0) / (m + p - 1.0);
        EXPECT_NEAR(simulate(*gpipePlan(shape)).bubbleShare(), formula, 1e-9);
        EXPECT_NEAR(simulate(*oneForwardOneBackwardPlan(shape)).bubbleShare(), formula, 1e-9);
      }
}

TEST(PlanSimulation, MicrobatchesInFlight) {
  SchedulePlanShape shape{.devices = 4, .microbatches = 8};
  Timeline gpipe = simulate(*gpipePlan(shape)), other = simulate(*oneForwardOneBackwardPlan(shape));
  ASSERT_EQ(gpipe.inFlight().size(), 4u);
  ASSERT_EQ(other.inFlight().size(), 4u);
  for (uint32_t s = 0; s < 4; ++s) {
    EXPECT_EQ(gpipe.inFlight()[s].stage, s);
    EXPECT_EQ(gpipe.inFlight()[s].program, s);
    EXPECT_EQ(gpipe.inFlight()[s].microbatches, 8u);
    EXPECT_EQ(other.inFlight()[s].microbatches, 4u - s);
  }
}

/// Two devices, where the first fills its waiting time with the gradients of its parameters.
TEST(PlanSimulation, WeightTasks) {
  SchedulePlanBuilder builder({.devices = 2, .microbatches = 2});
  for (uint32_t d : {0u, 1u})
    builder.work(d, {{Task::FORWARD, d, 0},
                     {Task::FORWARD, d, 1},
                     {Task::BACKWARD, d, 0},
                     {Task::WEIGHT, d, 0},
                     {Task::BACKWARD, d, 1},
                     {Task::WEIGHT, d, 1}});
  Timeline timeline = simulate(*builder.build());
  EXPECT_EQ(workOf(timeline, 0), "F0@0-1 F1@1-2 B0@4-5 W0@5-6 B1@6-7 W1@7-8");
  EXPECT_EQ(workOf(timeline, 1), "F0@1-2 F1@2-3 B0@3-4 W0@4-5 B1@5-6 W1@6-7");
  EXPECT_DOUBLE_EQ(timeline.bubbleShare(), 0.25);
  // A microbatch stays until its weights have their gradients.
  EXPECT_EQ(timeline.inFlight()[0].microbatches, 2u);
}

/// Each device has two stages: work goes round twice.
TEST(PlanSimulation, SeveralStagesOnADevice) {
  SchedulePlanShape shape{.devices = 2, .chunks = 2, .microbatches = 2};
  Timeline timeline = simulate(*gpipePlan(shape));
  EXPECT_EQ(workOf(timeline, 0), "F0@0-1 F1@1-2 F0@2-3 F1@3-4 B0@6-7 B1@7-8 B0@8-9 B1@9-10");
  EXPECT_EQ(timeline.stagesOf(0), (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(timeline.stagesOf(1), (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(timeline.chunks(), 2u);
  EXPECT_DOUBLE_EQ(timeline.bubbleShare(), 0.2); // half of 1 / 3 a chunk: (p-1)/(v*m+p-1)
}

TEST(PlanSimulation, TransfersTakeTime) {
  // 32 bytes at 64 bytes a second and a quarter: 0.75 seconds a message.
  SchedulePlanShape shape{.devices = 2, .microbatches = 2, .bandwidth = 64, .latency = 0.25};
  auto plan = gpipePlan(shape);
  Timeline timeline = simulate(*plan);
  EXPECT_EQ(workOf(timeline, 0), "F0@0-1 F1@1-2 B0@5.5-6.5 B1@6.5-7.5");
  EXPECT_EQ(workOf(timeline, 1), "F0@1.75-2.75 F1@2.75-3.75 B0@3.75-4.75 B1@4.75-5.75");
  ASSERT_EQ(timeline.transfers.size(), 4u);
  const TransferInterval &first = timeline.transfers[0], &back = timeline.transfers[2];
  EXPECT_EQ(std::tuple(first.channel, first.microbatch, first.from, first.to, first.bytes),
            std::tuple(1u, 0u, size_t{0}, size_t{1}, uint64_t{32}));
  EXPECT_DOUBLE_EQ(first.start, 1);
  EXPECT_DOUBLE_EQ(first.end, 1.75);
  EXPECT_EQ(std::tuple(back.channel, back.from, back.to), std::tuple(2u, size_t{1}, size_t{0}));
  EXPECT_DOUBLE_EQ(back.end, 5.5);

  // The values of the caller go before those of the plan.
  timeline = simulate(*plan, {.link = {16, 0}});
  EXPECT_DOUBLE_EQ(timeline.transfers[0].end, 1 + 0.25 + 2);
  EXPECT_DOUBLE_EQ(timeline.transfers[1].start, 3.25); // a channel carries one message at a time
  EXPECT_DOUBLE_EQ(timeline.transfers[1].end, 5.5);
}

TEST(PlanSimulation, AnUnknownLinkIsTheAssumedOne) {
  auto plan = gpipePlan({.devices = 2, .microbatches = 1, .bandwidth = 0, .latency = 0});
  EXPECT_DOUBLE_EQ(simulate(*plan).transfers[0].end, 1 + 10e-6 + 32 / 25e9);
}

/// A receive that starts late holds up the message, and the send if that waits for it.
TEST(PlanSimulation, ReceivesThatStartLate) {
  SchedulePlanBuilder builder({.devices = 2, .microbatches = 2});
  builder.work(0, {{Task::FORWARD, 0, 0}, {Task::FORWARD, 0, 1}});
  builder.work(1, {{Task::FORWARD, 1, 0}, {Task::FORWARD, 1, 1}});
  auto plan = builder.build();
  // Device 1 starts the receive of microbatch 1 only after it has worked on microbatch 0.
  auto &second = *plan->mutable_programs(1)->mutable_schedule();
  ASSERT_EQ(plan->programs(1).tasks(static_cast<int>(second[1].task())).name(), "receive.1");
  ASSERT_EQ(second[1].microbatch(), 1u);
  second.SwapElements(1, 2);
  Timeline timeline = simulate(*plan);
  EXPECT_EQ(workOf(timeline, 0), "F0@0-1 F1@1-2");
  EXPECT_EQ(workOf(timeline, 1), "F0@1-2 F1@2-3");

  for (plan::Task &task : *plan->mutable_programs(1)->mutable_tasks())
    if (task.kind() == Task::FORWARD)
      task.set_seconds(3);
  timeline = simulate(*plan);
  EXPECT_EQ(workOf(timeline, 1), "F0@1-4 F1@4-7");
  EXPECT_DOUBLE_EQ(timeline.transfers[1].start, 4);
  EXPECT_DOUBLE_EQ(timeline.step().end, 7);
  EXPECT_DOUBLE_EQ(timeline.programs[0].back().end, 4); // where it finishes its last send
}

/// With rendezvous a send keeps its device until the receive has started.
TEST(PlanSimulation, Rendezvous) {
  SchedulePlanBuilder builder({.devices = 2, .microbatches = 2});
  builder.work(0, {{Task::FORWARD, 0, 0}, {Task::WEIGHT, 0, 0}});
  builder.work(1, {{Task::WEIGHT, 1, 1}, {Task::WEIGHT, 1, 1}, {Task::FORWARD, 1, 0}});
  auto plan = builder.build();
  // The receive of device 1 starts after its first two tasks.
  auto &second = *plan->mutable_programs(1)->mutable_schedule();
  ASSERT_EQ(second.size(), 4);
  second.SwapElements(0, 2);
  EXPECT_EQ(workOf(simulate(*plan), 0), "F0@0-1 W0@1-2");
  Timeline timeline = simulate(*plan, {.rendezvous = true});
  EXPECT_EQ(workOf(timeline, 0), "F0@0-1 W0@2-3");
  EXPECT_EQ(workOf(timeline, 1), "W1@0-1 W1@1-2 F0@2-3");
}

/// A transfer that is needed in the middle of a task cuts it in two.
TEST(PlanSimulation, ATaskThatWaitsInItsMiddle) {
  SchedulePlanBuilder builder({.devices = 2, .microbatches = 1, .forward = 4});
  builder.work(0, {{Task::FORWARD, 0, 0}});
  builder.work(1, {{Task::FORWARD, 1, 0}});
  auto plan = builder.build();
  auto forward = [&](int p) {
    for (plan::Task &task : *plan->mutable_programs(p)->mutable_tasks())
      if (task.kind() == Task::FORWARD)
        return &task;
    return static_cast<plan::Task *>(nullptr);
  };
  // Three quarters of the second device's work need nothing from the first.
  *forward(1)->add_instructions() = forward(1)->instructions(1);
  forward(1)->mutable_instructions()->SwapElements(0, 1);
  forward(1)->mutable_instructions(0)->set_flops(300);
  forward(1)->mutable_instructions(2)->set_flops(100);
  Timeline timeline = simulate(*plan);
  EXPECT_EQ(workOf(timeline, 1), "F0@0-3 F0@4-5");
  EXPECT_EQ(timeline.programs[1][1].execution, timeline.programs[1][2].execution);
  EXPECT_DOUBLE_EQ(timeline.busySeconds(1, timeline.step()), 4);
  // A message that comes in time cuts nothing. Without FLOPs instructions share the time evenly:
  // the first device sends after one of two.
  forward(0)->mutable_instructions()->SwapElements(1, 2);
  timeline = simulate(*plan);
  EXPECT_DOUBLE_EQ(timeline.transfers[0].start, 2);
  EXPECT_EQ(workOf(timeline, 1), "F0@0-4");
}

TEST(PlanSimulation, SecondsThatThePlanDoesNotSay) {
  auto plan = gpipePlan({.devices = 2, .microbatches = 1, .forward = 0, .backward = 0});
  EXPECT_LT(simulate(*plan).pipelined().seconds(), 1e-20); // the transfers'
  for (plan::Program &program : *plan->mutable_programs())
    for (plan::Task &task : *program.mutable_tasks())
      if (task.kind() == Task::FORWARD)
        task.mutable_instructions(1)->set_flops(1e9);
  EXPECT_EQ(workOf(simulate(*plan, {.flopsPerSecond = 1e9}), 1), "F0@1-2 B0@2-2");
}

TEST(PlanSimulation, APlanOfOneProgram) {
  Timeline timeline = simulate(*trainingPlan({2, 2, 4}));
  ASSERT_EQ(timeline.programs.size(), 1u);
  EXPECT_EQ(timeline.programs[0].size(), 5u);
  EXPECT_EQ(timeline.axis, "");
  EXPECT_EQ(timeline.bubbleShare(), 0);
  EXPECT_TRUE(timeline.inFlight().empty());
}

TEST(PlanSimulation, PlansThatStall) {
  // Device 1 wants the gradients of its last microbatch first, which device 0 never sends.
  SchedulePlanBuilder builder({.devices = 2, .microbatches = 1});
  builder.work(0, {{Task::BACKWARD, 0, 0}, {Task::FORWARD, 0, 0}});
  builder.work(1, {{Task::FORWARD, 1, 0}, {Task::BACKWARD, 1, 0}});
  EXPECT_EQ(errorOf(*builder.build()),
            "the plan stalls: pipeline coordinate 0 waits in task \"backward.0\" of microbatch 0 "
            "for pipeline coordinate 1 to send microbatch 0 on channel 2, pipeline coordinate 1 "
            "waits in task \"forward.1\" of microbatch 0 for pipeline coordinate 0 to send "
            "microbatch 0 on channel 1; every device must reach the end of its schedule");
}

/// Both devices send before they receive: that needs sends that do not wait.
TEST(PlanSimulation, PlansThatStallWithRendezvous) {
  SchedulePlanBuilder builder({.devices = 2, .microbatches = 1});
  builder.work(0, {{Task::FORWARD, 0, 0}, {Task::BACKWARD, 0, 0}});
  builder.work(1, {{Task::BACKWARD, 1, 0}, {Task::FORWARD, 1, 0}});
  auto plan = builder.build();
  for (plan::Program &program : *plan->mutable_programs())
    program.mutable_schedule()->SwapElements(0, 1); // the receive after the first work
  simulate(*plan);
  std::string error = errorOf(*plan, {.rendezvous = true});
  EXPECT_TRUE(contains(error, "the plan stalls if sends wait for their receives: "));
  EXPECT_TRUE(contains(error, "coordinate 0 waits in task \"forward.0\" of microbatch 0 for "
                              "pipeline coordinate 1 to start its receive of microbatch 0"));
}

TEST(PlanSimulation, TransfersThatDoNotFit) {
  auto good = gpipePlan({.devices = 2, .microbatches = 2});
  plan::Plan plan = *good;
  plan.mutable_programs(1)->mutable_schedule()->SwapElements(0, 1);
  EXPECT_TRUE(contains(errorOf(plan), "message 0 of channel 1 is of microbatch 0, but its receive "
                                      "is for microbatch 1; expected the same order"));
  plan = *good;
  plan.mutable_programs(1)->mutable_transfers(0)->set_channel(77);
  EXPECT_TRUE(
      contains(errorOf(plan), "channel 1 has 1 sends and 0 receives; expected one of each"));
  plan = *good;
  plan.mutable_programs(1)->mutable_schedule()->DeleteSubrange(0, 2);
  EXPECT_TRUE(contains(errorOf(plan), "is finished for microbatch 0, but it was not started"));
  plan = *good;
  *plan.mutable_programs(1)->mutable_schedule(1) = plan.programs(1).schedule(0);
  EXPECT_TRUE(contains(errorOf(plan), "is started again for microbatch 0"));
  plan = *good;
  plan.mutable_programs(1)
      ->mutable_tasks(0)
      ->mutable_instructions(0)
      ->mutable_start_transfer()
      ->set_transfer(9);
  EXPECT_TRUE(contains(errorOf(plan), "names transfer 9, but the program has 2 transfers"));
}

TEST(PlanSimulation, APlanThatStatesStagesTransfersAndAnUpdate) {
  Timeline timeline = simulate(*pipelinePlan());
  EXPECT_EQ(timeline.transfers.size(), 7u);
  EXPECT_EQ(timeline.schedule, "1f1b");
  simulate(*pipelinePlan(), {.rendezvous = true});
}

} // namespace planSimulationTest
