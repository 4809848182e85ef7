//===- ProductKernel.h - Matrix products with epilogues -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_PRODUCTKERNEL_H
#define DTC_RUNTIME_BACKENDS_CUDA_PRODUCTKERNEL_H

#include "calls/ScaledCalls.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Matmul.h"

#include <memory>

namespace dtc::runtime::cuda {

/// A product of two tensors that may have an epilogue.
class ProductKernel : public CudaKernel {
public:
  /// The product of operands at other places than those of the call. False where cuBLASLt does not
  /// have the epilogue: then there is no result.
  virtual Expected<bool> enqueueProduct(CudaQueue &queue, MatmulOperands operands) const = 0;
};

/// A product of operands of 8 bits; `call.lowering` is of one product of matrices.
Expected<std::unique_ptr<ProductKernel>> makeScaledProduct(ScaledProductCall call,
                                                           const MatmulEpilogue &epilogue = {});

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_PRODUCTKERNEL_H
