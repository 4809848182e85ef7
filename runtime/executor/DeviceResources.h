//===- DeviceResources.h - The queues and the memory of a device ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICERESOURCES_H
#define DTC_RUNTIME_EXECUTOR_DEVICERESOURCES_H

#include "runtime/backends/Kernel.h"

#include <cstddef>
#include <memory>

namespace dtc::runtime {

/// A device of this process with its memory and its queues. The entry points of a plan share it.
class DeviceResources {
public:
  /// Opens the process's device number `index`.
  static Expected<std::unique_ptr<DeviceResources>> open(const Backend &backend, int64_t index);
  MaybeError allocate(size_t arenaBytes, size_t workspaceBytes);
  /// Opens the queues. To be called on the thread that will enqueue; `hasLane`: collectives run
  /// beside kernels.
  MaybeError openQueues(bool hasLane);

  Device &getDevice() const { return *device; }
  Queue &compute() const { return *computeQueue; }
  /// The queue of collectives beside kernels; null if there are none.
  Queue *lane() const { return laneQueue.get(); }
  const DeviceMemory &arena() const { return *arenaMemory; }
  std::byte *workspace() const { return workspaceMemory->data(); }

private:
  DeviceResources() = default;

  std::unique_ptr<Device> device;
  std::unique_ptr<DeviceMemory> arenaMemory, workspaceMemory;
  std::unique_ptr<Queue> computeQueue, laneQueue; // they end before the memory
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICERESOURCES_H
