//===- DeviceBuffers.cpp - Buffers of a device for the host ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceBuffers.h"

#include "plan/PlanTypes.h"
#include "runtime/executor/HostView.h"

#include <cstring>

namespace dtc::runtime {

static size_t bytesOf(const DeviceExecutor &device, uint32_t buffer) {
  return typeOf(device.getProgram().program->buffers(static_cast<int>(buffer))).numBytes();
}

MaybeError readBuffer(const DeviceExecutor &device, uint32_t buffer,
                      const std::function<void(const std::byte *)> &read) {
  const DeviceResources &resources = device.getResources();
  if (device.isInHostMemory(buffer)) {
    if (MaybeError error = resources.compute().finish())
      return error;
    read(device.buffer(buffer));
    return std::nullopt;
  }
  std::unique_ptr<Deadline> limit = device.limitCopy(buffer);
  Expected<HostView> view = HostView::read(resources.getDevice(), resources.compute(),
                                           device.buffer(buffer), bytesOf(device, buffer));
  if (!view)
    return view.error();
  limit.reset();
  read(view->data());
  return std::nullopt;
}

MaybeError writeBuffer(const DeviceExecutor &device, uint32_t buffer,
                       const std::function<void(std::byte *)> &write,
                       std::shared_ptr<DeviceMemory> *kept) {
  const DeviceResources &resources = device.getResources();
  if (device.isInHostMemory(buffer)) {
    write(device.buffer(buffer));
    return std::nullopt;
  }
  Expected<HostView> view = HostView::overwrite(resources.getDevice(), device.buffer(buffer),
                                                bytesOf(device, buffer), kept);
  if (!view)
    return view.error();
  write(view->data());
  std::unique_ptr<Deadline> limit = device.limitCopy(buffer);
  return view->write(resources.compute());
}

MaybeError clearBuffer(const DeviceExecutor &device, uint32_t buffer) {
  const DeviceResources &resources = device.getResources();
  if (device.isInHostMemory(buffer)) {
    if (size_t bytes = bytesOf(device, buffer); bytes > 0)
      std::memset(device.buffer(buffer), 0, bytes);
    return std::nullopt;
  }
  std::unique_ptr<Deadline> limit = device.limitCopy(buffer);
  if (MaybeError error = resources.compute().clear(device.buffer(buffer), bytesOf(device, buffer)))
    return error;
  return resources.compute().finish();
}

} // namespace dtc::runtime
