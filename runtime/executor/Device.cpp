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

MaybeError Device::runInstruction(const PreparedInstruction &instruction) {
  if (const auto *call = std::get_if<PreparedKernel>(&instruction)) {
    runKernel(*call);
    return std::nullopt;
  }
  const auto &collective = std::get<PreparedCollective>(instruction);
  for (const PreparedCollective::Tensor &tensor : collective.tensors)
    if (MaybeError error =
            communicator->run(groups[collective.group], tensor.spec, arena.data() + tensor.input,
                              arena.data() + tensor.output))
      return error;
  return std::nullopt;
}

MaybeError Device::runSchedule() {
  using Clock = std::chrono::steady_clock;
  bool profile = !instructionTimes.empty();
  for (const PreparedProgram::Entry &entry : program->schedule) {
    if (temporal)
      temporal->coordinate = entry.microbatch;
    for (size_t i = program->taskBegin[entry.task]; i < program->taskBegin[entry.task + 1]; ++i) {
      Clock::time_point start = profile ? Clock::now() : Clock::time_point();
      if (MaybeError error = runInstruction(program->instructions[i]))
        return error;
      if (profile) {
        ++instructionTimes[i].calls;
        instructionTimes[i].seconds += std::chrono::duration<double>(Clock::now() - start).count();
      }
    }
  }
  return std::nullopt;
}

} // namespace dtc::runtime
