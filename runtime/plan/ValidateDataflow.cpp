//===- ValidateDataflow.cpp - Nothing is read before it is written --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/InPlaceRules.h"
#include "runtime/plan/PlanChecks.h"
#include "runtime/plan/PlanTypes.h"

#include <fmt/format.h>
#include <map>

namespace dtc::runtime {

namespace {

/// A set of bytes as disjoint ranges that do not touch.
class ByteSet {
public:
  void insert(ByteRange range) {
    if (range.empty())
      return;
    // The first range that ends at or after the new one's begin.
    auto it = ends.upper_bound(range.begin);
    if (it != ends.begin() && std::prev(it)->second >= range.begin)
      --it;
    while (it != ends.end() && it->first <= range.end) {
      range.begin = std::min(range.begin, it->first);
      range.end = std::max(range.end, it->second);
      it = ends.erase(it);
    }
    ends[range.begin] = range.end;
  }

  bool contains(const ByteRange &range) const {
    if (range.empty())
      return true;
    auto it = ends.upper_bound(range.begin);
    return it != ends.begin() && std::prev(it)->second >= range.end;
  }

private:
  std::map<uint64_t, uint64_t> ends; // begin -> end
};

/// Follows the schedule with the set of bytes that hold a value. Bytes and not buffers, because one
/// buffer may be a view of another.
class DataflowWalk {
public:
  explicit DataflowWalk(const PlanContext &context) : context(context) {}

  MaybeError run() {
    const plan::Program &program = context.program;
    for (const plan::State &state : program.states())
      write(state.buffer());
    for (const plan::Input &input : program.inputs())
      write(input.buffer());
    // The set only grows, so a task that passed once passes whenever it runs again. Without that,
    // a short file could ask for a walk of quadratic length.
    std::vector<bool> passed(static_cast<size_t>(program.tasks_size()), false);
    for (const plan::ScheduleEntry &entry : program.schedule()) {
      if (passed[entry.task()])
        continue;
      passed[entry.task()] = true;
      if (MaybeError error = runTask(program.tasks(static_cast<int>(entry.task())), entry))
        return error;
    }
    for (const plan::Output &output : program.outputs())
      if (!holds(output.buffer()))
        return Error{fmt::format("output \"{}\" (buffer {}) is never written", output.name(),
                                 output.buffer())};
    return std::nullopt;
  }

private:
  MaybeError runTask(const plan::Task &task, const plan::ScheduleEntry &entry) {
    for (int i = 0; i < task.instructions_size(); ++i)
      if (MaybeError error = runInstruction(task, i, entry.microbatch()))
        return error->inContext(describeInstruction(context.plan, task, i));
    return std::nullopt;
  }

  MaybeError runInstruction(const plan::Task &task, int index, uint32_t microbatch) {
    const plan::Instruction &instruction = task.instructions(index);
    if (instruction.has_wait()) {
      auto started = static_cast<int>(instruction.wait().instruction());
      writeOutputs(task.instructions(started).collective());
      return std::nullopt;
    }
    if (instruction.has_collective()) {
      for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
        if (MaybeError error = read("the input", tensor.input()))
          return error;
      // The outputs of an async collective have their values from the wait on.
      if (!instruction.collective().async())
        writeOutputs(instruction.collective());
      return std::nullopt;
    }
    const plan::KernelCall &call = instruction.kernel();
    for (int i = 0; i < call.inputs_size(); ++i)
      if (MaybeError error = read(fmt::format("input {}", i), call.inputs(i)))
        return error;
    if (microbatch > 0 && readsOwnOutput(call.kernel()))
      for (uint32_t output : call.outputs())
        if (MaybeError error = read("the output that it adds to", output))
          return error;
    for (uint32_t output : call.outputs())
      write(output);
    return std::nullopt;
  }

  void writeOutputs(const plan::Collective &collective) {
    for (const plan::CollectiveTensor &tensor : collective.tensors())
      write(tensor.output());
  }

  MaybeError read(const std::string &what, uint32_t buffer) const {
    if (holds(buffer))
      return std::nullopt;
    return Error{fmt::format("{} (buffer {}, {}) is read before it is written", what, buffer,
                             context.types[buffer].str())};
  }
  bool holds(uint32_t buffer) const { return written.contains(context.ranges[buffer]); }
  void write(uint32_t buffer) { written.insert(context.ranges[buffer]); }

  const PlanContext &context;
  ByteSet written;
};

} // namespace

MaybeError checkDataflow(const PlanContext &context) { return DataflowWalk(context).run(); }

} // namespace dtc::runtime
