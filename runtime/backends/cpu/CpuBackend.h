//===- CpuBackend.h - Kernels on the cores of the host --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_CPUBACKEND_H
#define DTC_RUNTIME_BACKENDS_CPU_CPUBACKEND_H

#include "runtime/backends/Kernel.h"

#include <memory>

namespace dtc::runtime {

/// The backend of CPU devices. It has every kernel of docs/kernels.md.
std::unique_ptr<Backend> createCpuBackend();

} // namespace dtc::runtime

#endif // DTC_RUNTIME_BACKENDS_CPU_CPUBACKEND_H
