//===- PlanSimulation.cpp - Simulation of a plan without a cluster --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/PlanSimulation.h"

#include "plan/PlanTypes.h"
#include "plan/TransferEnds.h"
#include "simulator/AxisLinks.h"
#include "simulator/StepSimulator.h"
#include "simulator/cluster/CollectiveTime.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace dtc {

/// Calls of the host are in no estimate: they take nothing.
static bool computes(const plan::Program &program, const plan::Instruction &instruction) {
  return instruction.has_collective() ||
         (instruction.has_kernel() && laneOf(program, instruction) == Lane::Compute);
}

/// The start or the end of a message at an instruction; none if there is none.
static std::optional<SimulatedOperation> transferOf(const plan::Instruction &instruction) {
  using Kind = SimulatedOperation::Kind;
  if (instruction.has_start_transfer())
    return SimulatedOperation{.kind = Kind::StartTransfer,
                              .id = instruction.start_transfer().transfer()};
  if (instruction.has_finish_transfer())
    return SimulatedOperation{.kind = Kind::FinishTransfer,
                              .id = instruction.finish_transfer().transfer()};
  return std::nullopt;
}

/// The steps of a task: its time is spread over its kernels and collectives.
static std::vector<SimulatedOperation> stepsOf(const plan::Program &program, const plan::Task &task,
                                               double flopsPerSecond) {
  double flops = 0, even = 0;
  for (const plan::Instruction &instruction : task.instructions())
    if (computes(program, instruction)) {
      flops += instruction.flops();
      even += 1;
    }
  double seconds = task.seconds() > 0 ? task.seconds() : flops / flopsPerSecond;
  if (!std::isfinite(seconds))
    seconds = 0;
  bool byFlops = flops > 0 && std::isfinite(flops);
  double total = byFlops ? flops : even, passed = 0, computed = 0;
  std::vector<SimulatedOperation> steps;
  auto computeUntil = [&](double end) {
    if (end > computed)
      steps.push_back({.seconds = end - std::exchange(computed, end)});
  };
  for (const plan::Instruction &instruction : task.instructions()) {
    if (auto transfer = transferOf(instruction)) {
      computeUntil(total > 0 ? std::min(1.0, passed / total) * seconds : seconds);
      steps.push_back(*transfer);
    }
    if (computes(program, instruction))
      passed += byFlops ? instruction.flops() : 1;
  }
  computeUntil(seconds);
  return steps;
}

Expected<Timeline> simulatePlan(const plan::Plan &plan, const TimelineOptions &options) {
  Expected<std::map<uint32_t, TransferEnds>> paired = pairTransfers(plan);
  if (!paired)
    return paired.error();
  StepWork work = StepWork::ofSchedule(plan);
  work.isRendezvous = options.rendezvous;
  GroupShape pair;
  for (const plan::Axis &axis : plan.axes())
    if (axis.pipeline()) {
      LinkSpeed link = resolveLink(axis, {{axis.name(), options.link}}).speed;
      pair = GroupShape::ofTorus(std::array{GroupAxis{2, link}});
    }
  for (const auto &[number, ends] : *paired)
    work.channels[number] = {ends.from, ends.to, ends.bytes,
                             messageTime(static_cast<double>(ends.bytes), pair).seconds};
  for (size_t p = 0; p < work.devices.size(); ++p) {
    const plan::Program &program = plan.programs(static_cast<int>(p));
    for (int t = 0; t < program.tasks_size(); ++t)
      work.devices[p].tasks[static_cast<size_t>(t)].steps =
          stepsOf(program, program.tasks(t), options.flopsPerSecond);
  }
  Expected<StepSimulation> simulation = simulateStep(work);
  if (!simulation)
    return simulation.error();
  return std::move(simulation->timeline);
}

} // namespace dtc
