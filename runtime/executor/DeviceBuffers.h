//===- DeviceBuffers.h - Buffers of a device for the host -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICEBUFFERS_H
#define DTC_RUNTIME_EXECUTOR_DEVICEBUFFERS_H

#include "runtime/executor/DeviceExecutor.h"
#include "support/Error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace dtc::runtime {

/// Calls read() with all bytes of a buffer of the device's program.
MaybeError readBuffer(const DeviceExecutor &device, uint32_t buffer,
                      const std::function<void(const std::byte *)> &read);

/// Writes all of a buffer, which write() gets without its value. `kept` is that of
/// HostView::overwrite().
MaybeError writeBuffer(const DeviceExecutor &device, uint32_t buffer,
                       const std::function<void(std::byte *)> &write,
                       std::shared_ptr<DeviceMemory> *kept = nullptr);

/// Sets all of a buffer to zero.
MaybeError clearBuffer(const DeviceExecutor &device, uint32_t buffer);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICEBUFFERS_H
