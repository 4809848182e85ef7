//===- HostView.cpp - Device bytes for the host ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/HostView.h"

namespace dtc::runtime {

Expected<HostView> HostView::open(Device &device, std::byte *at, size_t bytes,
                                  std::shared_ptr<DeviceMemory> *kept) {
  HostView view;
  view.onDevice = view.host = at;
  view.bytes = bytes;
  if (device.isHostMemory())
    return view;
  if (kept && *kept && (*kept)->bytes() >= bytes) {
    view.staging = *kept;
  } else {
    if (kept)
      kept->reset(); // before there is more
    Expected<std::unique_ptr<DeviceMemory>> staging = device.allocateStaging(bytes);
    if (!staging)
      return staging.error();
    view.staging = std::move(*staging);
    if (kept)
      *kept = view.staging;
  }
  view.host = view.staging->data();
  return view;
}

Expected<HostView> HostView::read(Device &device, Queue &queue, const std::byte *at, size_t bytes) {
  // Memory that is only read may be const; one view serves both.
  Expected<HostView> view = open(device, const_cast<std::byte *>(at), bytes);
  if (!view)
    return view;
  if (view->staging)
    if (MaybeError error = queue.copy(view->host, at, bytes))
      return *error;
  if (MaybeError error = queue.finish())
    return *error;
  return view;
}

Expected<HostView> HostView::overwrite(Device &device, std::byte *at, size_t bytes,
                                       std::shared_ptr<DeviceMemory> *kept) {
  return open(device, at, bytes, kept);
}

MaybeError HostView::write(Queue &queue) {
  if (!staging)
    return std::nullopt;
  if (MaybeError error = queue.copy(onDevice, host, bytes))
    return error;
  return queue.finish();
}

} // namespace dtc::runtime
