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
  MaybeError missing;
  auto find = [&](auto &function, const char *name) {
    if (MaybeError error = library->find(function, name); error && !missing)
      missing = error;
  };
  find(table.create, "cublasLtCreate");
  find(table.destroy, "cublasLtDestroy");
  find(table.getVersion, "cublasLtGetVersion");
  find(table.getStatusString, "cublasLtGetStatusString");
  find(table.matmulDescCreate, "cublasLtMatmulDescCreate");
  find(table.matmulDescDestroy, "cublasLtMatmulDescDestroy");
  find(table.matmulDescSetAttribute, "cublasLtMatmulDescSetAttribute");
  find(table.matrixLayoutCreate, "cublasLtMatrixLayoutCreate");
  find(table.matrixLayoutDestroy, "cublasLtMatrixLayoutDestroy");
  find(table.matrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute");
  find(table.matmulPreferenceCreate, "cublasLtMatmulPreferenceCreate");
  find(table.matmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy");
  find(table.matmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute");
  find(table.matmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(table.matmulAlgoCheck, "cublasLtMatmulAlgoCheck");
  find(table.matmul, "cublasLtMatmul");
  if (missing)
    return *missing;
  return table;
}

Expected<const CublasLt *> loadCublasLt() {
  static const Expected<CublasLt> loaded = load();
  if (!loaded)
    return loaded.error();
  return &*loaded;
}

} // namespace dtc::runtime::cuda
