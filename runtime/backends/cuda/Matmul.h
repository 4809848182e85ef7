//===- Matmul.h - Batched matrix products by cuBLASLt ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_MATMUL_H
#define DTC_RUNTIME_BACKENDS_CUDA_MATMUL_H

#include "runtime/backends/cuda/CublasLt.h"
#include "runtime/backends/shared/GemmShape.h"
#include "support/Tensor.h"

#include <array>
#include <map>
#include <memory>
#include <mutex>

namespace dtc::runtime::cuda {

class CudaQueue;

/// `count` products whose matrices lie these numbers of elements apart.
struct MatmulBatch {
  int64_t count = 1;
  int64_t a = 0, b = 0, c = 0;
};

/// c = a b for a shape. Elements of f64 are computed in f64, all others in f32 (never in TF32). The
/// algorithm is what cuBLASLt proposes first, asked once for each GPU and alignment of operands, so
/// that results repeat bit by bit.
class Matmul {
public:
  /// a and b have elements of type `in`; c has such, or f32 where `in` has 16 bits.
  static Expected<std::unique_ptr<Matmul>> create(const GemmShape &shape, const MatmulBatch &batch,
                                                  DType in, DType out);
  ~Matmul();

  size_t workspaceBytes() const { return workspace; }
  /// The workspace is aligned to 256 bytes.
  MaybeError enqueue(CudaQueue &queue, const void *a, const void *b, void *c,
                     void *workspace) const;

private:
  explicit Matmul(const CublasLt &library) : library(library) {}
  MaybeError describe(const GemmShape &shape, const MatmulBatch &batch, DType in, DType out);
  MaybeError check(cublasStatus_t status, const char *what) const;
  Expected<cublasLtMatmulAlgo_t> algorithmFor(CudaQueue &queue, const void *first,
                                              const void *second, const void *result) const;
  Expected<cublasLtMatmulAlgo_t> askForAlgorithm(cublasLtHandle_t handle,
                                                 const std::array<uint32_t, 3> &alignments) const;

  const CublasLt &library;
  cublasLtMatmulDesc_t operation = nullptr;
  /// cuBLASLt's matrices are column-major. A result that is row-major is computed as its transpose,
  /// from the operands in reverse order.
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  bool reversed = false, isDouble = false;
  size_t workspace = 0;
  std::string shapeText; // for messages

  /// A GPU and the alignments of the three matrices in bytes.
  using Key = std::pair<int, std::array<uint32_t, 3>>;
  mutable std::mutex mutex;
  mutable std::map<Key, cublasLtMatmulAlgo_t> algorithms;
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_MATMUL_H
