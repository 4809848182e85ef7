//===- LayerOverlap.cpp - Megatron-LM's own overlap of collectives --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/LayerOverlap.h"

#include "plan/KernelTable.h"
#include "plan/PlanTypes.h"

#include <algorithm>
#include <cassert>
#include <utility>

using namespace dtc;

/// Whether an instruction is a matrix product that reads nothing of what the collective writes.
static bool isIndependentProduct(const plan::Program &program, const plan::Collective &collective,
                                 const plan::Instruction &instruction) {
  if (!instruction.has_kernel() || classOf(instruction.kernel().kernel()) != KernelClass::Product)
    return false;
  auto reads = [&](uint32_t written) {
    return std::ranges::any_of(instruction.kernel().inputs(), [&](uint32_t read) {
      return storageOf(program, read) == storageOf(program, written);
    });
  };
  return std::ranges::none_of(collective.tensors(), [&](const plan::CollectiveTensor &tensor) {
    return reads(tensor.output());
  });
}

static void overlapIn(const plan::Program &program, plan::Task &task) {
  plan::Task whole;
  auto add = [&](plan::Instruction instruction) -> plan::Instruction & {
    return *whole.add_instructions() = std::move(instruction);
  };
  for (int i = 0; i < task.instructions_size(); ++i) {
    plan::Instruction &instruction = add(task.instructions(i));
    assert(!instruction.has_wait() && "expected a plan without overlap");
    if (!instruction.has_collective() || i + 1 == task.instructions_size() ||
        !isIndependentProduct(program, instruction.collective(), task.instructions(i + 1)))
      continue;
    instruction.mutable_collective()->set_async(true);
    auto started = static_cast<uint32_t>(whole.instructions_size() - 1);
    add(task.instructions(++i));
    plan::Instruction wait;
    wait.mutable_wait()->set_instruction(started);
    add(std::move(wait));
  }
  task.mutable_instructions()->Swap(whole.mutable_instructions());
}

void benchmarks::overlapWithinLayers(plan::Plan &plan) {
  for (plan::Program &program : *plan.mutable_programs())
    for (plan::Task &task : *program.mutable_tasks())
      if (passOf(task) == StagePass::Backward)
        overlapIn(program, task);
}
