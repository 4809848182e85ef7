//===- DeviceTrace.cpp - What a device did when ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceTrace.h"

#include <algorithm>

namespace dtc::runtime {

DeviceTrace::DeviceTrace(const PreparedProgram &program, size_t steps) : ring(steps) {
  // For each task: its own span, every kernel, and every wait.
  std::array<size_t, 3> sizes = {};
  for (const PreparedProgram::Entry &entry : program.schedule) {
    size_t begin = program.taskBegin[entry.task], end = program.taskBegin[entry.task + 1];
    sizes[static_cast<size_t>(TraceRow::Compute)] += 1 + end - begin;
    for (size_t i = begin; i < end; ++i) {
      const PreparedInstruction &instruction = program.instructions[i];
      if (std::holds_alternative<PreparedCollective>(instruction))
        ++sizes[static_cast<size_t>(TraceRow::Collectives)];
      if (std::holds_alternative<PreparedFinishTransfer>(instruction))
        ++sizes[static_cast<size_t>(TraceRow::Transfers)];
    }
  }
  for (Step &step : ring)
    for (size_t row = 0; row < step.size(); ++row)
      step[row].reserve(sizes[row]);
}

void DeviceTrace::beginStep() {
  current = &ring[begun++ % ring.size()];
  for (std::vector<TraceEvent> &row : *current)
    row.clear();
}

std::vector<const DeviceTrace::Step *> DeviceTrace::steps() const {
  std::vector<const Step *> result;
  for (size_t step = begun - std::min(begun, ring.size()); step < begun; ++step)
    result.push_back(&ring[step % ring.size()]);
  return result;
}

} // namespace dtc::runtime
