//===- StoredMasks.cpp - Reference masks of dropout -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/StoredMasks.h"

#include "benchmarks/WholeRecompute.h"
#include "plan/PlanTypes.h"

#include <algorithm>
#include <map>
#include <utility>

using namespace dtc;

namespace {

/// The calls of one random op in the tasks of a stage: they have its number and draw the same mask.
struct Mask {
  double elements = 0;   // of one call
  int forward = 0;       // calls in forward tasks
  int laterDropouts = 0; // and in others: the gradient's, and those that recompute the op
};

} // namespace

double benchmarks::storedMaskBytes(const plan::Plan &plan, const plan::Program &program,
                                   const std::string &layers) {
  std::map<uint32_t, std::map<int64_t, Mask>> stages; // by stage and number of the op
  for (const plan::Task &task : program.tasks()) {
    if (!passOf(task))
      continue;
    for (const plan::Instruction &instruction : task.instructions()) {
      const plan::KernelCall &call = instruction.kernel();
      if (call.kernel() != "dropout" || (!layers.empty() && !isOfLayer(plan, instruction, layers)))
        continue;
      Mask &mask = stages[task.stage()][call.attributes().at("op").i()];
      if (passOf(task) == StagePass::Forward) {
        ++mask.forward;
        mask.elements = static_cast<double>(
            typeOf(program.buffers(static_cast<int>(call.outputs(0)))).numElements());
      } else {
        ++mask.laterDropouts;
      }
    }
  }
  std::map<uint32_t, double> bytes; // of a microbatch, by stage
  for (const auto &[stage, masks] : stages)
    for (const auto &[number, mask] : masks)
      if (mask.forward == 1 && mask.laterDropouts == 1)
        bytes[stage] += mask.elements;
  double kept = 0, most = 0;
  for (const plan::ScheduleEntry &entry : program.schedule()) {
    const plan::Task &task = program.tasks(static_cast<int>(entry.task()));
    auto found = bytes.find(task.stage());
    if (found == bytes.end())
      continue;
    if (passOf(task) == StagePass::Forward)
      kept += found->second;
    most = std::max(most, kept);
    if (passOf(task) == StagePass::Backward)
      kept -= found->second;
  }
  return most;
}

void benchmarks::addMaskTraffic(plan::Plan &plan) {
  for (plan::Program &program : *plan.mutable_programs())
    for (plan::Task &task : *program.mutable_tasks()) {
      if (!passOf(task))
        continue;
      for (plan::Instruction &instruction : *task.mutable_instructions()) {
        if (instruction.kernel().kernel() != "dropout")
          continue;
        plan::KernelCall &call = *instruction.mutable_kernel();
        plan::Buffer mask;
        mask.set_dtype(toPlan(DType::Bool));
        mask.set_kind(toPlan(BufferKind::Activation));
        *mask.mutable_shape() = program.buffers(static_cast<int>(call.outputs(0))).shape();
        call.add_inputs(static_cast<uint32_t>(program.buffers_size()));
        *program.add_buffers() = std::move(mask);
      }
    }
}
