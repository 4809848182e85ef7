//===- DeviceResources.cpp - The queues and the memory of a device --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceResources.h"

namespace dtc::runtime {

Expected<std::unique_ptr<DeviceResources>> DeviceResources::open(const Backend &backend,
                                                                 int64_t index) {
  std::unique_ptr<DeviceResources> resources(new DeviceResources);
  Expected<std::unique_ptr<Device>> device = backend.openDevice(index);
  if (!device)
    return device.error();
  resources->device = std::move(*device);
  return resources;
}

MaybeError DeviceResources::allocate(size_t arenaBytes, size_t workspaceBytes) {
  for (auto [part, bytes] :
       {std::pair(&arenaMemory, arenaBytes), std::pair(&workspaceMemory, workspaceBytes)}) {
    Expected<std::unique_ptr<DeviceMemory>> allocated = device->allocate(bytes);
    if (!allocated)
      return allocated.error();
    *part = std::move(*allocated);
  }
  return std::nullopt;
}

MaybeError DeviceResources::openQueues(bool hasLane) {
  Expected<std::unique_ptr<Queue>> compute = device->openQueue(QueueKind::Compute);
  if (!compute)
    return compute.error();
  computeQueue = std::move(*compute);
  if (!hasLane)
    return std::nullopt;
  Expected<std::unique_ptr<Queue>> lane = device->openQueue(QueueKind::Communication);
  if (!lane)
    return lane.error();
  laneQueue = std::move(*lane);
  return std::nullopt;
}

} // namespace dtc::runtime
