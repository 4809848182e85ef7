//===- Device.cpp - One device's part of a step ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Device.h"

#include <chrono>

namespace dtc::runtime {

Device::Device(std::shared_ptr<const PreparedProgram> program, int64_t index,
               std::unique_ptr<Communicator> communicator, int threads)
    : program(std::move(program)), deviceIndex(index), communicator(std::move(communicator)),
      threads(threads) {
  const Mesh &mesh = this->program->mesh;
  std::vector<int64_t> coordinates = mesh.coordinates(index);
  for (size_t i = 0; i < mesh.axes().size(); ++i) {
    const MeshAxis &axis = mesh.axes()[i];
    position.push_back({axis.name, axis.size, coordinates[i], axis.temporal});
  }
  for (AxisPosition &axis : position)
    if (axis.temporal)
      temporal = &axis;
}

Expected<std::unique_ptr<Device>> Device::create(std::shared_ptr<const PreparedProgram> program,
                                                 int64_t index,
                                                 std::unique_ptr<Communicator> communicator,
                                                 int threads, bool profile) {
  std::unique_ptr<Device> device(
      new Device(std::move(program), index, std::move(communicator), threads));
  Expected<PageMemory> arena = PageMemory::allocate(device->program->program().arena_bytes());
  if (!arena)
    return arena.error();
  Expected<PageMemory> workspace = PageMemory::allocate(device->program->workspaceBytes);
  if (!workspace)
    return workspace.error();
  device->arena = std::move(*arena);
  device->workspace = std::move(*workspace);
  for (const std::vector<std::string> &axes : device->program->groups) {
    Expected<Communicator::Group> group = device->communicator->openGroup(axes);
    if (!group)
      return group.error();
    device->groups.push_back(*group);
  }
  for (const PreparedProgram::OperandOffsets &tensor : device->program->operands)
    device->operands.push_back(
        {device->arena.data() + tensor.input, device->arena.data() + tensor.output});
  if (size_t maxAsync = device->program->maxAsync) {
    device->tickets.resize(maxAsync);
    // One more for a collective of the compute thread, which may stand behind them.
    device->stream = std::make_unique<CommunicationStream>(
        maxAsync + 1, [d = device.get()](size_t index) { return d->runCollective(index); });
  }
  if (profile)
    device->instructionTimes.resize(device->program->instructions.size());
  return device;
}

std::byte *Device::buffer(uint32_t index) const {
  return arena.data() + program->program().buffers(static_cast<int>(index)).offset();
}

void Device::runKernel(const PreparedKernel &call) {
  inputs.clear();
  outputs.clear();
  for (uint64_t offset : call.inputs)
    inputs.push_back(arena.data() + offset);
  for (uint64_t offset : call.outputs)
    outputs.push_back(arena.data() + offset);
  call.kernel->run({inputs, outputs, position, workspace.data(), threads});
}

namespace {

/// Adds the time until it is destroyed to a number, or does nothing without one.
class Stopwatch {
  using Clock = std::chrono::steady_clock;

public:
  explicit Stopwatch(double *seconds) : seconds(seconds) {
    if (seconds)
      start = Clock::now();
  }
  ~Stopwatch() {
    if (seconds)
      *seconds += std::chrono::duration<double>(Clock::now() - start).count();
  }
  Stopwatch(const Stopwatch &) = delete;
  Stopwatch &operator=(const Stopwatch &) = delete;

private:
  double *seconds;
  Clock::time_point start;
};

} // namespace

/// On the thread that has the communicator: the stream's, or the compute thread while that is idle.
MaybeError Device::runCollective(size_t index) {
  const auto &collective = std::get<PreparedCollective>(program->instructions[index]);
  InstructionTime *time = instructionTimes.empty() ? nullptr : &instructionTimes[index];
  Stopwatch watch(time ? &time->seconds : nullptr);
  if (time)
    ++time->calls;
  return communicator->run(
      groups[collective.group], collective.specs,
      std::span(operands).subspan(collective.firstOperand, collective.specs.size()));
}

MaybeError Device::waitFor(size_t index) {
  Stopwatch watch(instructionTimes.empty() ? nullptr : &instructionTimes[index].exposedSeconds);
  const auto &collective = std::get<PreparedCollective>(program->instructions[index]);
  return stream->wait(tickets[*collective.asyncIndex]);
}

MaybeError Device::startCollective(size_t index, const PreparedCollective &collective) {
  if (collective.asyncIndex) {
    tickets[*collective.asyncIndex] = stream->queue(index);
    return std::nullopt;
  }
  // Collectives of a device keep their order: this one may not overtake what is queued.
  Stopwatch watch(instructionTimes.empty() ? nullptr : &instructionTimes[index].exposedSeconds);
  if (!stream || stream->isIdle())
    return runCollective(index);
  return stream->wait(stream->queue(index));
}

MaybeError Device::runInstruction(size_t index) {
  const PreparedInstruction &instruction = program->instructions[index];
  if (const auto *collective = std::get_if<PreparedCollective>(&instruction))
    return startCollective(index, *collective);
  if (const auto *wait = std::get_if<PreparedWait>(&instruction))
    return waitFor(wait->collective);
  InstructionTime *time = instructionTimes.empty() ? nullptr : &instructionTimes[index];
  Stopwatch watch(time ? &time->seconds : nullptr);
  if (time)
    ++time->calls;
  runKernel(std::get<PreparedKernel>(instruction));
  return std::nullopt;
}

MaybeError Device::runSchedule() {
  for (const PreparedProgram::Entry &entry : program->schedule) {
    if (temporal)
      temporal->coordinate = entry.microbatch;
    for (size_t i = program->taskBegin[entry.task]; i < program->taskBegin[entry.task + 1]; ++i)
      if (MaybeError error = runInstruction(i))
        return error;
  }
  return std::nullopt;
}

void Device::drain() {
  if (stream)
    stream->drain();
}

} // namespace dtc::runtime
