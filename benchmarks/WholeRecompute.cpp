//===- WholeRecompute.cpp - Recomputation of whole layers -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/WholeRecompute.h"

#include "plan/PlanTypes.h"

#include <cctype>
#include <map>
#include <utility>

using namespace dtc;

namespace {

/// Computes one stage's forward task again, with buffers of their own for what that writes.
class Repetition {
public:
  Repetition(const plan::Plan &plan, plan::Program &program, const std::string &prefix)
      : plan(plan), program(program), prefix(prefix) {}

  void copy(const plan::Task &forward) {
    for (int i = 0; i < forward.instructions_size(); ++i) {
      plan::Instruction instruction = forward.instructions(i);
      if (!benchmarks::isOfLayer(plan, instruction, prefix))
        continue;
      if (instruction.has_wait()) {
        auto started = numbers.find(instruction.wait().instruction());
        if (started == numbers.end())
          continue;
        instruction.mutable_wait()->set_instruction(started->second);
      } else if (!instruction.has_kernel() && !instruction.has_collective()) {
        continue;
      }
      readCopies(instruction);
      if (instruction.has_kernel())
        for (uint32_t &buffer : *instruction.mutable_kernel()->mutable_outputs())
          buffer = copyOf(buffer);
      if (instruction.has_collective())
        for (plan::CollectiveTensor &tensor : *instruction.mutable_collective()->mutable_tensors())
          tensor.set_output(copyOf(tensor.output()));
      numbers[static_cast<uint32_t>(i)] = static_cast<uint32_t>(copies.instructions_size());
      *copies.add_instructions() = std::move(instruction);
    }
  }

  /// Puts the copies before what the backward task computes, after what it receives: frameworks
  /// recompute when the gradient has come.
  void insertInto(plan::Task &backward) {
    plan::Task whole;
    int first = 0;
    while (first < backward.instructions_size() &&
           backward.instructions(first).has_finish_transfer())
      *whole.add_instructions() = backward.instructions(first++);
    for (plan::Instruction &instruction : *copies.mutable_instructions()) {
      if (instruction.has_wait())
        shift(instruction, first);
      *whole.add_instructions() = std::move(instruction);
    }
    for (int i = first; i < backward.instructions_size(); ++i) {
      plan::Instruction instruction = backward.instructions(i);
      if (instruction.has_wait())
        shift(instruction, copies.instructions_size());
      readCopies(instruction);
      *whole.add_instructions() = std::move(instruction);
    }
    backward.mutable_instructions()->Swap(whole.mutable_instructions());
  }

private:
  static void shift(plan::Instruction &wait, int by) {
    wait.mutable_wait()->set_instruction(wait.wait().instruction() + static_cast<uint32_t>(by));
  }

  uint32_t baseOf(uint32_t buffer) const { return dtc::storageOf(program, buffer); }

  uint32_t addBuffer(plan::Buffer buffer) {
    *program.add_buffers() = std::move(buffer);
    return static_cast<uint32_t>(program.buffers_size() - 1);
  }

  /// The copy of a buffer that an instruction writes, made if there is none.
  uint32_t copyOf(uint32_t buffer) {
    auto [it, fresh] = bases.try_emplace(baseOf(buffer), 0);
    if (fresh)
      it->second = addBuffer(program.buffers(static_cast<int>(it->first)));
    return findCopy(buffer);
  }

  /// The copy of a buffer, or itself where the copies do not write it.
  uint32_t findCopy(uint32_t buffer) {
    auto base = bases.find(baseOf(buffer));
    if (base == bases.end())
      return buffer;
    if (buffer == base->first)
      return base->second;
    auto [it, fresh] = views.try_emplace(buffer, 0);
    if (fresh) {
      plan::Buffer view = program.buffers(static_cast<int>(buffer));
      view.clear_reuses();
      view.set_view_of(base->second);
      it->second = addBuffer(std::move(view));
    }
    return it->second;
  }

  void readCopies(plan::Instruction &instruction) {
    if (instruction.has_kernel())
      for (uint32_t &buffer : *instruction.mutable_kernel()->mutable_inputs())
        buffer = findCopy(buffer);
    if (instruction.has_collective())
      for (plan::CollectiveTensor &tensor : *instruction.mutable_collective()->mutable_tensors())
        tensor.set_input(findCopy(tensor.input()));
  }

  const plan::Plan &plan;
  plan::Program &program;
  const std::string &prefix;
  plan::Task copies;                         // its instructions
  std::map<uint32_t, uint32_t> numbers;      // of the copies, by those in the forward task
  std::map<uint32_t, uint32_t> bases, views; // copies of buffers
};

} // namespace

bool benchmarks::isOfLayer(const plan::Plan &plan, const plan::Instruction &instruction,
                           const std::string &prefix) {
  if (static_cast<int>(instruction.location()) >= plan.locations_size())
    return false;
  const std::string &location = plan.locations(static_cast<int>(instruction.location()));
  return location.starts_with(prefix) && location.size() > prefix.size() &&
         std::isdigit(static_cast<unsigned char>(location[prefix.size()]));
}

void benchmarks::computeForwardAgain(plan::Plan &plan, const std::string &prefix) {
  for (plan::Program &program : *plan.mutable_programs())
    for (plan::Task &backward : *program.mutable_tasks()) {
      if (passOf(backward) != StagePass::Backward)
        continue;
      Repetition repetition(plan, program, prefix);
      for (const plan::Task &forward : program.tasks())
        if (passOf(forward) == StagePass::Forward && forward.stage() == backward.stage())
          repetition.copy(forward);
      repetition.insertInto(backward);
    }
}
