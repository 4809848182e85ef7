//===- HostLanes.h - Work of a device's host ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_HOSTLANES_H
#define DTC_RUNTIME_EXECUTOR_HOSTLANES_H

#include "runtime/executor/DeviceResources.h"
#include "runtime/executor/PreparedProgram.h"

#include <memory>
#include <span>
#include <vector>

namespace dtc::runtime {

/// The calls of a device's program with operands in the memory of the host: copies, which the
/// device's queues do, and kernels, which the host's cores run in order with these queues. A kernel
/// has the same operands in every step, so that steps in flight share what runs it.
class HostLanes {
public:
  /// All of it outlives this. `position` is that of the device on the axes.
  HostLanes(const PreparedProgram &program, const DeviceResources &resources,
            std::span<const AxisCoordinate> position);
  ~HostLanes();

  /// Gives the lane of kernels their threads, so that none starts in a step.
  MaybeError prepare(int threads);
  /// Enqueues the work of instructions[index] on the queue of its lane.
  MaybeError enqueue(size_t index, const PreparedHostCall &call, uint32_t microbatch);
  /// Waits for all that the lanes hold, whether it fails or not.
  void drain();

  std::byte *place(const ArenaRange &range, uint32_t microbatch) const;
  Queue &queue(Lane lane) const { return *resources.lane(lane); }

private:
  class KernelRun;
  class Threads;

  const DeviceResources &resources;
  std::unique_ptr<Threads> threads;
  std::vector<std::unique_ptr<KernelRun>> runs; // by instruction; null where there is no kernel
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_HOSTLANES_H
