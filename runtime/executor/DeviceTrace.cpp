//===- DeviceTrace.cpp - Recorded times of a device -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceTrace.h"

#include <algorithm>
#include <limits>

namespace dtc::runtime {

using RowSizes = std::array<uint64_t, kNumTraceRows>;

static uint64_t &sizeOf(RowSizes &sizes, TraceRow row) { return sizes[static_cast<size_t>(row)]; }

/// The most events of a step, by row. For each task: its own span, every kernel, and every wait.
static RowSizes eventsOfStep(const PreparedProgram &program) {
  std::vector<RowSizes> ofTasks(program.taskBegin.size() - 1);
  for (size_t task = 0; task < ofTasks.size(); ++task) {
    size_t begin = program.taskBegin[task], end = program.taskBegin[task + 1];
    sizeOf(ofTasks[task], TraceRow::Compute) = 1 + end - begin;
    for (size_t i = begin; i < end; ++i) {
      const PreparedInstruction &instruction = program.instructions[i];
      if (std::holds_alternative<PreparedCollective>(instruction))
        ++sizeOf(ofTasks[task], TraceRow::Collectives);
      if (const auto *call = std::get_if<PreparedHostCall>(&instruction))
        ++sizeOf(ofTasks[task], rowOf(call->lane));
      if (std::holds_alternative<PreparedFinishTransfer>(instruction))
        ++sizeOf(ofTasks[task], TraceRow::Transfers);
    }
  }
  // A file has fewer than 2^31 entries, and as many instructions: no sum overflows.
  RowSizes sizes = {};
  for (const PreparedProgram::ScheduleEntry &entry : program.schedule)
    for (size_t row = 0; row < sizes.size(); ++row)
      sizes[row] += ofTasks[entry.task][row];
  return sizes;
}

uint64_t DeviceTrace::bytesFor(const PreparedProgram &program, size_t steps, int64_t batches) {
  uint64_t events = 0, bytes = 0;
  for (uint64_t size : eventsOfStep(program))
    events += size;
  if (__builtin_mul_overflow(events, sizeof(TraceEvent), &bytes) ||
      __builtin_mul_overflow(bytes, steps, &bytes) ||
      __builtin_mul_overflow(bytes, batches, &bytes))
    return std::numeric_limits<uint64_t>::max();
  return bytes;
}

DeviceTrace::DeviceTrace(const PreparedProgram &program, size_t steps, int64_t batches)
    : ring(steps) {
  RowSizes sizes = eventsOfStep(program);
  for (Step &step : ring)
    for (size_t row = 0; row < step.size(); ++row)
      step[row].reserve(sizes[row] * static_cast<size_t>(batches));
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
