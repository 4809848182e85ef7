//===- cuda_runtime.h - The stand-in's CUDA runtime, with kernels --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The declarations that nvcc and cuda_runtime.h give to a .cu file, for an ordinary C++ compiler.
// Kernels are launched by cudaLaunchKernelEx alone: the syntax with three angle brackets is no C++.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_INCLUDE_CUDA_RUNTIME_H
#define DTC_TEST_STANDIN_CUDA_INCLUDE_CUDA_RUNTIME_H

#include "test/standin/cuda/KernelLanguage.h"
#include "test/standin/cuda/Launch.h"

#include <cuda_runtime_api.h>

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                               Arguments &&...arguments) {
  return dtc::standin::launch(config, kernel, arguments...);
}

#endif // DTC_TEST_STANDIN_CUDA_INCLUDE_CUDA_RUNTIME_H
