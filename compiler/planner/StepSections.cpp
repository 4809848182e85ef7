//===- StepSections.cpp - The passes of a step without a pipeline ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/StepSections.h"

#include "plan/PlanTypes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <utility>
#include <vector>

using namespace dtc;

/// The value that a buffer is, or is a view of. Values that reuse each other's memory differ.
static uint32_t valueOf(const plan::Program &program, uint32_t buffer) {
  const plan::Buffer &at = program.buffers(int(buffer));
  return at.has_view_of() ? at.view_of() : buffer;
}

/// The values that an instruction reads, and those that it writes.
static std::array<llvm::SmallVector<uint32_t, 8>, 2>
valuesOf(const plan::Program &program, const plan::Instruction &instruction) {
  std::array<llvm::SmallVector<uint32_t, 8>, 2> found;
  auto add = [&](int which, uint32_t buffer) {
    found[size_t(which)].push_back(valueOf(program, buffer));
  };
  for (uint32_t buffer : instruction.kernel().inputs())
    add(0, buffer);
  for (uint32_t buffer : instruction.kernel().outputs())
    add(1, buffer);
  for (const plan::CollectiveTensor &tensor : instruction.collective().tensors()) {
    add(0, tensor.input());
    add(1, tensor.output());
  }
  return found;
}

static bool isUpdate(const plan::Program &program, const plan::Instruction &instruction) {
  auto [read, written] = valuesOf(program, instruction);
  auto kindOfStorage = [&](uint32_t value) {
    return kindOf(program.buffers(int(storageOf(program, value))));
  };
  return llvm::any_of(read,
                      [&](uint32_t buffer) {
                        return kindOfStorage(buffer) == BufferKind::OptimizerState;
                      }) ||
         llvm::any_of(written, [&](uint32_t buffer) {
           BufferKind kind = kindOfStorage(buffer);
           return kind == BufferKind::Parameter || kind == BufferKind::MasterWeight ||
                  kind == BufferKind::OptimizerState;
         });
}

void dtc::splitStep(plan::Program &program) {
  if (llvm::any_of(program.tasks(),
                   [](const plan::Task &task) { return passOf(task).has_value(); }))
    return;
  const int tasks = program.tasks_size();
  for (int t = 0; t < tasks; ++t) {
    const plan::Task whole = program.tasks(t);
    constexpr size_t kPasses = 0, kUpdate = 1;
    std::array<plan::Task, 2> sections;
    sections[kPasses].set_kind(plan::Task::BACKWARD);
    sections[kPasses].set_name(whole.name() + ".passes");
    sections[kUpdate].set_name(whole.name() + ".update");
    std::vector<std::pair<size_t, uint32_t>> places; // of instructions: section and number there
    for (const plan::Instruction &instruction : whole.instructions()) {
      size_t section = instruction.has_wait() ? places[instruction.wait().instruction()].first
                       : isUpdate(program, instruction) ? kUpdate
                                                        : kPasses;
      plan::Instruction &copy = *sections[section].add_instructions();
      copy = instruction;
      copy.clear_after();
      for (uint32_t before : instruction.after())
        if (places[before].first == section)
          copy.add_after(places[before].second);
      if (instruction.has_wait())
        copy.mutable_wait()->set_instruction(places[instruction.wait().instruction()].second);
      places.emplace_back(section, uint32_t(sections[section].instructions_size() - 1));
    }
    *program.mutable_tasks(t) = sections[kPasses];
    *program.add_tasks() = sections[kUpdate];
  }
  plan::Program before;
  before.mutable_schedule()->Swap(program.mutable_schedule());
  for (const plan::ScheduleEntry &entry : before.schedule()) {
    *program.add_schedule() = entry;
    plan::ScheduleEntry &update = *program.add_schedule();
    update = entry;
    update.set_task(entry.task() + uint32_t(tasks));
  }
}
