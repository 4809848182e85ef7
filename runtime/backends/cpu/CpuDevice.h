//===- CpuDevice.h - Memory, queues and events of the host ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_CPUDEVICE_H
#define DTC_RUNTIME_BACKENDS_CPU_CPUDEVICE_H

#include "runtime/backends/Device.h"

#include <memory>

namespace dtc::runtime::cpu {

/// A part of the host: its memory, and queues as CpuQueue.h has them. The thread that opens a
/// compute queue gets the threads that kernels on it may use, `threads` with itself.
std::unique_ptr<Device> createCpuDevice(int threads);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_CPUDEVICE_H
