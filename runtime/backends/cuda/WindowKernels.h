//===- WindowKernels.h - Kernels of convolutions and poolings -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_WINDOWKERNELS_H
#define DTC_RUNTIME_BACKENDS_CUDA_WINDOWKERNELS_H

#include "runtime/backends/cuda/CudaKernel.h"

namespace dtc::runtime::cuda {

std::span<const KernelEntry> convKernels();
std::span<const KernelEntry> poolingKernels();

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_WINDOWKERNELS_H
