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

MaybeError DeviceResources::allocate(const Bytes &bytes) {
  auto keep = [](Expected<std::unique_ptr<DeviceMemory>> allocated, auto &part) -> MaybeError {
    if (!allocated)
      return allocated.error();
    part = std::move(*allocated);
    return std::nullopt;
  };
  if (MaybeError error = keep(device->allocate(bytes.arena), arenaMemory))
    return error;
  if (MaybeError error = keep(device->allocate(bytes.workspace), workspaceMemory))
    return error;
  if (!bytes.usesHost)
    return std::nullopt;
  if (MaybeError error = keep(device->allocateStaging(bytes.hostArena), hostArenaMemory))
    return error->inContext("for what the plan keeps in the memory of the host");
  return keep(device->allocateStaging(bytes.hostWorkspace), hostWorkspaceMemory);
}

Expected<std::unique_ptr<DeviceResources>>
DeviceResources::openBeside(size_t workspaceBytes) const {
  std::unique_ptr<DeviceResources> resources(new DeviceResources);
  resources->device = device;
  resources->arenaMemory = arenaMemory;
  resources->hostArenaMemory = hostArenaMemory;
  resources->hostWorkspaceMemory = hostWorkspaceMemory;
  Expected<std::unique_ptr<DeviceMemory>> workspace = device->allocate(workspaceBytes);
  if (!workspace)
    return workspace.error();
  resources->workspaceMemory = std::move(*workspace);
  return resources;
}

MaybeError DeviceResources::openQueues(bool hasLane, bool usesHost) {
  Expected<std::unique_ptr<Queue>> compute = device->openQueue(QueueKind::Compute);
  if (!compute)
    return compute.error();
  computeQueue = std::move(*compute);
  for (Lane lane : {Lane::ToHost, Lane::Host, Lane::ToDevice}) {
    if (!usesHost)
      break;
    Expected<std::unique_ptr<Queue>> queue = device->openQueue(QueueKind::Communication);
    if (!queue)
      return queue.error();
    hostLanes[static_cast<size_t>(lane)] = std::move(*queue);
  }
  if (!hasLane)
    return std::nullopt;
  Expected<std::unique_ptr<Queue>> lane = device->openQueue(QueueKind::Communication);
  if (!lane)
    return lane.error();
  laneQueue = std::move(*lane);
  return std::nullopt;
}

} // namespace dtc::runtime
