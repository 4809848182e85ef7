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
#include <string>
#include <vector>

namespace dtc::runtime::cuda {

class CudaQueue;

/// `count` products whose matrices lie these numbers of elements apart.
struct MatmulBatch {
  int64_t count = 1;
  int64_t a = 0, b = 0, c = 0;
};

/// c = a b for a shape, or c = c + a b. Elements of f64 are computed in f64, all others in f32
/// (never in TF32). The algorithm is chosen once for each GPU and alignment of operands, so that
/// results repeat bit by bit: what cuBLASLt proposes first, or the fastest of its proposals
/// (CudaOptions).
class Matmul {
public:
  /// a and b have elements of type `in`; c has such, or f32 where `in` has 16 bits.
  static Expected<std::unique_ptr<Matmul>> create(const GemmShape &shape, const MatmulBatch &batch,
                                                  DType in, DType out);
  ~Matmul();

  size_t workspaceBytes() const { return workspace; }
  /// The workspace is aligned to 256 bytes. `adds`: to what c holds.
  MaybeError enqueue(CudaQueue &queue, const void *a, const void *b, void *c, void *workspace,
                     bool adds = false) const;

private:
  explicit Matmul(const CublasLt &library) : library(library) {}
  MaybeError describe(const GemmShape &shape, const MatmulBatch &batch, DType in, DType out);
  MaybeError check(cublasStatus_t status, const char *what) const;
  /// The matrices in cuBLASLt's order.
  struct Call {
    cublasLtHandle_t handle;
    const void *first, *second;
    void *result, *workspace;
    bool adds;
  };
  using Alignments = std::array<uint32_t, 3>;

  Expected<cublasLtMatmulAlgo_t> algorithmFor(CudaQueue &queue, const Call &call) const;
  Expected<cublasLtMatmulAlgo_t> chooseAlgorithm(CudaQueue &queue, const Call &call,
                                                 const Alignments &alignments) const;
  /// What cuBLASLt proposes, at most so many.
  Expected<std::vector<cublasLtMatmulAlgo_t>>
  askForAlgorithms(cublasLtHandle_t handle, const Alignments &alignments, int count) const;
  Expected<cublasLtMatmulAlgo_t>
  findFastest(CudaQueue &queue, const Call &call,
              const std::vector<cublasLtMatmulAlgo_t> &algorithms) const;
  bool isUsable(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t &algorithm) const;
  MaybeError multiply(CudaQueue &queue, const Call &call,
                      const cublasLtMatmulAlgo_t &algorithm) const;

  const CublasLt &library;
  cublasLtMatmulDesc_t operation = nullptr;
  /// cuBLASLt's matrices are column-major. A result that is row-major is computed as its transpose,
  /// from the operands in reverse order.
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  bool reversed = false, isDouble = false;
  size_t workspace = 0;
  std::string shapeText;  // for messages
  std::string layoutText; // how the matrices lie, in the keys of algorithms

  /// A GPU and the alignments of the three matrices in bytes.
  using Key = std::pair<int, Alignments>;
  mutable std::mutex mutex;
  mutable std::map<Key, cublasLtMatmulAlgo_t> algorithms;
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_MATMUL_H
