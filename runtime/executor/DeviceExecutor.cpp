//===- DeviceExecutor.cpp - One device's part of a step -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceExecutor.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace dtc::runtime {

static double secondsOf(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

TransferTime &TransferTime::operator+=(const TransferTime &other) {
  calls += other.calls;
  seconds += other.seconds;
  exposedSeconds += other.exposedSeconds;
  waitedSeconds += other.waitedSeconds;
  return *this;
}

double TransferTime::hiddenShare() const { return seconds > 0 ? 1 - exposedSeconds / seconds : 0; }

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

Expected<std::shared_ptr<const ProgramMemory>> ProgramMemory::allocate(size_t arenaBytes,
                                                                       size_t workspaceBytes) {
  auto memory = std::make_shared<ProgramMemory>();
  for (auto [part, bytes] :
       {std::pair(&memory->arena, arenaBytes), std::pair(&memory->workspace, workspaceBytes)}) {
    Expected<PageMemory> allocated = PageMemory::allocate(bytes);
    if (!allocated)
      return allocated.error();
    *part = std::move(*allocated);
  }
  return std::shared_ptr<const ProgramMemory>(std::move(memory));
}

DeviceExecutor::DeviceExecutor(std::shared_ptr<const PreparedPlan> plan, int64_t index,
                               std::shared_ptr<const ProgramMemory> memory,
                               std::unique_ptr<Communicator> communicator,
                               const DeviceOptions &options)
    : plan(std::move(plan)), program(this->plan->programOf(index)), deviceIndex(index),
      communicator(std::move(communicator)), batches(options.batches), memory(std::move(memory)),
      arena(this->memory->arena.data()) {
  const Mesh &mesh = this->plan->mesh;
  std::vector<int64_t> coordinates = mesh.coordinates(index);
  for (size_t i = 0; i < mesh.axes().size(); ++i) {
    const MeshAxis &axis = mesh.axes()[i];
    position.push_back({axis.name, axis.size, coordinates[i], axis.temporal});
  }
  for (AxisPosition &axis : position)
    if (axis.temporal)
      temporal = &axis;
}

Expected<std::unique_ptr<DeviceExecutor>>
DeviceExecutor::create(std::shared_ptr<const PreparedPlan> plan, int64_t index,
                       std::shared_ptr<const ProgramMemory> memory,
                       std::unique_ptr<Communicator> communicator,
                       std::unique_ptr<Transfers> transfers, const DeviceOptions &options) {
  std::unique_ptr<DeviceExecutor> device(new DeviceExecutor(
      std::move(plan), index, std::move(memory), std::move(communicator), options));
  device->injections = options.injections;
  const PreparedProgram &program = device->program;
  for (const std::vector<std::string> &axes : device->plan->groups) {
    Expected<Communicator::Group> group = device->communicator->openGroup(axes);
    if (!group)
      return group.error();
    device->groups.push_back(*group);
  }
  for (const PreparedProgram::Operands &tensor : program.operands)
    device->operands.push_back(
        {device->arena + tensor.input.offset, device->arena + tensor.output.offset});
  if (std::any_of(program.transfers.begin(), program.transfers.end(),
                  [](const PreparedTransfer &transfer) { return !transfer.sends; }))
    transfers->prepareToReceive();
  device->transfers =
      std::make_unique<DeviceTransfers>(*device->plan, index, device->arena, std::move(transfers));
  if (size_t maxAsync = program.maxAsync) {
    device->tickets.resize(maxAsync);
    // One more for a collective of the compute thread, which may stand behind them.
    device->stream = std::make_unique<CommunicationStream>(
        maxAsync + 1, [d = device.get()](size_t index) { return d->runCollective(index); });
  }
  if (options.profile) {
    device->instructionTimes.resize(program.instructions.size());
    device->timesOfTransfers.resize(program.transfers.size());
  }
  if (options.traceSteps > 0)
    device->trace = std::make_unique<DeviceTrace>(program, options.traceSteps, options.batches);
  return device;
}

MaybeError DeviceExecutor::openQueue(const Backend &backend) {
  Expected<std::unique_ptr<Device>> opened = backend.openDevice(deviceIndex);
  if (!opened)
    return opened.error();
  device = std::move(*opened);
  if (!device->isHostMemory())
    return Error{fmt::format("{} has memory of its own, which the executor cannot use yet, "
                             "expected a device that works in the memory of the host",
                             device->describe())};
  Expected<std::unique_ptr<Queue>> compute = device->openQueue(QueueKind::Compute);
  if (!compute)
    return compute.error();
  queue = std::move(*compute);
  return std::nullopt;
}

std::byte *DeviceExecutor::buffer(uint32_t index) const {
  return arena + program.program->buffers(static_cast<int>(index)).offset();
}

CommunicatorBytes DeviceExecutor::sent() const {
  CommunicatorBytes bytes = communicator->sent();
  bytes.transfers += transfers->getNetwork().sentBytes();
  return bytes;
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

void DeviceExecutor::addToTrace(TraceRow row, TraceEvent::Kind kind, size_t index,
                                Clock::time_point begin, Clock::time_point end) {
  if (trace)
    trace->add(
        row, {kind, static_cast<uint32_t>(currentEntry), static_cast<uint32_t>(index), begin, end});
}

/// Of a kernel or a collective, on the thread that ran it.
void DeviceExecutor::addTime(TraceRow row, size_t index, Clock::time_point begin) {
  if (!measures())
    return;
  Clock::time_point end = Clock::now();
  if (!instructionTimes.empty()) {
    instructionTimes[index].seconds += secondsOf(end - begin);
    ++instructionTimes[index].calls;
  }
  addToTrace(row, TraceEvent::Work, index, begin, end);
}

/// Of a collective, on the compute thread.
void DeviceExecutor::addWait(size_t index, Clock::time_point begin) {
  if (!measures())
    return;
  Clock::time_point end = Clock::now();
  if (!instructionTimes.empty())
    instructionTimes[index].exposedSeconds += secondsOf(end - begin);
  addToTrace(TraceRow::Compute, TraceEvent::Waiting, index, begin, end);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

MaybeError DeviceExecutor::runKernel(size_t index, const PreparedKernel &call) {
  Clock::time_point begin = startWatch();
  inputs.clear();
  outputs.clear();
  for (const ArenaRange &range : call.inputs)
    inputs.push_back(arena + range.offsetFor(microbatch));
  for (const ArenaRange &range : call.outputs)
    outputs.push_back(arena + range.offsetFor(microbatch));
  if (MaybeError error =
          queue->enqueue(*call.kernel, {inputs, outputs, position, memory->workspace.data()}))
    return error;
  addTime(TraceRow::Compute, index, begin);
  if (!injections.empty())
    injectAfter(index);
  return std::nullopt;
}

void DeviceExecutor::injectAfter(size_t index) {
  for (const PreparedInjection &each : injections)
    if (each.instruction == index && each.step == currentStep && each.microbatch == microbatch)
      std::memcpy(arena + each.range.offsetFor(microbatch) + each.byteOffset, each.bytes.data(),
                  each.width);
}

/// Of a collective whose operands differ between microbatches. An earlier run of it is over, as a
/// task waits for all that it starts.
void DeviceExecutor::placeOperands(const PreparedCollective &collective) {
  for (size_t i = 0; i < collective.specs.size(); ++i) {
    size_t operand = collective.firstOperand + i;
    const PreparedProgram::Operands &ranges = program.operands[operand];
    operands[operand] = {arena + ranges.input.offsetFor(microbatch),
                         arena + ranges.output.offsetFor(microbatch)};
  }
}

/// On the thread that has the communicator: the stream's, or the compute thread while that is idle.
MaybeError DeviceExecutor::runCollective(size_t index) {
  const auto &collective = std::get<PreparedCollective>(program.instructions[index]);
  Clock::time_point begin = startWatch();
  MaybeError error = communicator->run(
      groups[collective.group], collective.specs,
      std::span(operands).subspan(collective.firstOperand, collective.specs.size()));
  addTime(TraceRow::Collectives, index, begin);
  return error;
}

MaybeError DeviceExecutor::waitFor(size_t index, CommunicationStream::Ticket ticket) {
  Clock::time_point begin = startWatch();
  MaybeError error = stream->wait(ticket);
  addWait(index, begin);
  return error;
}

MaybeError DeviceExecutor::startCollective(size_t index, const PreparedCollective &collective) {
  if (collective.hasSlots)
    placeOperands(collective);
  if (collective.asyncIndex) {
    tickets[*collective.asyncIndex] = stream->queue(index);
    return std::nullopt;
  }
  // Collectives of a device keep their order: this one may not overtake what is queued.
  if (stream && !stream->isIdle())
    return waitFor(index, stream->queue(index));
  Clock::time_point begin = startWatch();
  MaybeError error = runCollective(index);
  addWait(index, begin);
  return error;
}

MaybeError DeviceExecutor::finishTransfer(size_t index, size_t transfer) {
  Clock::time_point begin = Clock::now();
  TransferResult result = transfers->finish(transfer, microbatch);
  Clock::time_point end = Clock::now();
  taskWait += secondsOf(end - begin);
  if (result.error)
    return result.error;
  if (!timesOfTransfers.empty()) {
    // Waiting for a message that nobody has sent yet is no cost of moving it.
    double exposed = secondsOf(std::min(end, result.end) - std::max(begin, result.begin));
    timesOfTransfers[transfer] +=
        {1, result.seconds(), std::max(exposed, 0.0), secondsOf(end - begin)};
  }
  addToTrace(TraceRow::Transfers, TraceEvent::Work, index, result.begin, result.end);
  addToTrace(TraceRow::Compute, TraceEvent::Waiting, index, begin, end);
  return std::nullopt;
}

MaybeError DeviceExecutor::runInstruction(size_t index) {
  const PreparedInstruction &instruction = program.instructions[index];
  if (const auto *kernel = std::get_if<PreparedKernel>(&instruction))
    return runKernel(index, *kernel);
  if (const auto *collective = std::get_if<PreparedCollective>(&instruction))
    return startCollective(index, *collective);
  if (const auto *start = std::get_if<PreparedStartTransfer>(&instruction))
    return transfers->start(start->transfer, microbatch);
  if (const auto *finish = std::get_if<PreparedFinishTransfer>(&instruction))
    return finishTransfer(index, finish->transfer);
  size_t collective = std::get<PreparedWait>(instruction).collective;
  return waitFor(
      collective,
      tickets[*std::get<PreparedCollective>(program.instructions[collective]).asyncIndex]);
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

MaybeError DeviceExecutor::runEntry(const PreparedProgram::Entry &entry) {
  microbatch = entry.microbatch;
  if (temporal)
    temporal->coordinate = entry.microbatch;
  bool inPipeline =
      program.program->tasks(static_cast<int>(entry.task)).kind() != plan::Task::OTHER;
  Clock::time_point begin = inPipeline ? Clock::now() : startWatch();
  taskWait = 0;
  for (size_t i = program.taskBegin[entry.task]; i < program.taskBegin[entry.task + 1]; ++i) {
    progress.at(currentEntry, i);
    if (MaybeError error = runInstruction(i))
      return error;
  }
  if (!inPipeline && !trace)
    return std::nullopt;
  Clock::time_point end = Clock::now();
  addToTrace(TraceRow::Compute, TraceEvent::Task, 0, begin, end);
  if (inPipeline) {
    if (!span)
      span = PipelineSpan{begin, end, 0};
    span->end = end;
    span->busySeconds += secondsOf(end - begin) - taskWait;
  }
  return std::nullopt;
}

MaybeError DeviceExecutor::runEntries(size_t begin, size_t end) {
  for (currentEntry = begin; currentEntry < end; ++currentEntry)
    if (MaybeError error = runEntry(program.schedule[currentEntry]))
      return error;
  return std::nullopt;
}

MaybeError DeviceExecutor::runSchedule(const std::function<void(int64_t)> &loadInputs) {
  span.reset();
  ++currentStep;
  if (trace)
    trace->beginStep();
  size_t begin = 0, end = program.program->loop_end();
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (temporal)
      temporal->repetition = batch;
    loadInputs(batch);
    if (MaybeError error = runEntries(begin, end))
      return error;
    begin = program.program->loop_begin();
  }
  if (MaybeError error = runEntries(end, program.schedule.size()))
    return error;
  progress.finish();
  return transfers->checkAllFinished();
}

void DeviceExecutor::drain() {
  if (stream)
    stream->drain();
  transfers->getNetwork().drain();
}

} // namespace dtc::runtime
