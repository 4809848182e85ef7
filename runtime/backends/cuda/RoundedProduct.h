//===- RoundedProduct.h - A product that is rounded by itself -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_ROUNDEDPRODUCT_H
#define DTC_RUNTIME_BACKENDS_CUDA_ROUNDEDPRODUCT_H

#include <cuda_runtime.h>

namespace dtc::runtime::cuda {

/// a * b, rounded before anything is added to it: with a sum, nvcc would make it one instruction
/// that rounds once, where the CPU and single calls round twice.
__device__ __forceinline__ float roundedProduct(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double roundedProduct(double a, double b) { return __dmul_rn(a, b); }

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_ROUNDEDPRODUCT_H
