//===- DeviceExecutor.cpp - One device's part of a step -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceExecutor.h"

#include "plan/PlanTypes.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <fmt/format.h>
#include <thread>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

DeviceExecutor::DeviceExecutor(std::shared_ptr<const PreparedPlan> plan, int64_t index,
                               const DeviceResources &resources, const DeviceOptions &options)
    : plan(std::move(plan)), program(this->plan->programOf(index)), deviceIndex(index),
      resources(resources), compute(&resources.compute()), batches(options.batches),
      delay(options.delay), copyTimeout(options.copyTimeout), onHang(options.onHang),
      stepTimes(program, options.profile, options.traceSteps, options.batches,
                options.measureWaits),
      instructions(*this->plan, index, resources, options, stepTimes),
      layout(program, resources.getDevice(), options.batches) {}

Expected<std::unique_ptr<DeviceExecutor>>
DeviceExecutor::create(std::shared_ptr<const PreparedPlan> plan, int64_t index,
                       const DeviceResources &resources, Fabric &fabric,
                       const DeviceOptions &options) {
  std::unique_ptr<DeviceExecutor> device(
      new DeviceExecutor(std::move(plan), index, resources, options));
  if (MaybeError error = device->instructions.open(fabric, options))
    return *error;
  if (MaybeError error = device->createSteps(options.stepsInFlight))
    return *error;
  if (MaybeError error = device->clearZero())
    return *error;
  return device;
}

MaybeError DeviceExecutor::createSteps(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    auto step = DeviceStep::create(layout, resources.getDevice());
    if (!step)
      return step.error();
    steps.push_back(std::move(*step));
  }
  instructions.begin(/*step=*/0, newest().marks);
  return std::nullopt;
}

MaybeError DeviceExecutor::clearZero() {
  auto memory = resources.getDevice().allocate(1);
  if (!memory)
    return memory.error();
  zero = std::move(*memory);
  if (zero->isZeroed())
    return std::nullopt;
  if (MaybeError error = compute->clear(zero->data(), 1))
    return error;
  return compute->finish();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::byte *DeviceExecutor::buffer(uint32_t index) const {
  const plan::Buffer &buffer = program.program->buffers(static_cast<int>(index));
  return (isOnHost(buffer) ? resources.hostArena() : resources.arena()).data() + buffer.offset();
}

bool DeviceExecutor::isInHostMemory(uint32_t index) const {
  return resources.getDevice().isHostMemory() ||
         isOnHost(program.program->buffers(static_cast<int>(index)));
}

std::byte *DeviceExecutor::inputPlace(size_t input, int64_t batch) const {
  std::byte *staging = newest().inputPlace(input, batch);
  return staging ? staging : buffer(program.program->inputs(static_cast<int>(input)).buffer());
}

MaybeError DeviceExecutor::enqueueInput(size_t input, int64_t batch) {
  const std::byte *staging = newest().inputPlace(input, batch);
  if (!staging)
    return std::nullopt;
  uint32_t index = program.program->inputs(static_cast<int>(input)).buffer();
  return compute->copy(buffer(index), staging,
                       typeOf(program.program->buffers(static_cast<int>(index))).numBytes());
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

MaybeError DeviceExecutor::runEntries(size_t begin, size_t end) {
  for (size_t entry = begin; entry < end; ++entry) {
    if (MaybeError error = instructions.runEntry(entry))
      return error;
    if (MaybeError error = newest().recordEntry(*compute))
      return error;
  }
  return std::nullopt;
}

MaybeError DeviceExecutor::enqueueSchedule(const std::function<MaybeError(int64_t)> &loadInputs) {
  size_t begin = 0, end = program.program->loop_end();
  for (int64_t batch = 0; batch < batches; ++batch) {
    instructions.beginBatch(batch);
    if (MaybeError error = loadInputs(batch))
      return error;
    if (MaybeError error = runEntries(begin, end))
      return error;
    begin = program.program->loop_begin();
  }
  if (MaybeError error = runEntries(end, program.schedule.size()))
    return error;
  if (MaybeError error =
          newest().recordEnd(*compute, resources.arena().data(), program, zero->data()))
    return error;
  return instructions.getTransfers().checkAllFinished();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void DeviceExecutor::beginStep() {
  assert(stepsInFlight() < steps.size() && "a step has to end before");
  ++begun;
  newest().begin();
  instructions.getProgress().begin();
}

MaybeError DeviceExecutor::enqueueStep(const std::function<MaybeError(int64_t)> &loadInputs) {
  if (delay > 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(delay));
  instructions.begin(begun, newest().marks);
  instructions.getTransfers().begin();
  if (MaybeError error = enqueueSchedule(loadInputs))
    return instructions.getTransfers().locate(*error);
  instructions.getProgress().finish();
  return resources.getDevice().isHostMemory() ? await(newest()) : std::nullopt;
}

MaybeError DeviceExecutor::await(DeviceStep &step) {
  if (step.isOver)
    return std::nullopt;
  if (MaybeError error = step.wait())
    return instructions.getTransfers().locate(*error);
  if (MaybeError error = stepTimes.collect(step.marks))
    return error;
  step.isOver = true;
  return std::nullopt;
}

void DeviceExecutor::endStep() {
  const DeviceStep &step = oldest();
  if (step.hasEnded()) {
    resultsOfLast.assign(step.results(), step.results() + layout.resultBytes);
    // A device that has failed since may not know it any more.
    Expected<Event::TimePoint> end = step.endTime();
    endOfLast = end ? *end : std::chrono::steady_clock::now();
  }
  ++ended;
}

const std::byte *DeviceExecutor::lastResult(uint32_t buffer) const {
  const StepLayout::Result *result = layout.findResult(buffer);
  return result && !resultsOfLast.empty() ? resultsOfLast.data() + result->offset : nullptr;
}

//===----------------------------------------------------------------------===//
// Progress
//===----------------------------------------------------------------------===//

uint64_t DeviceExecutor::advances() const {
  uint64_t count = instructions.getProgress().advances();
  for (uint64_t number = ended + 1; number <= begun; ++number)
    count += step(number).entriesDone();
  return count;
}

std::optional<DeviceExecutor::Position> DeviceExecutor::position() const {
  for (uint64_t number = ended + 1; number <= begun; ++number)
    if (size_t done = step(number).entriesDone(); done < step(number).entriesEnqueued()) {
      size_t entry = layout.entries[done];
      return Position{number, entry, std::nullopt, done,
                      instructions.reachedIn(entry, std::nullopt)};
    }
  if (std::optional<DeviceProgress::Position> host = instructions.getProgress().position()) {
    size_t before = begun > 0 ? newest().entriesEnqueued() : 0;
    bool repeats = layout.entries.size() - before > program.schedule.size() - host->entry;
    return Position{begun, host->entry, host->instruction, before,
                    instructions.reachedIn(host->entry, host->instruction, repeats)};
  }
  return std::nullopt;
}

std::unique_ptr<Deadline> DeviceExecutor::limitCopy(uint32_t buffer) const {
  if (copyTimeout <= 0 || !onHang || isInHostMemory(buffer))
    return nullptr;
  std::string name = "an output";
  for (const plan::State &state : program.program->states())
    if (state.buffer() == buffer)
      name = fmt::format("state \"{}\"", state.name());
  // Waits beyond the age of the universe are as good as none.
  const std::chrono::duration<double> time(std::min(copyTimeout, 1e9));
  return std::make_unique<Deadline>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time), [this, name] {
        onHang(Error{fmt::format(
            "device {}: a copy of {} between {} and the host has not ended for {} s; the GPU or "
            "its driver stands still, or a kernel before the copy does (--stall-timeout sets the "
            "limit)",
            deviceIndex, name, resources.getDevice().describe(), copyTimeout)});
      });
}

} // namespace dtc::runtime
