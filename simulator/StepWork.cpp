//===- StepWork.cpp - Timed work of the devices in a step -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/StepWork.h"

#include "plan/PlanTypes.h"
#include "simulator/StepSimulator.h"

#include <algorithm>

namespace dtc {

StepWork StepWork::ofSchedule(const plan::Plan &plan) {
  StepWork work;
  Timeline &names = work.names;
  for (const plan::Axis &axis : plan.axes()) {
    if (axis.temporal())
      names.microbatches = axis.size();
    if (axis.pipeline())
      names.axis = axis.name();
  }
  names.model = plan.model();
  names.schedule = plan.pipeline().schedule();
  names.stages = plan.pipeline().stages();
  for (const plan::Program &program : plan.programs()) {
    SimulatedDevice &device = work.devices.emplace_back();
    std::vector<std::string> &taskNames = names.taskNames.emplace_back();
    for (const plan::Task &task : program.tasks()) {
      device.tasks.push_back({{}, passOf(task), task.stage(), {}});
      taskNames.push_back(task.name());
    }
    for (const plan::ScheduleEntry &entry : program.schedule())
      device.schedule.push_back({entry.task(), entry.microbatch()});
    for (const plan::Transfer &transfer : program.transfers())
      device.transfers.push_back({transfer.channel(), kindOf(transfer) == TransferKind::Send});
  }
  return work;
}

double isolatedSeconds(const SimulatedTask &task, double overlapSlowdown) {
  StepWork work;
  SimulatedDevice &device = work.devices.emplace_back();
  device.overlapSlowdown = overlapSlowdown;
  device.schedule.emplace_back();
  SimulatedTask &alone = device.tasks.emplace_back();
  work.names.taskNames = {{""}};
  for (SimulatedOperation step : task.steps) {
    if (step.kind == SimulatedOperation::Kind::StartTransfer ||
        step.kind == SimulatedOperation::Kind::FinishTransfer)
      continue;
    work.axes.resize(std::max<size_t>(work.axes.size(), step.axes + 1));
    alone.steps.push_back(step);
  }
  // There is no other device to wait for, and every wait is for a collective of the task.
  return simulateStep(work)->seconds;
}

} // namespace dtc
