//===- LoadCublasLt.cpp - The stand-in's cuBLASLt for the backend --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// In place of the file of the same name in runtime/backends/cuda, which loads the library.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CublasLt.h"

namespace dtc::runtime::cuda {

Expected<const CublasLt *> loadCublasLt() {
  static constexpr CublasLt kTable = {
      .create = cublasLtCreate,
      .destroy = cublasLtDestroy,
      .getVersion = cublasLtGetVersion,
      .getStatusString = cublasLtGetStatusString,
      .matmulDescCreate = cublasLtMatmulDescCreate,
      .matmulDescDestroy = cublasLtMatmulDescDestroy,
      .matmulDescSetAttribute = cublasLtMatmulDescSetAttribute,
      .matrixLayoutCreate = cublasLtMatrixLayoutCreate,
      .matrixLayoutDestroy = cublasLtMatrixLayoutDestroy,
      .matrixLayoutSetAttribute = cublasLtMatrixLayoutSetAttribute,
      .matmulPreferenceCreate = cublasLtMatmulPreferenceCreate,
      .matmulPreferenceDestroy = cublasLtMatmulPreferenceDestroy,
      .matmulPreferenceSetAttribute = cublasLtMatmulPreferenceSetAttribute,
      .matmulAlgoGetHeuristic = cublasLtMatmulAlgoGetHeuristic,
      .matmulAlgoCheck = cublasLtMatmulAlgoCheck,
      .matmul = cublasLtMatmul,
  };
  return &kTable;
}

} // namespace dtc::runtime::cuda
