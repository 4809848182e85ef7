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
#include <optional>
#include <utility>
#include <vector>

using namespace dtc;

/// The buffers that an instruction reads, and those that it writes, as they lie in memory.
static std::array<llvm::SmallVector<uint32_t, 8>, 2>
storagesOf(const plan::Program &program, const plan::Instruction &instruction) {
  std::array<llvm::SmallVector<uint32_t, 8>, 2> found;
  auto add = [&](int which, uint32_t buffer) {
    found[size_t(which)].push_back(storageOf(program, buffer));
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
  auto [read, written] = storagesOf(program, instruction);
  auto kindOfStorage = [&](uint32_t buffer) { return kindOf(program.buffers(int(buffer))); };
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

/// The task and the number of the last instruction that writes the loss.
static std::optional<std::pair<int, int>> findLoss(const plan::Program &program) {
  auto output = llvm::find_if(program.outputs(),
                              [](const plan::Output &each) { return each.name() == "loss"; });
  if (output == program.outputs().end())
    return std::nullopt;
  uint32_t loss = storageOf(program, output->buffer());
  std::optional<std::pair<int, int>> last;
  for (int t = 0; t < program.tasks_size(); ++t)
    for (int i = 0; i < program.tasks(t).instructions_size(); ++i)
      if (llvm::is_contained(storagesOf(program, program.tasks(t).instructions(i))[1], loss))
        last = {t, i};
  return last;
}

void dtc::splitStep(plan::Program &program) {
  std::optional<std::pair<int, int>> loss = findLoss(program);
  if (!loss || passOf(program.tasks(loss->first)))
    return;
  const plan::Task whole = program.tasks(loss->first);
  constexpr size_t kForward = 0, kBackward = 1, kUpdate = 2;
  std::array<plan::Task, 3> sections;
  auto begin = [&](size_t section, plan::Task::Kind kind, const char *name) {
    sections[section].set_kind(kind);
    sections[section].set_name(whole.name() + name);
  };
  begin(kForward, plan::Task::FORWARD, ".forward");
  begin(kBackward, plan::Task::BACKWARD, ".backward");
  begin(kUpdate, plan::Task::OTHER, ".update");
  std::vector<std::pair<size_t, uint32_t>> places; // of instructions: section and number there
  for (int i = 0; i < whole.instructions_size(); ++i) {
    const plan::Instruction &instruction = whole.instructions(i);
    auto placeOf = [&](uint32_t number) { return places[number]; };
    if (instruction.has_wait()) {
      auto [section, number] = placeOf(instruction.wait().instruction());
      bool isOfBefore = section == kForward && i > loss->second;
      places.emplace_back(section, uint32_t(sections[section].instructions_size()));
      if (!isOfBefore) {
        plan::Instruction &wait = *sections[section].add_instructions();
        wait = instruction;
        wait.mutable_wait()->set_instruction(number);
      }
      continue;
    }
    size_t section = isUpdate(program, instruction) ? kUpdate
                     : i <= loss->second            ? kForward
                                                    : kBackward;
    places.emplace_back(section, uint32_t(sections[section].instructions_size()));
    plan::Instruction &copy = *sections[section].add_instructions();
    copy = instruction;
    copy.clear_after();
    for (uint32_t before : instruction.after())
      if (placeOf(before).first == section)
        copy.add_after(placeOf(before).second);
  }
  *program.mutable_tasks(loss->first) = sections[kForward];
  const uint32_t added = uint32_t(program.tasks_size());
  *program.add_tasks() = sections[kBackward];
  *program.add_tasks() = sections[kUpdate];
  plan::Program before;
  before.mutable_schedule()->Swap(program.mutable_schedule());
  for (const plan::ScheduleEntry &entry : before.schedule()) {
    *program.add_schedule() = entry;
    for (uint32_t i = 0; i < 2 && int(entry.task()) == loss->first; ++i) {
      plan::ScheduleEntry &more = *program.add_schedule();
      more = entry;
      more.set_task(added + i);
    }
  }
}
