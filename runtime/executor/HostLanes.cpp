//===- HostLanes.cpp - Work of a device's host ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/HostLanes.h"

#include "runtime/backends/cpu/CpuKernel.h"
#include "runtime/backends/cpu/KernelThreads.h"

#include <exception>
#include <initializer_list>

namespace dtc::runtime {

static constexpr std::initializer_list<Lane> kLanesOfHost = {Lane::ToHost, Lane::Host,
                                                             Lane::ToDevice};

/// One kernel of the host, with the places of its operands.
class HostLanes::KernelRun final : public HostWork {
public:
  KernelRun(const HostLanes &lanes, const PreparedHostCall &call,
            std::span<const AxisCoordinate> position)
      : kernel(static_cast<const cpu::CpuKernel &>(*call.kernel)),
        position(position.begin(), position.end()), workspace(lanes.resources.hostWorkspace()) {
    for (const ArenaRange &range : call.inputs)
      inputs.push_back(lanes.place(range, /*microbatch=*/0));
    for (const ArenaRange &range : call.outputs)
      outputs.push_back(lanes.place(range, /*microbatch=*/0));
  }

  MaybeError run() override {
    try {
      kernel.runPrepared({inputs, outputs, position, workspace});
    } catch (const std::exception &exception) {
      return Error{exception.what()};
    }
    return std::nullopt;
  }

private:
  const cpu::CpuKernel &kernel;
  std::vector<void *> inputs, outputs;
  std::vector<AxisCoordinate> position;
  std::byte *workspace;
};

/// Starts the threads that kernels use beside the one of their queue.
class HostLanes::Threads final : public HostWork {
public:
  explicit Threads(int count) : count(count) {}
  MaybeError run() override { return cpu::startKernelThreads(count); }

private:
  int count;
};

HostLanes::HostLanes(const PreparedProgram &program, const DeviceResources &resources,
                     std::span<const AxisCoordinate> position)
    : resources(resources), runs(program.instructions.size()) {
  for (size_t i = 0; i < program.instructions.size(); ++i)
    if (const auto *call = std::get_if<PreparedHostCall>(&program.instructions[i]);
        call && call->kernel)
      runs[i] = std::make_unique<KernelRun>(*this, *call, position);
}

HostLanes::~HostLanes() = default;

std::byte *HostLanes::place(const ArenaRange &range, uint32_t microbatch) const {
  const DeviceMemory &memory = range.isOnHost ? resources.hostArena() : resources.arena();
  return memory.data() + range.offsetFor(microbatch);
}

MaybeError HostLanes::prepare(int count) {
  threads = std::make_unique<Threads>(count);
  if (MaybeError error = queue(Lane::Host).call(*threads))
    return error;
  return queue(Lane::Host).finish();
}

MaybeError HostLanes::enqueue(size_t index, const PreparedHostCall &call, uint32_t microbatch) {
  if (call.lane == Lane::Host)
    return runs[index] ? queue(Lane::Host).call(*runs[index]) : std::nullopt;
  if (call.bytes == 0)
    return std::nullopt;
  return queue(call.lane).copy(place(call.outputs.front(), microbatch),
                               place(call.inputs.front(), microbatch), call.bytes);
}

void HostLanes::drain() {
  for (Lane lane : kLanesOfHost)
    (void)queue(lane).finish();
}

} // namespace dtc::runtime
