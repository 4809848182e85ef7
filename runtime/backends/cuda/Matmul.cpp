//===- Matmul.cpp - Batched matrix products by cuBLASLt -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/Matmul.h"

#include "runtime/backends/cuda/AlgorithmCache.h"
#include "runtime/backends/cuda/CudaDevice.h"
#include "runtime/backends/cuda/Stopwatch.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtc::runtime::cuda {

namespace {

cudaDataType_t typeOf(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return CUDA_R_64F;
  case DType::BF16:
    return CUDA_R_16BF;
  case DType::F16:
    return CUDA_R_16F;
  case DType::F8E4M3:
    return CUDA_R_8F_E4M3;
  case DType::F8E5M2:
    return CUDA_R_8F_E5M2;
  default:
    return CUDA_R_32F;
  }
}

/// The largest power of two, up to 256, that divides an address.
uint32_t alignmentOf(const void *pointer) {
  auto address = reinterpret_cast<uintptr_t>(pointer) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

/// A larger workspace than the split sums of a result take is of no use; NVIDIA recommends 32 MiB
/// for the largest products.
size_t workspaceFor(int64_t results) {
  constexpr size_t largest = size_t{32} << 20;
  size_t wanted = static_cast<size_t>(std::min<int64_t>(results, int64_t{largest})) * 64;
  return std::min(largest, (wanted + 255) / 256 * 256);
}

} // namespace

MaybeError Matmul::check(cublasStatus_t status, const char *what) const {
  if (status == CUBLAS_STATUS_SUCCESS)
    return std::nullopt;
  return Error{fmt::format("cuBLASLt cannot {} of {}: {}", what, shapeText,
                           library.getStatusString(status))};
}

Expected<std::unique_ptr<Matmul>> Matmul::create(const GemmShape &shape, const MatmulBatch &batch,
                                                 const MatmulTypes &types,
                                                 const MatmulEpilogue &epilogue) {
  Expected<const CublasLt *> library = loadCublasLt();
  if (!library)
    return library.error();
  std::unique_ptr<Matmul> matmul(new Matmul(**library));
  matmul->epilogue = epilogue;
  if (MaybeError error = matmul->describe(shape, batch, types))
    return *error;
  return matmul;
}

MaybeError Matmul::describe(const GemmShape &shape, const MatmulBatch &batch,
                            const MatmulTypes &types) {
  auto [in, inOfB, out] = types;
  shapeText = fmt::format(
      "{} products of {}x{}x{} ({}{} to {})", batch.count, shape.m, shape.n, shape.k, dtc::name(in),
      in == inOfB ? "" : fmt::format(" and {}", dtc::name(inOfB)), dtc::name(out));
  static constexpr const char *gelus[] = {"", ", GELU", ", GELU of what is kept",
                                          ", gradient of GELU"};
  static constexpr const char *sums[] = {"", ", sums of the left operand",
                                         ", sums of the right operand"};
  shapeText += fmt::format("{}{}{}", epilogue.addsBias ? ", bias" : "",
                           gelus[static_cast<size_t>(epilogue.gelu)],
                           sums[static_cast<size_t>(epilogue.biasGrad)]);
  isDouble = in == DType::F64;
  isSingle = in == DType::F32;
  has16Bits = byteWidth(out) == 2;
  has8Bits = isFloat8(in);
  workspace = workspaceFor(batch.count * shape.m * shape.n);
  MatrixOrder a(shape.a, shape.m, shape.k), b(shape.b, shape.k, shape.n),
      c(shape.c, shape.m, shape.n);
  reversed = !c.columnMajor;
  resultStep = c.step;
  int64_t m = shape.m, n = shape.n, batchA = batch.a, batchB = batch.b;
  if (reversed) {
    std::swap(a, b);
    std::swap(m, n);
    std::swap(batchA, batchB);
    std::swap(in, inOfB);
  }
  // `layout` holds op(matrix) of rows x columns, as it lies or transposed.
  auto make = [&](cublasLtMatrixLayout_t &layout, DType dtype, int64_t rows, int64_t columns,
                  int64_t step, int64_t distance) -> MaybeError {
    auto count = static_cast<int32_t>(batch.count);
    cublasStatus_t status = library.matrixLayoutCreate(
        &layout, typeOf(dtype), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), step);
    if (status == CUBLAS_STATUS_SUCCESS)
      status = library.matrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                sizeof(count));
    if (status == CUBLAS_STATUS_SUCCESS)
      status = library.matrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &distance, sizeof(distance));
    return check(status, "describe a matrix");
  };
  bool plainA = a.columnMajor == c.columnMajor, plainB = b.columnMajor == c.columnMajor;
  operationA = plainA ? CUBLAS_OP_N : CUBLAS_OP_T;
  operationB = plainB ? CUBLAS_OP_N : CUBLAS_OP_T;
  orderText = fmt::format("{}{} {} {} {} + {} {} {}", plainA ? 'N' : 'T', plainB ? 'N' : 'T',
                          a.step, b.step, c.step, batchA, batchB, batch.c);
  if (MaybeError error =
          make(first, in, plainA ? m : shape.k, plainA ? shape.k : m, a.step, batchA))
    return error;
  if (MaybeError error =
          make(second, inOfB, plainB ? shape.k : n, plainB ? n : shape.k, b.step, batchB))
    return error;
  if (MaybeError error = make(result, out, m, n, c.step, batch.c))
    return error;
  if (hasAddresses())
    return std::nullopt;
  if (MaybeError error = describeOperation(operation, {}, /*usesTf32=*/false))
    return error;
  return isSingle ? describeOperation(tf32Operation, {}, /*usesTf32=*/true) : std::nullopt;
}

cublasLtEpilogue_t Matmul::cublasEpilogue() const {
  using Gelu = MatmulEpilogue::Gelu;
  bool addsBias = epilogue.addsBias;
  switch (epilogue.gelu) {
  case Gelu::Value:
    return addsBias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  case Gelu::ValueKept:
    return addsBias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  case Gelu::Gradient:
    return CUBLASLT_EPILOGUE_DGELU;
  case Gelu::None:
    break;
  }
  if (epilogue.biasGrad != MatmulEpilogue::BiasGrad::None)
    return (epilogue.biasGrad == MatmulEpilogue::BiasGrad::OfA) != reversed
               ? CUBLASLT_EPILOGUE_BGRADA
               : CUBLASLT_EPILOGUE_BGRADB;
  return addsBias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

bool Matmul::usesTf32(const CudaQueue &queue) const {
  return isSingle && queue.owner().roundsToTf32();
}

MaybeError Matmul::describeOperation(cublasLtMatmulDesc_t &description,
                                     const MatmulOperands &operands, bool usesTf32) const {
  cublasComputeType_t compute = isDouble   ? CUBLAS_COMPUTE_64F
                                : usesTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                           : CUBLAS_COMPUTE_32F;
  cublasStatus_t status =
      library.matmulDescCreate(&description, compute, isDouble ? CUDA_R_64F : CUDA_R_32F);
  auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto &value) {
    if (status == CUBLAS_STATUS_SUCCESS)
      status = library.matmulDescSetAttribute(description, attribute,
                                              static_cast<const void *>(&value), sizeof(value));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, operationA);
  set(CUBLASLT_MATMUL_DESC_TRANSB, operationB);
  if (!epilogue.empty())
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(cublasEpilogue()));
  if (epilogue.addsBias)
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  if (epilogue.biasGrad != MatmulEpilogue::BiasGrad::None)
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.biasGrad);
  if (operands.geluInput) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.geluInput);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, resultStep);
  }
  if (has8Bits) {
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, reversed ? operands.scaleB : operands.scaleA);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, reversed ? operands.scaleA : operands.scaleB);
  }
  return check(status, "describe the product");
}

Matmul::~Matmul() {
  for (cublasLtMatrixLayout_t layout : {first, second, result})
    if (layout)
      (void)library.matrixLayoutDestroy(layout);
  for (cublasLtMatmulDesc_t each : {operation, tf32Operation})
    if (each)
      (void)library.matmulDescDestroy(each);
}

//===----------------------------------------------------------------------===//
// Algorithms
//===----------------------------------------------------------------------===//

Expected<std::vector<cublasLtMatmulAlgo_t>>
Matmul::askForAlgorithms(const Call &call, const Alignments &alignments, int count) const {
  cublasLtMatmulPreference_t preference = nullptr;
  if (MaybeError error = check(library.matmulPreferenceCreate(&preference), "take the preferences"))
    return *error;
  uint64_t bytes = workspace;
  cublasStatus_t status = library.matmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes));
  // Partial sums are added in f32, also where the result has 16 bits: no scheme that keeps them in
  // the type of the result.
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (has16Bits && status == CUBLAS_STATUS_SUCCESS)
    status = library.matmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof(reductions));
  constexpr std::array<cublasLtMatmulPreferenceAttributes_t, 4> attributes = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (size_t i = 0; i < attributes.size() && status == CUBLAS_STATUS_SUCCESS; ++i)
    status = library.matmulPreferenceSetAttribute(
        preference, attributes[i], &alignments[std::min<size_t>(i, 2)], sizeof(uint32_t));
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(count));
  if (status == CUBLAS_STATUS_SUCCESS)
    status = library.matmulAlgoGetHeuristic(call.handle, call.operation, first, second, result,
                                            result, preference, count, found.data(), &count);
  (void)library.matmulPreferenceDestroy(preference);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i)
    if (const cublasLtMatmulHeuristicResult_t &each = found[static_cast<size_t>(i)];
        each.state == CUBLAS_STATUS_SUCCESS)
      algorithms.push_back(each.algo);
  if (status == CUBLAS_STATUS_SUCCESS && algorithms.empty())
    status = CUBLAS_STATUS_NOT_SUPPORTED;
  if (isRefusal(status))
    return std::vector<cublasLtMatmulAlgo_t>();
  if (MaybeError error = check(status, "find an algorithm for the product"))
    return *error;
  return algorithms;
}

bool Matmul::isRefusal(cublasStatus_t status) const {
  return !epilogue.empty() &&
         (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE);
}

/// Whether cuBLASLt takes the algorithm, which another program may have written.
bool Matmul::isUsable(const Call &call, const cublasLtMatmulAlgo_t &algorithm) const {
  cublasLtMatmulHeuristicResult_t checked = {};
  return library.matmulAlgoCheck(call.handle, call.operation, first, second, result, result,
                                 &algorithm, &checked) == CUBLAS_STATUS_SUCCESS &&
         checked.workspaceSize <= workspace;
}

/// The median of a few runs of each. They write the result over and over.
Expected<Matmul::MaybeAlgorithm>
Matmul::findFastest(CudaQueue &queue, const Call &call,
                    const std::vector<cublasLtMatmulAlgo_t> &algorithms) const {
  constexpr size_t kRuns = 5;
  const cublasLtMatmulAlgo_t *fastest = nullptr;
  float least = 0;
  Expected<std::unique_ptr<Stopwatch>> stopwatch = Stopwatch::create(queue);
  if (!stopwatch)
    return stopwatch.error();
  for (const cublasLtMatmulAlgo_t &algorithm : algorithms) {
    std::array<float, kRuns> times;
    // The first run loads the kernel. Not all that is proposed need run.
    if (multiply(queue, call, algorithm) != CUBLAS_STATUS_SUCCESS)
      continue;
    for (float &time : times)
      if (MaybeError error = (*stopwatch)->measure(time, [&] {
            return check(multiply(queue, call, algorithm), "time the product");
          }))
        return *error;
    std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
    if (!fastest || times[kRuns / 2] < least) {
      fastest = &algorithm;
      least = times[kRuns / 2];
    }
  }
  return fastest ? MaybeAlgorithm(*fastest) : std::nullopt;
}

/// While one is timed, other devices go on: this one's queue may wait for them. Devices of one kind
/// take the choice of the first that has made it, so that they compute the same bits.
Expected<Matmul::MaybeAlgorithm> Matmul::chooseAlgorithm(CudaQueue &queue, const Call &call,
                                                         const Alignments &alignments) const {
  constexpr int kCandidates = 8;
  AlgorithmCache *kept = queue.owner().getAlgorithms();
  std::string key;
  auto toAlgorithm = [](const AlgorithmCache::Algorithm &words) {
    cublasLtMatmulAlgo_t algorithm;
    static_assert(sizeof(algorithm) == sizeof(words));
    std::memcpy(&algorithm, words.data(), sizeof(algorithm));
    return algorithm;
  };
  if (kept) {
    key = fmt::format("{}, cuBLASLt {}, {}{}, {}, aligned to {}", queue.owner().modelName(),
                      library.getVersion(), shapeText, usesTf32(queue) ? " in TF32" : "", orderText,
                      fmt::join(alignments, " "));
    if (std::optional<AlgorithmCache::Algorithm> found = kept->find(key)) {
      cublasLtMatmulAlgo_t algorithm = toAlgorithm(*found);
      if (isUsable(call, algorithm))
        return MaybeAlgorithm(algorithm);
      kept->forget(key);
    }
  }
  Expected<std::vector<cublasLtMatmulAlgo_t>> proposed =
      askForAlgorithms(call, alignments, kept ? kCandidates : 1);
  if (!proposed)
    return proposed.error();
  if (proposed->empty())
    return MaybeAlgorithm();
  // Runs that add would change the result.
  if (!kept || proposed->size() == 1 || queue.isCapturing() || call.added == call.result)
    return MaybeAlgorithm(proposed->front());
  Expected<MaybeAlgorithm> fastest = findFastest(queue, call, *proposed);
  if (!fastest)
    return fastest.error();
  if (!*fastest) // which is said when the first is to run
    return MaybeAlgorithm(proposed->front());
  AlgorithmCache::Algorithm words;
  std::memcpy(words.data(), &**fastest, sizeof(words));
  return MaybeAlgorithm(toAlgorithm(kept->keep(key, words)));
}

Matmul::Key Matmul::keyOf(const CudaQueue &queue, const Call &call) const {
  uint32_t result = alignmentOf(call.result);
  if (call.added)
    result = std::min(result, alignmentOf(call.added));
  return {queue.owner().ordinal(), {alignmentOf(call.first), alignmentOf(call.second), result}};
}

Expected<Matmul::MaybeAlgorithm> Matmul::algorithmFor(CudaQueue &queue, const Call &call) const {
  Key key = keyOf(queue, call);
  {
    std::lock_guard lock(mutex);
    auto known = algorithms.find(key);
    if (known != algorithms.end())
      return known->second;
  }
  Expected<MaybeAlgorithm> algorithm = chooseAlgorithm(queue, call, key.second);
  if (!algorithm)
    return algorithm;
  std::lock_guard lock(mutex);
  return algorithms.emplace(key, *algorithm).first->second;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

cublasStatus_t Matmul::multiply(CudaQueue &queue, const Call &call,
                                const cublasLtMatmulAlgo_t &algorithm) const {
  const float one = 1, factor = call.added ? 1 : 0;
  const double wideOne = 1, wideFactor = factor;
  const void *alpha = isDouble ? static_cast<const void *>(&wideOne) : &one;
  const void *beta = isDouble ? static_cast<const void *>(&wideFactor) : &factor;
  return library.matmul(call.handle, call.operation, alpha, call.first, first, call.second, second,
                        beta, call.added ? call.added : call.result, result, call.result, result,
                        &algorithm, call.workspace, workspace, queue.stream());
}

Expected<bool> Matmul::enqueueWith(cublasLtMatmulDesc_t description, CudaQueue &queue,
                                   const MatmulOperands &operands) const {
  Expected<cublasLtHandle_t> handle = queue.owner().cublasLt();
  if (!handle)
    return handle.error();
  Call call{*handle,
            description,
            reversed ? operands.b : operands.a,
            reversed ? operands.a : operands.b,
            operands.added,
            operands.c,
            operands.workspace};
  Expected<MaybeAlgorithm> algorithm = algorithmFor(queue, call);
  if (!algorithm)
    return algorithm.error();
  if (!*algorithm)
    return false;
  cublasStatus_t status = multiply(queue, call, **algorithm);
  if (isRefusal(status)) {
    std::lock_guard lock(mutex);
    algorithms[keyOf(queue, call)] = std::nullopt;
    return false;
  }
  if (MaybeError error = check(status, "enqueue the product"))
    return *error;
  return true;
}

Expected<bool> Matmul::enqueue(CudaQueue &queue, const MatmulOperands &operands) const {
  if (!hasAddresses())
    return enqueueWith(usesTf32(queue) ? tf32Operation : operation, queue, operands);
  // The addresses are part of the description. cuBLASLt has read it when the call returns.
  cublasLtMatmulDesc_t description = nullptr;
  MaybeError error = describeOperation(description, operands, usesTf32(queue));
  Expected<bool> done = error ? Expected<bool>(*error) : enqueueWith(description, queue, operands);
  if (description)
    (void)library.matmulDescDestroy(description);
  return done;
}

} // namespace dtc::runtime::cuda
