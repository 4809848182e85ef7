//===- AttentionAgain.cpp - Recomputation of attention to its end ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/AttentionAgain.h"

#include "plan/KernelTable.h"
#include "plan/PlanTypes.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

using namespace dtc;

/// The number of a dropout's random op; the calls that draw the same mask have the same. None of
/// other instructions.
static std::optional<int64_t> dropoutOf(const plan::Instruction &instruction) {
  if (instruction.kernel().kernel() != "dropout")
    return std::nullopt;
  return instruction.kernel().attributes().at("op").i();
}

/// The products of a forward task that read what a dropout gives, by the number of that.
static std::map<int64_t, plan::Instruction> productsOfDropouts(const plan::Program &program,
                                                               const plan::Task &forward) {
  std::map<uint32_t, int64_t> dropouts; // by what they write
  std::map<int64_t, plan::Instruction> products;
  for (const plan::Instruction &instruction : forward.instructions()) {
    if (auto number = dropoutOf(instruction))
      dropouts[storageOf(program, instruction.kernel().outputs(0))] = *number;
    if (classOf(instruction.kernel().kernel()) != KernelClass::Product)
      continue;
    for (uint32_t input : instruction.kernel().inputs())
      if (auto it = dropouts.find(storageOf(program, input)); it != dropouts.end())
        products[it->second] = instruction;
  }
  return products;
}

/// The forward task's product of what `dropout` of a backward task gives again.
static plan::Instruction repeat(plan::Program &program, plan::Instruction product,
                                const plan::Task &forward, const plan::Instruction &dropout) {
  uint32_t given = 0;
  for (const plan::Instruction &instruction : forward.instructions())
    if (auto number = dropoutOf(instruction); number && number == dropoutOf(dropout))
      given = storageOf(program, instruction.kernel().outputs(0));
  for (uint32_t &input : *product.mutable_kernel()->mutable_inputs())
    if (storageOf(program, input) == given)
      input = dropout.kernel().outputs(0);
  plan::Buffer result = program.buffers(static_cast<int>(product.kernel().outputs(0)));
  result.clear_view_of();
  result.clear_reuses();
  *program.add_buffers() = std::move(result);
  product.mutable_kernel()->set_outputs(0, static_cast<uint32_t>(program.buffers_size() - 1));
  return product;
}

static void computeToItsEnd(plan::Program &program, const plan::Task &forward,
                            plan::Task &backward) {
  std::map<int64_t, plan::Instruction> products = productsOfDropouts(program, forward);
  std::map<int64_t, int> calls; // of the task: two of what it recomputes, one of other gradients
  for (const plan::Instruction &instruction : backward.instructions())
    if (auto number = dropoutOf(instruction))
      ++calls[*number];
  plan::Task whole;
  std::vector<uint32_t> numbers; // of the instructions, by those of before
  for (plan::Instruction instruction : backward.instructions()) {
    numbers.push_back(static_cast<uint32_t>(whole.instructions_size()));
    if (instruction.has_wait())
      instruction.mutable_wait()->set_instruction(numbers[instruction.wait().instruction()]);
    auto number = dropoutOf(instruction);
    bool isRecomputed = number && calls[*number]-- == 2 && products.contains(*number);
    *whole.add_instructions() = instruction;
    if (isRecomputed)
      *whole.add_instructions() = repeat(program, products.at(*number), forward, instruction);
  }
  backward.mutable_instructions()->Swap(whole.mutable_instructions());
}

void benchmarks::computeAttentionToItsEnd(plan::Plan &plan) {
  for (plan::Program &program : *plan.mutable_programs())
    for (plan::Task &backward : *program.mutable_tasks())
      if (passOf(backward) == StagePass::Backward)
        for (const plan::Task &forward : program.tasks())
          if (passOf(forward) == StagePass::Forward && forward.stage() == backward.stage())
            computeToItsEnd(program, forward, backward);
}
