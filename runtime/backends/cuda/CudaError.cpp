//===- CudaError.cpp - Errors of CUDA as text -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaError.h"

#include <fmt/format.h>

namespace dtc::runtime::cuda {

Error errorOfCuda(cudaError_t status, const std::string &what) {
  // An error of a call, as of an allocation, would otherwise be reported by the next launch too.
  (void)cudaGetLastError();
  return Error{
      fmt::format("{}: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status))};
}

MaybeError checkCuda(cudaError_t status, const std::string &what) {
  if (status == cudaSuccess)
    return std::nullopt;
  Error error = errorOfCuda(status, what);
  if (status == cudaErrorMemoryAllocation)
    error.message += "; this is memory beside the plan's, which has its own already: compile for "
                     "more or smaller shards, or a smaller batch";
  return error;
}

} // namespace dtc::runtime::cuda
