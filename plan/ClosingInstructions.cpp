//===- ClosingInstructions.cpp - What runs for the last microbatch alone --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/ClosingInstructions.h"

#include "plan/KernelTable.h"

#include <algorithm>

namespace dtc {

namespace {

/// Spreads from the sums of the loop to all that is made of them.
class Spread {
public:
  Spread(const plan::Program &program, std::vector<std::vector<bool>> &byTask)
      : program(program), byTask(byTask), isWhole(static_cast<size_t>(program.buffers_size())),
        isInLoop(static_cast<size_t>(program.tasks_size())) {}

  void run() {
    for (uint32_t e = program.loop_begin(); e < program.loop_end(); ++e)
      isInLoop[program.schedule(static_cast<int>(e)).task()] = true;
    bool hasSums = false;
    for (size_t t = 0; t < isInLoop.size(); ++t)
      if (isInLoop[t])
        for (const plan::Instruction &instruction :
             program.tasks(static_cast<int>(t)).instructions())
          if (readsOwnOutput(instruction.kernel().kernel()))
            for (uint32_t output : instruction.kernel().outputs())
              hasSums = isWhole[valueOf(output)] = true;
    // What one task makes may be read in another one.
    for (bool grows = hasSums; grows;) {
      grows = false;
      for (size_t t = 0; t < isInLoop.size(); ++t)
        if (isInLoop[t])
          grows |= addTask(program.tasks(static_cast<int>(t)), byTask[t]);
    }
  }

private:
  size_t valueOf(uint32_t buffer) const {
    const plan::Buffer &at = program.buffers(static_cast<int>(buffer));
    return at.has_view_of() ? at.view_of() : buffer;
  }

  bool reads(const plan::Instruction &instruction) const {
    auto whole = [&](uint32_t buffer) { return isWhole[valueOf(buffer)]; };
    const auto &tensors = instruction.collective().tensors();
    return std::any_of(instruction.kernel().inputs().begin(), instruction.kernel().inputs().end(),
                       whole) ||
           std::any_of(tensors.begin(), tensors.end(),
                       [&](const plan::CollectiveTensor &tensor) { return whole(tensor.input()); });
  }

  /// Whether something was added.
  bool addTask(const plan::Task &task, std::vector<bool> &closing) {
    bool grows = false;
    for (int i = 0; i < task.instructions_size(); ++i) {
      const plan::Instruction &instruction = task.instructions(i);
      auto at = static_cast<size_t>(i);
      bool isClosing = instruction.has_wait()
                           ? instruction.wait().instruction() < at && !closing.empty() &&
                                 closing[instruction.wait().instruction()]
                           : reads(instruction);
      if (!isClosing || (!closing.empty() && closing[at]))
        continue;
      grows = true;
      closing.resize(static_cast<size_t>(task.instructions_size()));
      closing[at] = true;
      for (uint32_t output : instruction.kernel().outputs())
        isWhole[valueOf(output)] = true;
      for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
        isWhole[valueOf(tensor.output())] = true;
    }
    return grows;
  }

  const plan::Program &program;
  std::vector<std::vector<bool>> &byTask;
  std::vector<bool> isWhole;  // by value: a sum, or made of sums
  std::vector<bool> isInLoop; // by task
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
