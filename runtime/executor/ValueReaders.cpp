//===- ValueReaders.cpp - Who reads the values of a program ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/ValueReaders.h"

#include "plan/PlanTypes.h"
#include "plan/PlanValidator.h"

#include <algorithm>

namespace dtc::runtime {

ValueReaders::ValueReaders(const plan::Program &program)
    : program(program), counts(static_cast<size_t>(program.buffers_size())) {
  auto add = [&](uint32_t buffer) { ++counts[storageOf(program, buffer)]; };
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

bool ValueReaders::isReadOnce(uint32_t buffer) const {
  return !program.buffers(static_cast<int>(buffer)).has_view_of() && counts[buffer] == 1;
}

bool ValueReaders::overlap(uint32_t a, uint32_t b) const {
  auto rangeOf = [&](uint32_t index) {
    const plan::Buffer &buffer = program.buffers(static_cast<int>(index));
    uint64_t bytes =
        (typeOf(buffer).numBytes() + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    return std::pair(buffer.offset(),
                     buffer.offset() + bytes * std::max<uint64_t>(buffer.slots(), 1));
  };
  auto [beginA, endA] = rangeOf(a);
  auto [beginB, endB] = rangeOf(b);
  return beginA < endB && beginB < endA;
}

} // namespace dtc::runtime
