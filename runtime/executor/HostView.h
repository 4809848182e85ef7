//===- HostView.h - Device bytes for the host -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_HOSTVIEW_H
#define DTC_RUNTIME_EXECUTOR_HOSTVIEW_H

#include "runtime/backends/Device.h"

#include <cstddef>
#include <memory>

namespace dtc::runtime {

/// A range of a device's memory for the host: the memory itself where the host can follow its
/// addresses, or a copy in staging memory. In order with the work of a queue.
class HostView {
public:
  /// Waits until the bytes can be read.
  static Expected<HostView> read(Device &device, Queue &queue, const std::byte *at, size_t bytes);
  /// The bytes are to be written, all of them, and then passed to write(). `kept`: staging memory
  /// of views before, which is used again where it is large enough, and else replaced.
  static Expected<HostView> overwrite(Device &device, std::byte *at, size_t bytes,
                                      std::shared_ptr<DeviceMemory> *kept = nullptr);

  std::byte *data() const { return host; }
  /// Waits until the device has the bytes.
  MaybeError write(Queue &queue);

private:
  static Expected<HostView> open(Device &device, std::byte *at, size_t bytes,
                                 std::shared_ptr<DeviceMemory> *kept = nullptr);

  std::shared_ptr<DeviceMemory> staging; // null: the memory itself
  std::byte *host = nullptr, *onDevice = nullptr;
  size_t bytes = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_HOSTVIEW_H
