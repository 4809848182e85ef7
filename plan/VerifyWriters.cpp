//===- VerifyWriters.cpp - Verification of writers ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// An operand names a buffer, and a buffer is one value because one instruction makes it. Otherwise
// the meaning of an operand would depend on the last write, and no walk could tell whether that one
// was meant.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanChecks.h"
#include "plan/PlanTypes.h"

#include <fmt/format.h>

namespace dtc {

namespace {

class Writers {
public:
  explicit Writers(const PlanContext &context)
      : context(context), writers(context.types.size(), Writer{Writer::Nobody, 0, 0}) {}

  MaybeError run() {
    const plan::Program &program = context.program;
    for (int i = 0; i < program.states_size(); ++i)
      if (MaybeError error = add(program.states(i).buffer(), {Writer::State, i, 0}))
        return error;
    for (int i = 0; i < program.inputs_size(); ++i)
      if (MaybeError error = add(program.inputs(i).buffer(), {Writer::Input, i, 0}))
        return error;
    for (int i = 0; i < program.transfers_size(); ++i)
      if (kindOf(program.transfers(i)) == TransferKind::Receive)
        for (uint32_t buffer : program.transfers(i).buffers())
          if (MaybeError error = add(buffer, {Writer::Receive, i, 0}))
            return error;
    for (int task = 0; task < program.tasks_size(); ++task)
      for (int i = 0; i < program.tasks(task).instructions_size(); ++i)
        if (MaybeError error = addInstruction(task, i))
          return error;
    for (const plan::State &state : program.states())
      if (state.has_update() && context.roots[state.update()] == context.roots[state.buffer()])
        return Error{fmt::format("state \"{}\" has buffer {} before and after the step; expected "
                                 "that its update is another value, or none",
                                 state.name(), state.buffer())};
    return std::nullopt;
  }

private:
  struct Writer {
    enum Kind { Nobody, State, Input, Receive, Instruction } kind;
    int index; // of a task where it is an instruction
    int instruction;
  };

  MaybeError addInstruction(int task, int index) {
    const plan::Instruction &instruction = context.program.tasks(task).instructions(index);
    Writer writer{Writer::Instruction, task, index};
    for (uint32_t output : instruction.kernel().outputs())
      if (MaybeError error = add(output, writer))
        return error;
    for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
      if (MaybeError error = add(tensor.output(), writer))
        return error;
    return std::nullopt;
  }

  MaybeError add(uint32_t buffer, const Writer &writer) {
    Writer &known = writers[context.roots[buffer]];
    if (known.kind != Writer::Nobody)
      return Error{fmt::format("{} writes buffer {}, which {} writes; expected one writer for each "
                               "value, and another buffer for what takes its place",
                               describe(writer), buffer, describe(known))};
    known = writer;
    return std::nullopt;
  }

  std::string describe(const Writer &writer) const {
    const plan::Program &program = context.program;
    switch (writer.kind) {
    case Writer::State:
      return fmt::format("state \"{}\"", program.states(writer.index).name());
    case Writer::Input:
      return fmt::format("input \"{}\"", program.inputs(writer.index).name());
    case Writer::Receive:
      return fmt::format("transfer {}", writer.index);
    default:
      return describeInstruction(context.plan, program.tasks(writer.index), writer.instruction);
    }
  }

  const PlanContext &context;
  std::vector<Writer> writers; // by value
};

} // namespace

MaybeError checkWriters(const PlanContext &context) { return Writers(context).run(); }

} // namespace dtc
