//===- DeviceExecutor.cpp - One device's part of a step -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceExecutor.h"

#include "plan/PlanTypes.h"

#include <algorithm>
#include <cstring>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

DeviceExecutor::DeviceExecutor(std::shared_ptr<const PreparedPlan> plan, int64_t index,
                               const DeviceResources &resources, const DeviceOptions &options)
    : plan(std::move(plan)), program(this->plan->programOf(index)), deviceIndex(index),
      resources(resources), compute(resources.compute()), arena(resources.arena().data()),
      batches(options.batches), injections(options.injections),
      stepTimes(resources.getDevice(), program, options.profile, options.traceSteps,
                options.batches) {
  const Mesh &mesh = this->plan->mesh;
  std::vector<int64_t> coordinates = mesh.coordinates(index);
  for (size_t i = 0; i < mesh.axes().size(); ++i) {
    const MeshAxis &axis = mesh.axes()[i];
    axes.push_back({axis.name, axis.size, coordinates[i], axis.temporal});
  }
  for (AxisPosition &axis : axes)
    if (axis.temporal)
      temporal = &axis;
  for (const PreparedProgram::Operands &tensor : program.operands)
    operands.push_back({arena + tensor.input.offset, arena + tensor.output.offset});
}

Expected<std::unique_ptr<DeviceExecutor>>
DeviceExecutor::create(std::shared_ptr<const PreparedPlan> plan, int64_t index,
                       const DeviceResources &resources, Fabric &fabric,
                       const DeviceOptions &options) {
  std::unique_ptr<DeviceExecutor> device(
      new DeviceExecutor(std::move(plan), index, resources, options));
  if (MaybeError error = device->openNetwork(fabric))
    return *error;
  if (MaybeError error = device->createEvents())
    return *error;
  if (MaybeError error = device->stageHostBytes())
    return *error;
  return device;
}

MaybeError DeviceExecutor::openNetwork(Fabric &fabric) {
  auto opened = fabric.openCommunicator(deviceIndex, /*lane=*/0, resources.getDevice());
  if (!opened)
    return opened.error();
  communicator = std::move(*opened);
  for (const std::vector<std::string> &names : plan->groups) {
    Expected<Communicator::Group> group = communicator->openGroup(names);
    if (!group)
      return group.error();
    groups.push_back(*group);
  }
  auto network = fabric.openTransfers(deviceIndex, resources.getDevice());
  if (!network)
    return network.error();
  if (std::any_of(program.transfers.begin(), program.transfers.end(),
                  [](const PreparedTransfer &transfer) { return !transfer.sends; }))
    (*network)->prepareToReceive();
  transfers = std::make_unique<DeviceTransfers>(*plan, deviceIndex, arena, std::move(*network));
  return std::nullopt;
}

MaybeError DeviceExecutor::createEvents() {
  auto loopBegin = static_cast<size_t>(program.program->loop_begin());
  auto loopEnd = static_cast<size_t>(program.program->loop_end());
  auto append = [&](size_t begin, size_t end) {
    for (size_t entry = begin; entry < end; ++entry)
      entryOrder.push_back(entry);
  };
  append(0, loopEnd);
  for (int64_t batch = 1; batch < batches; ++batch)
    append(loopBegin, loopEnd);
  append(loopEnd, program.schedule.size());
  auto create = [&]() { return resources.getDevice().createEvent(/*timed=*/false); };
  for (auto [events, count] :
       {std::pair(&entryEnds, entryOrder.size()), std::pair(&asyncDone, program.maxAsync)})
    for (size_t i = 0; i < count; ++i) {
      Expected<std::unique_ptr<Event>> event = create();
      if (!event)
        return event.error();
      events->push_back(std::move(*event));
    }
  Expected<std::unique_ptr<Event>> event = create();
  if (!event)
    return event.error();
  computeDone = std::move(*event);
  return std::nullopt;
}

/// Makes room for what the host gives the device in a step, where the device can read it while the
/// host goes on.
MaybeError DeviceExecutor::stageHostBytes() {
  Device &device = resources.getDevice();
  if (!injections.empty()) {
    auto staging = device.allocateStaging(injections.size() * sizeof(PreparedInjection::bytes));
    if (!staging)
      return staging.error();
    injected = std::move(*staging);
    for (size_t i = 0; i < injections.size(); ++i)
      std::memcpy(injected->data() + i * injections[i].bytes.size(), injections[i].bytes.data(),
                  injections[i].bytes.size());
  }
  if (device.isHostMemory())
    return std::nullopt;
  size_t offset = 0;
  for (const plan::Input &input : program.program->inputs()) {
    inputOffsets.push_back(offset);
    size_t bytes = typeOf(program.program->buffers(static_cast<int>(input.buffer()))).numBytes();
    offset += (bytes + device.alignment() - 1) / device.alignment() * device.alignment();
  }
  inputOffsets.push_back(offset);
  auto staging = device.allocateStaging(offset * static_cast<size_t>(batches));
  if (!staging)
    return staging.error();
  inputMemory = std::move(*staging);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::byte *DeviceExecutor::buffer(uint32_t index) const {
  return arena + program.program->buffers(static_cast<int>(index)).offset();
}

std::byte *DeviceExecutor::inputPlace(size_t input, int64_t batch) const {
  if (!inputMemory)
    return buffer(program.program->inputs(static_cast<int>(input)).buffer());
  return inputMemory->data() + static_cast<size_t>(batch) * inputOffsets.back() +
         inputOffsets[input];
}

MaybeError DeviceExecutor::enqueueInput(size_t input, int64_t batch) {
  if (!inputMemory)
    return std::nullopt;
  uint32_t index = program.program->inputs(static_cast<int>(input)).buffer();
  return compute.copy(buffer(index), inputPlace(input, batch),
                      typeOf(program.program->buffers(static_cast<int>(index))).numBytes());
}

CommunicatorBytes DeviceExecutor::sent() const {
  CommunicatorBytes bytes = communicator->sent();
  bytes.transfers += transfers->getNetwork().sentBytes();
  return bytes;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// Enqueues `work` on the queue, and if wanted takes the time from before it to after it.
template <typename Work>
MaybeError DeviceExecutor::measure(bool wanted, Queue &queue, StepTimes::What what, size_t index,
                                   const Work &work, const TransferResult *result) {
  if (!wanted)
    return work();
  Expected<StepTimes::Mark> begin = stepTimes.mark(queue);
  if (!begin)
    return begin.error();
  if (MaybeError error = work())
    return error;
  Expected<StepTimes::Mark> end = stepTimes.mark(queue);
  if (!end)
    return end.error();
  stepTimes.add(what, static_cast<uint32_t>(currentEntry), index, *begin, *end, result);
  return std::nullopt;
}

MaybeError DeviceExecutor::runKernel(size_t index, const PreparedKernel &call) {
  inputs.clear();
  outputs.clear();
  for (const ArenaRange &range : call.inputs)
    inputs.push_back(arena + range.offsetFor(microbatch));
  for (const ArenaRange &range : call.outputs)
    outputs.push_back(arena + range.offsetFor(microbatch));
  if (MaybeError error =
          measure(stepTimes.measures(), compute, StepTimes::What::Kernel, index, [&] {
            return compute.enqueue(*call.kernel, {inputs, outputs, axes, resources.workspace()});
          }))
    return error;
  return injections.empty() ? std::nullopt : injectAfter(index);
}

MaybeError DeviceExecutor::injectAfter(size_t index) {
  for (size_t i = 0; i < injections.size(); ++i) {
    const PreparedInjection &each = injections[i];
    if (each.instruction == index && each.step == currentStep && each.microbatch == microbatch)
      if (MaybeError error =
              compute.copy(arena + each.range.offsetFor(microbatch) + each.byteOffset,
                           injected->data() + i * each.bytes.size(), each.width))
        return error;
  }
  return std::nullopt;
}

/// Of a collective whose operands differ between microbatches.
void DeviceExecutor::placeOperands(const PreparedCollective &collective) {
  for (size_t i = 0; i < collective.specs.size(); ++i) {
    size_t operand = collective.firstOperand + i;
    const PreparedProgram::Operands &ranges = program.operands[operand];
    operands[operand] = {arena + ranges.input.offsetFor(microbatch),
                         arena + ranges.output.offsetFor(microbatch)};
  }
}

MaybeError DeviceExecutor::enqueueCollective(Queue &queue, size_t index) {
  const auto &collective = std::get<PreparedCollective>(program.instructions[index]);
  return measure(stepTimes.measures(), queue, StepTimes::What::Collective, index, [&] {
    return communicator->enqueue(
        queue, groups[collective.group], collective.specs,
        std::span(operands).subspan(collective.firstOperand, collective.specs.size()));
  });
}

/// On the compute queue, after all collectives that the lane holds: those of a device keep their
/// order.
MaybeError DeviceExecutor::runCollective(size_t index, const PreparedCollective &collective) {
  return measure(stepTimes.measures(), compute, StepTimes::What::CollectiveWait, index,
                 [&]() -> MaybeError {
                   if (lastOnLane)
                     if (MaybeError error = compute.wait(*lastOnLane))
                       return error;
                   return enqueueCollective(compute, index);
                 });
}

MaybeError DeviceExecutor::startCollective(size_t index, const PreparedCollective &collective) {
  if (collective.hasSlots)
    placeOperands(collective);
  if (!collective.asyncIndex)
    return runCollective(index, collective);
  Queue &lane = *resources.lane();
  Event &done = *asyncDone[*collective.asyncIndex];
  if (MaybeError error = compute.record(*computeDone))
    return error;
  if (MaybeError error = lane.wait(*computeDone))
    return error;
  if (MaybeError error = enqueueCollective(lane, index))
    return error;
  lastOnLane = &done;
  return lane.record(done);
}

MaybeError DeviceExecutor::finishTransfer(size_t index, size_t transfer) {
  TransferResult &result = stepTimes.newResult();
  MaybeError error = measure(
      stepTimes.measures() || inPipeline, compute, StepTimes::What::TransferWait, index,
      [&] { return transfers->finish(compute, transfer, microbatch, result); }, &result);
  return error;
}

MaybeError DeviceExecutor::runInstruction(size_t index) {
  const PreparedInstruction &instruction = program.instructions[index];
  if (const auto *kernel = std::get_if<PreparedKernel>(&instruction))
    return runKernel(index, *kernel);
  if (const auto *collective = std::get_if<PreparedCollective>(&instruction))
    return startCollective(index, *collective);
  if (const auto *start = std::get_if<PreparedStartTransfer>(&instruction))
    return transfers->start(compute, start->transfer, microbatch);
  if (const auto *finish = std::get_if<PreparedFinishTransfer>(&instruction))
    return finishTransfer(index, finish->transfer);
  size_t collective = std::get<PreparedWait>(instruction).collective;
  size_t async = *std::get<PreparedCollective>(program.instructions[collective]).asyncIndex;
  return measure(stepTimes.measures(), compute, StepTimes::What::CollectiveWait, collective,
                 [&] { return compute.wait(*asyncDone[async]); });
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

MaybeError DeviceExecutor::runEntry(const PreparedProgram::Entry &entry) {
  microbatch = entry.microbatch;
  if (temporal)
    temporal->coordinate = entry.microbatch;
  inPipeline = program.program->tasks(static_cast<int>(entry.task)).kind() != plan::Task::OTHER;
  MaybeError error = measure(
      inPipeline || stepTimes.measures(), compute, StepTimes::What::Task, 0, [&]() -> MaybeError {
        for (size_t i = program.taskBegin[entry.task]; i < program.taskBegin[entry.task + 1]; ++i) {
          progress.at(currentEntry, i);
          if (MaybeError failure = runInstruction(i))
            return failure;
        }
        return std::nullopt;
      });
  if (error)
    return error;
  size_t number = entriesEnqueued.load(std::memory_order_relaxed);
  if (MaybeError failure = compute.record(*entryEnds[number]))
    return failure;
  entriesEnqueued.store(number + 1, std::memory_order_release);
  return std::nullopt;
}

MaybeError DeviceExecutor::runEntries(size_t begin, size_t end) {
  for (currentEntry = begin; currentEntry < end; ++currentEntry)
    if (MaybeError error = runEntry(program.schedule[currentEntry]))
      return error;
  return std::nullopt;
}

MaybeError DeviceExecutor::enqueueSchedule(const std::function<MaybeError(int64_t)> &loadInputs) {
  size_t begin = 0, end = program.program->loop_end();
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (temporal)
      temporal->repetition = batch;
    if (MaybeError error = loadInputs(batch))
      return error;
    if (MaybeError error = runEntries(begin, end))
      return error;
    begin = program.program->loop_begin();
  }
  if (MaybeError error = runEntries(end, program.schedule.size()))
    return error;
  return compute.finish();
}

MaybeError DeviceExecutor::runSchedule(const std::function<MaybeError(int64_t)> &loadInputs) {
  ++currentStep;
  lastOnLane = nullptr;
  entriesEnqueued.store(0, std::memory_order_relaxed);
  stepTimes.begin();
  transfers->begin();
  if (MaybeError error = enqueueSchedule(loadInputs))
    return transfers->locate(*error);
  progress.finish();
  if (MaybeError error = transfers->checkAllFinished())
    return error;
  return stepTimes.collect();
}

void DeviceExecutor::drain() {
  // Their errors are those of the failed schedule.
  (void)compute.finish();
  if (resources.lane())
    (void)resources.lane()->finish();
  transfers->getNetwork().drain();
}

//===----------------------------------------------------------------------===//
// Progress
//===----------------------------------------------------------------------===//

void DeviceExecutor::beginWatch() {
  progress.begin();
  entriesEnqueued.store(0, std::memory_order_relaxed);
  entriesSeenDone = 0;
}

size_t DeviceExecutor::entriesDone() const {
  size_t enqueued = entriesEnqueued.load(std::memory_order_acquire);
  while (entriesSeenDone < enqueued) {
    Expected<bool> done = entryEnds[entriesSeenDone]->isDone();
    if (!done || !*done)
      break;
    ++entriesSeenDone;
  }
  return entriesSeenDone;
}

std::optional<DeviceExecutor::Position> DeviceExecutor::position() const {
  size_t done = entriesDone();
  if (done < entriesEnqueued.load(std::memory_order_acquire))
    return Position{entryOrder[done], std::nullopt};
  std::optional<DeviceProgress::Position> host = progress.position();
  if (!host)
    return std::nullopt;
  return Position{host->entry, host->instruction};
}

} // namespace dtc::runtime
