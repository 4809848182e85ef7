//===- TaskCost.cpp - How long a task works between its stops -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/TaskCost.h"

#include <algorithm>
#include <cmath>

namespace dtc::runtime {

static bool computes(const plan::Instruction &instruction) {
  return instruction.has_kernel() || instruction.has_collective();
}

static bool isStop(const plan::Instruction &instruction, const std::string &pipelineAxis) {
  if (instruction.has_start_transfer() || instruction.has_finish_transfer() ||
      instruction.has_wait())
    return true;
  const auto &axes = instruction.collective().axes();
  return !pipelineAxis.empty() && std::find(axes.begin(), axes.end(), pipelineAxis) != axes.end();
}

TaskCost TaskCost::of(const plan::Task &task, const std::string &pipelineAxis,
                      double flopsPerSecond) {
  double flops = 0, even = 0;
  for (const plan::Instruction &instruction : task.instructions())
    if (computes(instruction)) {
      flops += instruction.flops();
      even += 1;
    }
  TaskCost cost;
  cost.seconds = task.seconds() > 0 ? task.seconds() : flops / flopsPerSecond;
  if (!std::isfinite(cost.seconds))
    cost.seconds = 0;
  bool byFlops = flops > 0 && std::isfinite(flops);
  double total = byFlops ? flops : even, passed = 0;
  for (int i = 0; i < task.instructions_size(); ++i) {
    const plan::Instruction &instruction = task.instructions(i);
    if (isStop(instruction, pipelineAxis))
      cost.stops.push_back({i, total > 0 ? std::min(1.0, passed / total) : 1.0});
    if (computes(instruction))
      passed += byFlops ? instruction.flops() : 1;
  }
  return cost;
}

} // namespace dtc::runtime
