//===- ValueLives.cpp - When the values of a step are needed --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/ValueLives.h"

#include "plan/ClosingInstructions.h"
#include "plan/KernelTable.h"
#include "plan/PlanTypes.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace dtc {

namespace {

/// Finds the live ranges of all values. Program points number the executed instructions.
class Lives {
public:
  explicit Lives(const plan::Program &program) : program(program) {
    for (uint32_t index = 0; index < static_cast<uint32_t>(program.buffers_size()); ++index) {
      // A buffer comes before the buffers that lie in it.
      roots.push_back(storageOf(program, index));
      firstValue.push_back(values.size());
      if (roots.back() == index)
        values.resize(values.size() + valuesOf(index));
    }
  }

  std::vector<ValueLife> run() {
    findLoop();
    const ClosingInstructions closing(program);
    for (const plan::Input &input : program.inputs())
      beginBeforeStep(input.buffer());
    for (const plan::State &state : program.states()) {
      beginBeforeStep(state.buffer());
      valueOf(state.buffer()).isState = true;
    }
    for (const plan::ScheduleEntry &entry : program.schedule()) {
      microbatch = entry.microbatch();
      const plan::Task &task = program.tasks(static_cast<int>(entry.task()));
      for (int i = 0; i < task.instructions_size(); ++i, ++now) {
        current = &task.instructions(i);
        if (closing.runsIn(entry, i))
          follow(task, *current);
      }
    }
    // States and outputs are there at the end.
    microbatch = 0;
    for (Value &value : values)
      if (value.isState)
        value.last = now;
    for (const plan::Output &output : program.outputs())
      use(output.buffer(), now);
    for (uint32_t b = 0; b < roots.size(); ++b)
      for (uint32_t value = 0; roots[b] == b && value < valuesOf(b); ++value)
        end(b, values[firstValue[b] + value]);
    return std::move(lives);
  }

private:
  static constexpr int64_t beforeStep = -1, none = -2;
  struct Value {
    int64_t begin = none, last = 0;
    uint32_t buffer = 0;                      // that it was written to
    const plan::Instruction *maker = nullptr; // none: it is there before the step
    bool isState = false; // nothing else may lie there, even while the value is not needed
  };

  /// The loop may run again and then needs values from before it.
  uint32_t valuesOf(uint32_t index) const {
    const plan::Buffer &buffer = program.buffers(static_cast<int>(index));
    if (buffer.has_slot_map())
      return static_cast<uint32_t>(
          program.slot_maps(static_cast<int>(buffer.slot_map())).slots_size());
    return std::max(buffer.slots(), 1u);
  }
  Value &valueOf(uint32_t buffer) {
    uint32_t root = roots[buffer];
    return values[firstValue[root] + microbatch % valuesOf(root)];
  }

  void findLoop() {
    int64_t point = 0;
    for (int e = 0; e < program.schedule_size(); ++e) {
      if (static_cast<uint32_t>(e) == program.loop_begin())
        loopBegin = point;
      point += program.tasks(static_cast<int>(program.schedule(e).task())).instructions_size();
      if (static_cast<uint32_t>(e) + 1 == program.loop_end())
        loopEnd = point - 1;
    }
  }

  void beginBeforeStep(uint32_t buffer) { valueOf(buffer) = {beforeStep, 0, buffer}; }

  void follow(const plan::Task &task, const plan::Instruction &instruction) {
    if (instruction.has_kernel()) {
      const plan::KernelCall &call = instruction.kernel();
      for (uint32_t input : call.inputs())
        use(input, now);
      for (uint32_t output : call.outputs())
        if (microbatch > 0 && readsOwnOutput(call.kernel()))
          use(output, now);
        else
          write(output, call.inputs());
    } else if (instruction.has_collective()) {
      for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
        use(tensor.input(), now);
      for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
        if (roots[tensor.input()] != roots[tensor.output()])
          write(tensor.output(), {});
    } else if (instruction.has_wait()) {
      const plan::Instruction &started =
          task.instructions(static_cast<int>(instruction.wait().instruction()));
      for (const plan::CollectiveTensor &tensor : started.collective().tensors()) {
        use(tensor.input(), now);
        use(tensor.output(), now);
      }
      for (uint32_t input : started.kernel().inputs())
        use(input, now);
      for (uint32_t output : started.kernel().outputs())
        use(output, now);
    } else if (instruction.has_start_transfer()) {
      const plan::Transfer &transfer =
          program.transfers(static_cast<int>(instruction.start_transfer().transfer()));
      for (uint32_t buffer : transfer.buffers())
        if (kindOf(transfer) == TransferKind::Send)
          use(buffer, now);
        else
          write(buffer, {});
    } else if (instruction.has_finish_transfer()) {
      const plan::Transfer &transfer =
          program.transfers(static_cast<int>(instruction.finish_transfer().transfer()));
      for (uint32_t buffer : transfer.buffers())
        use(buffer, now);
    }
  }

  void use(uint32_t buffer, int64_t point) {
    Value &value = valueOf(buffer);
    if (value.begin == none)
      value = {point, point, buffer, current};
    // The loop may run again and then needs what came from before it.
    bool isKept = value.begin < loopBegin && loopBegin <= point && point <= loopEnd;
    value.last = std::max(value.last, isKept ? loopEnd : point);
  }

  /// A new value takes the place of the last one, whose bytes are in use without a break where the
  /// instruction reads it.
  template <typename Inputs> void write(uint32_t buffer, const Inputs &inputs) {
    for (uint32_t input : inputs)
      if (roots[input] == roots[buffer])
        return;
    write(buffer);
  }
  void write(uint32_t buffer, std::initializer_list<uint32_t>) { write(buffer); }
  void write(uint32_t buffer) {
    Value &value = valueOf(buffer);
    if (value.isState)
      return;
    end(roots[buffer], value);
    value = {now, now, buffer, current};
  }

  void end(uint32_t root, Value &value) {
    if (value.begin == none)
      return;
    if (isOnHost(program.buffers(static_cast<int>(root)))) {
      value.begin = none; // the lives are of the device's memory
      return;
    }
    constexpr uint64_t alignment = 64; // as plan.proto says
    uint64_t size = typeOf(program.buffers(static_cast<int>(root))).numBytes();
    auto bytes = static_cast<int64_t>((size + alignment - 1) / alignment * alignment);
    lives.push_back(
        {value.buffer, root, bytes, std::max(value.begin, int64_t{0}), value.last, value.maker});
    value.begin = none;
  }

  const plan::Program &program;
  std::vector<uint32_t> roots;    // by buffer: see storageOf()
  std::vector<size_t> firstValue; // by buffer that is a root: the index of its first copy
  std::vector<Value> values;      // by copy
  std::vector<ValueLife> lives;
  const plan::Instruction *current = nullptr; // that is executed
  uint32_t microbatch = 0;
  int64_t now = 0, loopBegin = 0, loopEnd = beforeStep;
};

} // namespace

std::vector<ValueLife> findValueLives(const plan::Program &program) { return Lives(program).run(); }

} // namespace dtc
