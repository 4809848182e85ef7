//===- ClosingInstructions.cpp - What runs for the last microbatch alone --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/ClosingInstructions.h"

#include "plan/KernelTable.h"

#include <algorithm>
#include <utility>

namespace dtc {

namespace {

/// Spreads from the sums of the loop to all that is made of them, once to each instruction.
class Spread {
public:
  Spread(const plan::Program &program, std::vector<std::vector<bool>> &byTask)
      : program(program), byTask(byTask), isInLoop(static_cast<size_t>(program.tasks_size())) {}

  void run() {
    for (uint32_t e = program.loop_begin(); e < program.loop_end(); ++e)
      isInLoop[program.schedule(static_cast<int>(e)).task()] = true;
    isWhole.resize(static_cast<size_t>(program.buffers_size()));
    forEachInLoop([&](size_t, const plan::Instruction &instruction, size_t) {
      if (readsOwnOutput(instruction.kernel().kernel()))
        addOutputs(instruction);
    });
    if (found.empty())
      return;
    findReaders();
    while (!found.empty()) {
      size_t value = found.back();
      found.pop_back();
      for (auto [task, at] : readers[value])
        addReader(task, at);
    }
    forEachInLoop([&](size_t task, const plan::Instruction &instruction, size_t at) {
      const std::vector<bool> &closing = byTask[task];
      if (instruction.has_wait() && instruction.wait().instruction() < at && !closing.empty() &&
          closing[instruction.wait().instruction()])
        byTask[task][at] = true;
    });
  }

private:
  size_t valueOf(uint32_t buffer) const {
    const plan::Buffer &at = program.buffers(static_cast<int>(buffer));
    return at.has_view_of() ? at.view_of() : buffer;
  }

  /// Calls use(task, instruction, its number in the task).
  template <typename Use> void forEachInLoop(const Use &use) const {
    for (size_t t = 0; t < isInLoop.size(); ++t) {
      const plan::Task &task = program.tasks(static_cast<int>(t));
      for (int i = 0; isInLoop[t] && i < task.instructions_size(); ++i)
        use(t, task.instructions(i), static_cast<size_t>(i));
    }
  }

  void findReaders() {
    readers.resize(isWhole.size());
    forEachInLoop([&](size_t task, const plan::Instruction &instruction, size_t at) {
      for (uint32_t input : instruction.kernel().inputs())
        readers[valueOf(input)].emplace_back(task, at);
      for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
        readers[valueOf(tensor.input())].emplace_back(task, at);
    });
  }

  void addReader(size_t task, size_t at) {
    const auto &instructions = program.tasks(static_cast<int>(task)).instructions();
    std::vector<bool> &closing = byTask[task];
    closing.resize(static_cast<size_t>(instructions.size()));
    if (closing[at])
      return;
    closing[at] = true;
    addOutputs(instructions[static_cast<int>(at)]);
  }

  void addOutputs(const plan::Instruction &instruction) {
    auto add = [&](uint32_t output) {
      if (isWhole[valueOf(output)])
        return;
      isWhole[valueOf(output)] = true;
      found.push_back(valueOf(output));
    };
    std::for_each(instruction.kernel().outputs().begin(), instruction.kernel().outputs().end(),
                  add);
    for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
      add(tensor.output());
  }

  const plan::Program &program;
  std::vector<std::vector<bool>> &byTask;
  std::vector<bool> isInLoop; // by task
  std::vector<bool> isWhole;  // by value: a sum, or made of sums
  std::vector<size_t> found;  // of these, those whose readers are not added yet
  std::vector<std::vector<std::pair<size_t, size_t>>> readers; // of the loop, by value
};

} // namespace

ClosingInstructions::ClosingInstructions(const plan::Program &program)
    : byTask(static_cast<size_t>(program.tasks_size())) {
  for (uint32_t e = program.loop_begin(); e < program.loop_end(); ++e)
    last = std::max(last, program.schedule(static_cast<int>(e)).microbatch());
  Spread(program, byTask).run();
  hasAny = std::any_of(byTask.begin(), byTask.end(),
                       [](const std::vector<bool> &task) { return !task.empty(); });
}

} // namespace dtc
