//===- ValueReaders.cpp - Readers of the values of a program --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/ValueReaders.h"

namespace dtc {

ValueReaders::ValueReaders(const plan::Program &program)
    : program(program), counts(static_cast<size_t>(program.buffers_size())) {
  auto add = [&](uint32_t buffer) { ++counts[valueOf(buffer)]; };
  for (const plan::Task &task : program.tasks())
    for (const plan::Instruction &instruction : task.instructions()) {
      for (uint32_t buffer : instruction.kernel().inputs())
        add(buffer);
      for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
        add(tensor.input());
    }
  for (const plan::Transfer &transfer : program.transfers())
    for (uint32_t buffer : transfer.buffers())
      add(buffer);
  for (const plan::Output &output : program.outputs())
    add(output.buffer());
  for (const plan::State &state : program.states()) {
    add(state.buffer());
    if (state.has_update())
      add(state.update());
  }
}

uint32_t ValueReaders::valueOf(uint32_t buffer) const {
  const plan::Buffer &at = program.buffers(static_cast<int>(buffer));
  return at.has_view_of() ? at.view_of() : buffer;
}

} // namespace dtc
