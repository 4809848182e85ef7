//===- CublasLt.cpp - The functions of cuBLASLt ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Api.h"
#include "test/standin/cuda/Capture.h"
#include "test/standin/cuda/MatrixProduct.h"

#include <algorithm>
#include <cstring>
#include <cublasLt.h>
#include <fmt/format.h>
#include <vector>

namespace dtc::standin {

namespace {

/// The stand-in's algorithms, which all do the same; a number that the first word has tells them
/// from what is none.
constexpr int kAlgorithms = 3;
constexpr uint64_t kFirstAlgorithm = 0xA160;

bool isAlgorithm(const cublasLtMatmulAlgo_t &algorithm) {
  return algorithm.data[0] >= kFirstAlgorithm && algorithm.data[0] < kFirstAlgorithm + kAlgorithms;
}

/// The workspace of a product where there is room: so that callers give one that may be
/// overwritten.
constexpr size_t kWorkspaceBytes = 1024;

cublasStatus_t statusOf(cudaError_t error) {
  switch (error) {
  case cudaSuccess:
    return CUBLAS_STATUS_SUCCESS;
  case cudaErrorMemoryAllocation:
    return CUBLAS_STATUS_ALLOC_FAILED;
  case cudaErrorNoDevice:
    return CUBLAS_STATUS_NOT_INITIALIZED;
  case cudaErrorInvalidValue:
  case cudaErrorInvalidResourceHandle:
    return CUBLAS_STATUS_INVALID_VALUE;
  default:
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

/// Sets a field of its own size.
template <typename T> cublasStatus_t setField(T &field, const void *value, size_t bytes) {
  if (!value || bytes != sizeof(T))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(static_cast<void *>(&field), value, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

/// For an attribute that can have one value alone.
cublasStatus_t expect(int32_t only, const void *value, size_t bytes) {
  int32_t given = 0;
  if (cublasStatus_t status = setField(given, value, bytes))
    return status;
  return given == only ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cudaError_t checkOperand(Engine &engine, const std::string &name, const char *which,
                         const void *data, size_t bytes, int device) {
  const Allocation *found = engine.memory.find(data);
  auto *first = static_cast<const std::byte *>(data);
  if (found && !found->freed && found->device == device && first >= found->data &&
      first + bytes <= found->data + found->bytes)
    return cudaSuccess;
  return violation(engine, fmt::format("{}: {} is {} bytes from {}; expected memory of device {}",
                                       name, which, bytes,
                                       engine.memory.describe(data).value_or("what is not CUDA's"),
                                       device));
}

bool overlap(const Matrix &x, const Matrix &y) {
  return x.data < y.data + y.bytes() && y.data < x.data + x.bytes();
}

cudaError_t checkOperands(Engine &engine, const std::string &name, const Product &product,
                          void *workspace, size_t workspaceBytes, int device) {
  std::vector<std::tuple<const char *, const void *, size_t>> operands = {
      {"A", product.a.data, product.a.bytes()},
      {"B", product.b.data, product.b.bytes()},
      {"D", product.d.data, product.d.bytes()}};
  if (product.beta != 0)
    operands.emplace_back("C", product.c.data, product.c.bytes());
  for (auto [which, scale] : {std::pair("the scale of A", product.desc.scaleA),
                              std::pair("the scale of B", product.desc.scaleB)})
    if (scale)
      operands.emplace_back(which, scale, sizeof(float));
  if (workspaceBytes)
    operands.emplace_back("the workspace", workspace, workspaceBytes);
  std::vector<std::pair<Matrix, const char *>> written = {{product.d, "D"}};
  if (product.desc.readsBias() || product.desc.writesBias()) {
    operands.emplace_back("the bias", product.bias().data, product.bias().bytes());
    if (product.desc.writesBias())
      written.emplace_back(product.bias(), "the bias");
  }
  if (product.desc.hasAux()) {
    operands.emplace_back("the aux matrix", product.aux().data, product.aux().bytes());
    if (!product.desc.readsAux())
      written.emplace_back(product.aux(), "the aux matrix");
    else if (overlap(product.d, product.aux()))
      return violation(engine, name + ": D overlaps the aux matrix");
  }
  for (auto [which, data, bytes] : operands)
    if (cudaError_t error = checkOperand(engine, name, which, data, bytes, device))
      return error;
  for (size_t i = 0; i < written.size(); ++i) {
    auto [matrix, what] = written[i];
    if (overlap(matrix, product.a) || overlap(matrix, product.b))
      return violation(engine, fmt::format("{}: {} overlaps A or B", name, what));
    for (size_t j = 0; j < i; ++j)
      if (overlap(matrix, written[j].first))
        return violation(engine, fmt::format("{}: {} overlaps {}", name, what, written[j].second));
  }
  bool isInPlace = product.c.data == product.d.data &&
                   product.c.columnStride() == product.d.columnStride() &&
                   product.c.rowStride() == product.d.rowStride();
  if (product.beta != 0 && !isInPlace && overlap(product.c, product.d))
    return violation(engine, name + ": D overlaps C, and is not C");
  return cudaSuccess;
}

bool areEpilogues(Epilogues state) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  return engine.settings.epilogues == state;
}

/// The same for products that one kernel computes.
uint64_t numberOf(const Product &product) {
  return std::hash<std::string>()(fmt::format("{} {} {} {} {} {} {}", product.m(), product.n(),
                                              product.k(), static_cast<int>(product.desc.compute),
                                              product.desc.transA, product.desc.transB,
                                              static_cast<int>(product.desc.epilogue)));
}

cudaError_t enqueueProduct(Engine &engine, const std::shared_ptr<Stream> &stream,
                           const Product &product, void *workspace, size_t workspaceBytes) {
  auto describe = [m = product.m(), n = product.n(), k = product.k(), number = stream->number] {
    return fmt::format("cublasLtMatmul of {}x{}x{} on stream {}", m, n, k, number);
  };
  if (cudaError_t error =
          checkOperands(engine, describe(), product, workspace, workspaceBytes, stream->device))
    return error;
  if (cudaError_t error =
          loadAtFirstUse(engine, "the first " + describe(), stream->device, numberOf(product)))
    return error;
  engine.enqueue(stream, {Operation::Kind::Work, describe,
                          [=, counts = engine.settings.countsAlone]() -> std::optional<Failure> {
                            if (counts)
                              return std::nullopt;
                            if (workspaceBytes)
                              std::memset(workspace, 0xFF, workspaceBytes);
                            multiply(product);
                            return std::nullopt;
                          },
                          nullptr});
  engine.countLaunch(nullptr);
  return cudaSuccess;
}

} // namespace

} // namespace dtc::standin

using namespace dtc::standin;

extern "C" {

size_t cublasLtGetVersion() { return CUBLAS_VER_MAJOR * 10000; }

const char *cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case CUBLAS_STATUS_ALLOC_FAILED:
    return "CUBLAS_STATUS_ALLOC_FAILED";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_ARCH_MISMATCH:
    return "CUBLAS_STATUS_ARCH_MISMATCH";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case CUBLAS_STATUS_INTERNAL_ERROR:
    return "CUBLAS_STATUS_INTERNAL_ERROR";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "unknown status";
}

const char *cublasLtGetStatusString(cublasStatus_t status) { return cublasLtGetStatusName(status); }

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  return statusOf(call("cublasLtCreate", [&](Engine &engine, Lock &) {
    if (cudaError_t error = checkNotCapturing(engine))
      return error;
    if (cudaError_t error = mayWaitForDevice(engine, "cublasLtCreate", currentDevice()))
      return error;
    *handle = new cublasLtContext{currentDevice()};
    return cudaSuccess;
  }));
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return statusOf(call("cublasLtDestroy", [&](Engine &engine, Lock &lock) {
    cudaError_t error = waitForDevice(engine, lock, "cublasLtDestroy", handle->device);
    delete handle;
    return error;
  }));
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *desc = new cublasLtMatmulDescOpaque_t{compute, scale};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes) {
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
    return setField(desc->compute, value, bytes);
  case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
    return setField(desc->scale, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return setField(desc->transA, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return setField(desc->transB, value, bytes);
  case CUBLASLT_MATMUL_DESC_POINTER_MODE:
    return expect(CUBLASLT_POINTER_MODE_HOST, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return setField(desc->epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return setField(desc->bias, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    return setField(desc->aux, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    return setField(desc->auxLeading, value, bytes);
  case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    return setField(desc->scaleA, value, bytes);
  case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
    return setField(desc->scaleB, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading) {
  *layout = new cublasLtMatrixLayoutOpaque_t{type, rows, columns, leading};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes) {
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_TYPE:
    return setField(layout->type, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_ORDER:
    return setField(layout->order, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_ROWS:
    return setField(layout->rows, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_COLS:
    return setField(layout->columns, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_LD:
    return setField(layout->leading, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return setField(layout->batches, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return setField(layout->batchStride, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes) {
  uint32_t ignored = 0;
  // Every alignment and every scheme will do.
  return attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
             ? setField(preference->workspaceBytes, value, bytes)
             : setField(ignored, value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int *returned) {
  *returned = 0;
  if (requested < 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  cudaError_t error =
      call("cublasLtMatmulAlgoGetHeuristic", [](Engine &, Lock &) { return cudaSuccess; });
  if (cublasStatus_t status = statusOf(error))
    return status;
  if (cublasStatus_t status = check(*desc, *a, *b, *c, *d))
    return status;
  if (desc->epilogue != CUBLASLT_EPILOGUE_DEFAULT && areEpilogues(Epilogues::WithoutAlgorithm))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  for (; *returned < std::min(requested, kAlgorithms); ++*returned) {
    cublasLtMatmulHeuristicResult_t &next = results[*returned];
    next = {};
    next.algo.data[0] = kFirstAlgorithm + static_cast<uint64_t>(*returned);
    next.workspaceSize = std::min<size_t>(kWorkspaceBytes, preference->workspaceBytes);
    next.wavesCount = 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algorithm,
                                       cublasLtMatmulHeuristicResult_t *result) {
  *result = {};
  result->algo = *algorithm;
  if (!isAlgorithm(*algorithm))
    return CUBLAS_STATUS_INVALID_VALUE;
  return check(*desc, *a, *b, *c, *d);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t aLayout, const void *b,
                              cublasLtMatrixLayout_t bLayout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t cLayout, void *d,
                              cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t *algorithm,
                              void *workspace, size_t workspaceBytes, cudaStream_t streamHandle) {
  if (algorithm && !isAlgorithm(*algorithm))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (cublasStatus_t status = check(*desc, *aLayout, *bLayout, *cLayout, *dLayout))
    return status;
  if (desc->epilogue != CUBLASLT_EPILOGUE_DEFAULT && areEpilogues(Epilogues::Refused))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  auto is16Aligned = [](const void *data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; };
  if (has8Bits(*aLayout) && !(is16Aligned(a) && is16Aligned(b) && is16Aligned(d)))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  auto scalar = [&](const void *from) {
    return desc->scale == CUDA_R_64F ? *static_cast<const double *>(from)
                                     : *static_cast<const float *>(from);
  };
  auto matrix = [](const void *data, cublasLtMatrixLayout_t layout) {
    return Matrix{static_cast<std::byte *>(const_cast<void *>(data)), *layout};
  };
  Product product{
      *desc,         matrix(a, aLayout), matrix(b, bLayout), matrix(c, cLayout), matrix(d, dLayout),
      scalar(alpha), scalar(beta)};
  return statusOf(call("cublasLtMatmul", [&](Engine &engine, Lock &lock) {
    std::shared_ptr<Stream> stream;
    if (cudaError_t error = findStream(engine, streamHandle, "cublasLtMatmul", stream))
      return error;
    if (stream->device != handle->device)
      return violation(engine,
                       fmt::format("cublasLtMatmul with a handle of device {} on a stream of "
                                   "device {}",
                                   handle->device, stream->device));
    cudaError_t error = enqueueProduct(engine, stream, product, workspace, workspaceBytes);
    waitForPlace(engine, lock, stream);
    return error;
  }));
}

} // extern "C"
