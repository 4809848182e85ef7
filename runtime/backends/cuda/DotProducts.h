//===- DotProducts.h - Sums of products of two arrays ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_DOTPRODUCTS_H
#define DTC_RUNTIME_BACKENDS_CUDA_DOTPRODUCTS_H

#include "runtime/backends/cuda/CudaKernel.h"

#include <cstdint>
#include <memory>

namespace dtc::runtime::cuda {

/// A kernel for the dot product of two dense arrays of `count` elements, at least one, of type
/// `in`. The result has the same type or, for 16 bits, f32. Its calls share launches
/// (HeldLaunches.h): the norm of all gradients of a model is two of them, however many tensors
/// there are.
std::unique_ptr<CudaKernel> makeDotProduct(DType in, DType out, int64_t count);

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_DOTPRODUCTS_H
