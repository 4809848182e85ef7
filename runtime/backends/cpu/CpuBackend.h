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

/// The backend of CPU devices. It has every kernel of docs/kernels.md. A kernel may use `threads`
/// threads, at least 1.
std::unique_ptr<Backend> createCpuBackend(int threads = 1);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_BACKENDS_CPU_CPUBACKEND_H
