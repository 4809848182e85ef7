//===- LoadCublasLt.cpp - cuBLASLt, loaded at run time --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CublasLt.h"
#include "runtime/backends/cuda/VendorLibrary.h"

#include <fmt/format.h>

namespace dtc::runtime::cuda {

static Expected<CublasLt> load() {
  std::string file = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  Expected<VendorLibrary> library = VendorLibrary::open("cuBLASLt", file, "nvidia-cublas");
  if (!library)
    return library.error();
  CublasLt table = {};
  library->find(table.create, "cublasLtCreate");
  library->find(table.destroy, "cublasLtDestroy");
  library->find(table.getVersion, "cublasLtGetVersion");
  library->find(table.getStatusString, "cublasLtGetStatusString");
  library->find(table.matmulDescCreate, "cublasLtMatmulDescCreate");
  library->find(table.matmulDescDestroy, "cublasLtMatmulDescDestroy");
  library->find(table.matmulDescSetAttribute, "cublasLtMatmulDescSetAttribute");
  library->find(table.matrixLayoutCreate, "cublasLtMatrixLayoutCreate");
  library->find(table.matrixLayoutDestroy, "cublasLtMatrixLayoutDestroy");
  library->find(table.matrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute");
  library->find(table.matmulPreferenceCreate, "cublasLtMatmulPreferenceCreate");
  library->find(table.matmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy");
  library->find(table.matmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute");
  library->find(table.matmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic");
  library->find(table.matmulAlgoCheck, "cublasLtMatmulAlgoCheck");
  library->find(table.matmul, "cublasLtMatmul");
  if (library->missing())
    return *library->missing();
  return table;
}

Expected<const CublasLt *> loadCublasLt() {
  static const Expected<CublasLt> loaded = load();
  if (!loaded)
    return loaded.error();
  return &*loaded;
}

} // namespace dtc::runtime::cuda
