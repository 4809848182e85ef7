//===- DeviceResources.h - The queues and the memory of a device ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICERESOURCES_H
#define DTC_RUNTIME_EXECUTOR_DEVICERESOURCES_H

#include "plan/PlanTypes.h"
#include "runtime/backends/Kernel.h"

#include <array>
#include <cstddef>
#include <memory>

namespace dtc::runtime {

/// A device of this process with its memory and its queues. The entry points of a plan share it.
class DeviceResources {
public:
  /// Opens the process's device number `index`.
  static Expected<std::unique_ptr<DeviceResources>> open(const Backend &backend, int64_t index);
  struct Bytes {
    size_t arena = 0, workspace = 0;
    bool usesHost = false; // else the host has nothing
    size_t hostArena = 0, hostWorkspace = 0;
  };
  MaybeError allocate(const Bytes &bytes);
  /// The same device and arenas with queues and a workspace of its own, for work beside that of
  /// these.
  Expected<std::unique_ptr<DeviceResources>> openBeside(size_t workspaceBytes) const;
  /// Opens the queues. To be called on the thread that will enqueue; `hasLane`: collectives run
  /// beside kernels; `usesHost`: and so do copies to the host's memory and back, and kernels there.
  MaybeError openQueues(bool hasLane, bool usesHost);

  Device &getDevice() const { return *device; }
  Queue &compute() const { return *computeQueue; }
  /// The queue of collectives beside kernels; null if there are none.
  Queue *lane() const { return laneQueue.get(); }
  /// The queue of a lane of the host; null if there is none.
  Queue *lane(Lane lane) const { return hostLanes[static_cast<size_t>(lane)].get(); }
  const DeviceMemory &arena() const { return *arenaMemory; }
  /// The device's part of the memory of the host, from and to which its queues copy.
  const DeviceMemory &hostArena() const { return *hostArenaMemory; }
  std::byte *hostWorkspace() const { return hostWorkspaceMemory->data(); }
  std::byte *workspace() const { return workspaceMemory->data(); }

private:
  DeviceResources() = default;

  std::shared_ptr<Device> device;
  std::shared_ptr<DeviceMemory> arenaMemory, hostArenaMemory, hostWorkspaceMemory;
  std::unique_ptr<DeviceMemory> workspaceMemory;
  std::unique_ptr<Queue> computeQueue, laneQueue; // they end before the memory
  std::array<std::unique_ptr<Queue>, kNumLanes> hostLanes;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICERESOURCES_H
