//===- CudaError.h - Errors of CUDA as text -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_CUDAERROR_H
#define DTC_RUNTIME_BACKENDS_CUDA_CUDAERROR_H

#include "support/Error.h"

#include <cuda_runtime.h>

namespace dtc::runtime::cuda {

/// "<what>: <text of CUDA> (<name of CUDA>)". `what` names the device and the call: "cuda 0: cannot
/// record an event".
Error errorOfCuda(cudaError_t status, const std::string &what);

/// None for cudaSuccess. The error of a call that needs memory which the caller has not asked for,
/// such as a graph's, says that this is beside the plan's.
MaybeError checkCuda(cudaError_t status, const std::string &what);

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_CUDAERROR_H
