//===- WindowKernels.h - Kernels of convolutions and poolings -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_WINDOWKERNELS_H
#define DTC_RUNTIME_BACKENDS_CPU_WINDOWKERNELS_H

#include "runtime/backends/cpu/CpuKernels.h"

namespace dtc::runtime::cpu {

std::span<const KernelEntry> convKernels();
std::span<const KernelEntry> poolingKernels();

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_WINDOWKERNELS_H
