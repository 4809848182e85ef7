//===- MemoryTimelineTest.cpp - Tests of memory over a step ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/html/MemoryTimeline.h"
#include "simulator/PlanSimulation.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"

#include <gtest/gtest.h>

namespace memoryTimelineTest {

using namespace dtc;
using namespace dtc::runtime::testing;

namespace {

uint64_t of(const MemoryUse &use, BufferKind kind) { return use[memoryBandOf(kind)]; }

/// A timeline in which every execution of a task of the first program takes a second.
Timeline secondsEach(const plan::Plan &plan) {
  Timeline timeline;
  timeline.programs.resize(1);
  for (int e = 0; e < plan.programs(0).schedule_size(); ++e) {
    TaskInterval interval;
    interval.execution = static_cast<size_t>(e);
    interval.start = e;
    interval.end = e + 1;
    timeline.programs[0].push_back(interval);
  }
  return timeline;
}

} // namespace

TEST(MemoryTimeline, FollowsValuesFromTheirWriteToTheirLastRead) {
  PlanBuilder b;
  plan::Input &x = b.input("x", DType::F32, {32}, {{}}); // 128 bytes
  uint32_t first = b.buffer(DType::F32, {64});           // 256
  uint32_t second = b.buffer(DType::F32, {64});          // 256
  uint32_t scratch = b.buffer(DType::F32, {1});          // rounded up to 64
  b.output("y", DType::F32, {64}, {{}}, second);
  // Each task has one instruction, and so each second of the step.
  auto step = [&](const std::vector<uint32_t> &inputs, uint32_t output) {
    uint32_t task = b.task("t" + std::to_string(b.program().tasks_size()));
    b.kernel("k", inputs, {output});
    b.schedule(task);
  };
  step({x.buffer()}, first);   // x, first
  step({first}, scratch);      // first, scratch
  step({x.buffer()}, scratch); // x still, and a second value of scratch, never read
  step({first}, second);       // first, second
  std::shared_ptr<plan::Plan> plan = b.build();

  MemoryTimeline memory = followMemory(*plan, 0, secondsEach(*plan), 4, 4);
  std::vector<uint64_t> totals;
  for (const MemoryUse &use : memory.parts)
    totals.push_back(use.total());
  // A part that ends when another begins has what is there at that moment.
  EXPECT_EQ(totals, (std::vector<uint64_t>{128 + 256, 128 + 256 + 64, 128 + 256 + 64, 256 + 256}));
  EXPECT_EQ(memory.peak.total(), 512u);
  EXPECT_EQ(of(memory.peak, BufferKind::Activation), 512u);
  EXPECT_EQ(memory.peakSeconds, 3);
  EXPECT_EQ(memory.peakTask, "t3");
}

TEST(MemoryTimeline, KeepsStatesAndWhatWorksBesideCompute) {
  PlanBuilder b;
  b.axis("dp", 2);
  uint32_t w = b.state("w", DType::F32, {64}, {{}}).buffer(); // 256 bytes
  uint32_t sum = b.buffer(DType::F32, {64}, plan::Buffer::GRADIENT);
  uint32_t other = b.buffer(DType::F32, {16});
  uint32_t task = b.task("t");
  b.kernel("k", {w}, {other});
  b.collective(plan::Collective::ALL_REDUCE, {"dp"}, w, sum);
  uint32_t collective = b.async();
  b.kernel("k", {}, {other});
  b.wait(collective);
  b.kernel("k", {sum}, {w});
  b.schedule(task);
  std::shared_ptr<plan::Plan> plan = b.build();

  MemoryTimeline memory = followMemory(*plan, 0, secondsEach(*plan), 1, 5);
  for (const MemoryUse &use : memory.parts)
    EXPECT_EQ(of(use, BufferKind::Parameter), 256u);
  EXPECT_EQ(of(memory.parts[3], BufferKind::Gradient), 256u);
  EXPECT_EQ(memory.peak.total(), 256u + 256 + 64);
}

TEST(MemoryTimeline, CountsTheSlotsInUse) {
  static const std::vector<uint32_t> slots = {3, 0, 2, 1};
  auto mostOf = [](const std::vector<std::pair<bool, uint32_t>> &order) {
    PlanBuilder b;
    b.axis("micro", 4, true);
    // 128 bytes for each microbatch. Which slot one has makes no difference.
    uint32_t kept = b.slotted(DType::F32, {32}, 4);
    if (order[1].first) {
      b.program().add_slot_maps()->mutable_slots()->Assign(slots.begin(), slots.end());
      b.program().mutable_buffers(static_cast<int>(kept))->set_slot_map(0);
    }
    uint32_t scratch = b.buffer(DType::F32, {16}); // 64 bytes
    uint32_t forward = b.task("forward"), first = b.program().tasks_size();
    b.kernel("k", {}, {kept});
    uint32_t backward = b.task("backward");
    b.kernel("k", {kept}, {scratch});
    EXPECT_EQ(backward, first);
    for (auto [isForward, microbatch] : order)
      b.schedule(isForward ? forward : backward, microbatch);
    std::shared_ptr<plan::Plan> plan = b.build();
    return followMemory(*plan, 0, secondsEach(*plan), static_cast<double>(order.size()), 10)
        .peak.total();
  };
  constexpr bool f = true, b = false;
  EXPECT_EQ(mostOf({{f, 0}, {f, 1}, {f, 2}, {f, 3}, {b, 0}, {b, 1}, {b, 2}, {b, 3}}),
            4u * 128 + 64);
  EXPECT_EQ(mostOf({{f, 0}, {f, 1}, {b, 0}, {f, 2}, {b, 1}, {f, 3}, {b, 2}, {b, 3}}),
            2u * 128 + 64);
  EXPECT_EQ(mostOf({{f, 0}, {b, 0}, {f, 1}, {b, 1}, {f, 2}, {b, 2}, {f, 3}, {b, 3}}), 128u + 64);
}

TEST(MemoryTimeline, StaysInTheArena) {
  auto sharing = pipelinePlan(2);
  shareSlots(*sharing->mutable_programs(0));
  for (const std::shared_ptr<plan::Plan> &plan :
       {trainingPlan({2, 2, 4}), forwardPlan(), overlapPlan(true), kernelPlan(), pipelinePlan(2),
        sharing}) {
    Expected<Timeline> timeline = simulatePlan(*plan);
    ASSERT_OK(timeline);
    for (int p = 0; p < plan->programs_size(); ++p) {
      MemoryTimeline memory =
          followMemory(*plan, static_cast<size_t>(p), *timeline, timeline->step().seconds(), 50);
      EXPECT_GT(memory.peak.total(), 0u) << plan->model();
      EXPECT_LE(memory.peak.total(), plan->programs(p).arena_bytes()) << plan->model();
      for (const MemoryUse &use : memory.parts)
        EXPECT_LE(use.total(), memory.peak.total()) << plan->model();
    }
  }
}

} // namespace memoryTimelineTest
