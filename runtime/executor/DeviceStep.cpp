//===- DeviceStep.cpp - A step of a device that may be in flight ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceStep.h"

#include "plan/PlanTypes.h"

#include <algorithm>

namespace dtc::runtime {

static size_t roundUp(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

static size_t bytesOf(const PreparedProgram &program, uint32_t buffer) {
  return typeOf(program.program->buffers(static_cast<int>(buffer))).numBytes();
}

StepLayout::StepLayout(const PreparedProgram &program, const Device &device, int64_t batches)
    : batches(batches) {
  auto loopBegin = static_cast<size_t>(program.program->loop_begin());
  auto loopEnd = static_cast<size_t>(program.program->loop_end());
  auto append = [&](size_t begin, size_t end) {
    for (size_t entry = begin; entry < end; ++entry)
      entries.push_back(entry);
  };
  append(0, loopEnd);
  for (int64_t batch = 1; batch < batches; ++batch)
    append(loopBegin, loopEnd);
  append(loopEnd, program.schedule.size());

  if (!device.isHostMemory()) {
    size_t offset = 0;
    for (const plan::Input &input : program.program->inputs()) {
      inputOffsets.push_back(offset);
      offset += roundUp(bytesOf(program, input.buffer()), device.alignment());
    }
    inputOffsets.push_back(offset);
  }

  auto add = [&](uint32_t buffer) {
    results.push_back({buffer, bytesOf(program, buffer), resultBytes});
    resultBytes += roundUp(results.back().bytes, sizeof(uint64_t));
  };
  for (const plan::Output &output : program.program->outputs())
    if (output.shape_size() == 0 || output.metric())
      add(output.buffer());
  for (const plan::State &state : program.program->states())
    if (isStepState(state.kind()) && state.shape_size() == 0)
      add(state.buffer());
}

const StepLayout::Result *StepLayout::findResult(uint32_t buffer) const {
  auto found = std::find_if(results.begin(), results.end(),
                            [&](const Result &result) { return result.buffer == buffer; });
  return found == results.end() ? nullptr : &*found;
}

Expected<std::unique_ptr<DeviceStep>> DeviceStep::create(const StepLayout &layout, Device &device) {
  std::unique_ptr<DeviceStep> step(new DeviceStep(layout, device));
  for (size_t i = 0; i <= layout.entries.size(); ++i) {
    bool isEnd = i == layout.entries.size();
    Expected<std::unique_ptr<Event>> event = device.createEvent(/*timed=*/isEnd);
    if (!event)
      return event.error();
    if (isEnd)
      step->end = std::move(*event);
    else
      step->entryEnds.push_back(std::move(*event));
  }
  auto results = device.allocateStaging(kResultsBegin + layout.resultBytes);
  if (!results)
    return results.error();
  step->resultMemory = std::move(*results);
  if (layout.inputOffsets.empty())
    return step;
  auto inputs =
      device.allocateStaging(layout.inputOffsets.back() * static_cast<size_t>(layout.batches));
  if (!inputs)
    return inputs.error();
  step->inputMemory = std::move(*inputs);
  return step;
}

void DeviceStep::begin() {
  enqueued.store(0, std::memory_order_relaxed);
  isOver = false;
  marks.begin();
  *resultMemory->data() = std::byte{1};
}

std::byte *DeviceStep::inputPlace(size_t input, int64_t batch) const {
  if (!inputMemory)
    return nullptr;
  return inputMemory->data() + static_cast<size_t>(batch) * layout.inputOffsets.back() +
         layout.inputOffsets[input];
}

MaybeError DeviceStep::recordEntry(Queue &queue) {
  size_t number = enqueued.load(std::memory_order_relaxed);
  if (MaybeError error = queue.record(*entryEnds[number]))
    return error;
  enqueued.store(number + 1, std::memory_order_release);
  return std::nullopt;
}

MaybeError DeviceStep::recordEnd(Queue &queue, const std::byte *arena,
                                 const PreparedProgram &program, const std::byte *zero) {
  std::byte *to = resultMemory->data() + kResultsBegin;
  for (const StepLayout::Result &result : layout.results) {
    const std::byte *from =
        arena + program.program->buffers(static_cast<int>(result.buffer)).offset();
    if (MaybeError error = queue.copy(to + result.offset, from, result.bytes))
      return error;
  }
  if (MaybeError error = queue.copy(resultMemory->data(), zero, 1))
    return error;
  return queue.record(*end);
}

bool DeviceStep::hasEnded() const { return *resultMemory->data() == std::byte{0}; }

size_t DeviceStep::entriesDone() const {
  auto end = entryEnds.begin() + static_cast<std::ptrdiff_t>(entriesEnqueued());
  auto isDone = [](const std::unique_ptr<Event> &event) {
    Expected<bool> done = event->isDone();
    return done && *done;
  };
  return static_cast<size_t>(std::partition_point(entryEnds.begin(), end, isDone) -
                             entryEnds.begin());
}

} // namespace dtc::runtime
