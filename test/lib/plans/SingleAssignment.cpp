//===- SingleAssignment.cpp - One buffer for each value -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/plans/SingleAssignment.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace dtc::runtime::testing {

namespace {

class Renaming {
public:
  explicit Renaming(plan::Program &program) : program(program) {}

  void run() {
    for (const plan::State &state : program.states())
      written.insert(rootOf(state.buffer()));
    for (const plan::Input &input : program.inputs())
      written.insert(rootOf(input.buffer()));
    std::set<uint32_t> done;
    for (const plan::ScheduleEntry &entry : program.schedule())
      if (static_cast<int>(entry.task()) < program.tasks_size() && done.insert(entry.task()).second)
        runTask(*program.mutable_tasks(static_cast<int>(entry.task())));
    for (int task = 0; task < program.tasks_size(); ++task)
      if (!done.contains(static_cast<uint32_t>(task)))
        runTask(*program.mutable_tasks(task));
    for (plan::State &state : *program.mutable_states())
      if (uint32_t root = rootOf(state.buffer()); latest.contains(root))
        state.set_update(latest.at(root));
    for (plan::Output &output : *program.mutable_outputs())
      output.set_buffer(present(output.buffer()));
  }

private:
  bool exists(uint32_t buffer) const {
    return static_cast<int64_t>(buffer) < program.buffers_size();
  }
  uint32_t rootOf(uint32_t buffer) const {
    while (exists(buffer) && program.buffers(static_cast<int>(buffer)).has_view_of())
      buffer = program.buffers(static_cast<int>(buffer)).view_of();
    return buffer;
  }

  uint32_t add(plan::Buffer buffer) {
    *program.add_buffers() = std::move(buffer);
    return static_cast<uint32_t>(program.buffers_size() - 1);
  }

  /// The buffer that has, at this place, the value that was last written to `buffer`.
  uint32_t present(uint32_t buffer) {
    auto it = latest.find(rootOf(buffer));
    if (it == latest.end())
      return buffer;
    if (rootOf(buffer) == buffer)
      return it->second;
    auto [view, isNew] = views.try_emplace({it->second, buffer}, 0);
    if (isNew) {
      plan::Buffer added = program.buffers(static_cast<int>(buffer));
      added.set_view_of(it->second);
      view->second = add(std::move(added));
    }
    return view->second;
  }

  uint32_t write(uint32_t buffer) {
    uint32_t root = rootOf(buffer);
    if (!exists(root) || written.insert(root).second)
      return buffer;
    plan::Buffer added = program.buffers(static_cast<int>(root));
    added.set_reuses(root);
    latest[root] = add(std::move(added));
    return present(buffer);
  }

  void runTask(plan::Task &task) {
    for (plan::Instruction &instruction : *task.mutable_instructions()) {
      if (instruction.has_kernel()) {
        for (uint32_t &input : *instruction.mutable_kernel()->mutable_inputs())
          input = present(input);
        for (uint32_t &output : *instruction.mutable_kernel()->mutable_outputs())
          output = write(output);
      }
      if (instruction.has_collective()) {
        for (plan::CollectiveTensor &tensor : *instruction.mutable_collective()->mutable_tensors())
          tensor.set_input(present(tensor.input()));
        for (plan::CollectiveTensor &tensor : *instruction.mutable_collective()->mutable_tensors())
          tensor.set_output(write(tensor.output()));
      }
      if (instruction.has_start_transfer())
        start(instruction.start_transfer().transfer());
    }
  }

  void start(uint32_t number) {
    if (static_cast<int>(number) >= program.transfers_size() || !started.insert(number).second)
      return;
    plan::Transfer &transfer = *program.mutable_transfers(static_cast<int>(number));
    for (uint32_t &buffer : *transfer.mutable_buffers())
      buffer = transfer.kind() == plan::Transfer::SEND ? present(buffer) : write(buffer);
  }

  plan::Program &program;
  std::set<uint32_t> written, started;
  std::map<uint32_t, uint32_t> latest; // of each root that was written again
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> views;
};

} // namespace

void toSingleAssignment(plan::Program &program) { Renaming(program).run(); }

void markLoop(plan::Program &program) {
  if (program.loop_end() > 0)
    return;
  std::set<uint32_t> repeated;
  for (const plan::ScheduleEntry &entry : program.schedule())
    if (entry.microbatch() > 0)
      repeated.insert(entry.task());
  for (int i = 0; i < program.schedule_size(); ++i)
    if (repeated.contains(program.schedule(i).task())) {
      if (program.loop_end() == 0)
        program.set_loop_begin(static_cast<uint32_t>(i));
      program.set_loop_end(static_cast<uint32_t>(i) + 1);
    }
}

} // namespace dtc::runtime::testing
