//===- CublasLt.h - cuBLASLt, loaded at run time --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_CUBLASLT_H
#define DTC_RUNTIME_BACKENDS_CUDA_CUBLASLT_H

#include "support/Error.h"

#include <cublasLt.h>

namespace dtc::runtime::cuda {

/// The functions of cuBLASLt that are used, under the names that they have there.
struct CublasLt {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetVersion) getVersion;
  decltype(&cublasLtGetStatusString) getStatusString;
  decltype(&cublasLtMatmulDescCreate) matmulDescCreate;
  decltype(&cublasLtMatmulDescDestroy) matmulDescDestroy;
  decltype(&cublasLtMatmulDescSetAttribute) matmulDescSetAttribute;
  decltype(&cublasLtMatrixLayoutCreate) matrixLayoutCreate;
  decltype(&cublasLtMatrixLayoutDestroy) matrixLayoutDestroy;
  decltype(&cublasLtMatrixLayoutSetAttribute) matrixLayoutSetAttribute;
  decltype(&cublasLtMatmulPreferenceCreate) matmulPreferenceCreate;
  decltype(&cublasLtMatmulPreferenceDestroy) matmulPreferenceDestroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) matmulPreferenceSetAttribute;
  decltype(&cublasLtMatmulAlgoGetHeuristic) matmulAlgoGetHeuristic;
  decltype(&cublasLtMatmulAlgoCheck) matmulAlgoCheck;
  decltype(&cublasLtMatmul) matmul;
};

/// The library, which is loaded at the first call and stays. The error says which file was looked
/// for and where.
Expected<const CublasLt *> loadCublasLt();

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_CUBLASLT_H
