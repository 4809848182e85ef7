//===- Matmul.h - Batched matrix products by cuBLASLt ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_MATMUL_H
#define DTC_RUNTIME_BACKENDS_CUDA_MATMUL_H

#include "calls/fusion/MatmulEpilogue.h"
#include "runtime/backends/cuda/CublasLt.h"
#include "support/Tensor.h"

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dtc::runtime::cuda {

class CudaQueue;

/// `count` products whose matrices lie these numbers of elements apart.
struct MatmulBatch {
  int64_t count = 1;
  int64_t a = 0, b = 0, c = 0;
};

/// The element types of a and b, and of all else. a and b have one type, or types of 8 bits. c has
/// theirs, or f32 where they have 16 bits, or bf16 or f32 where they have 8.
struct MatmulTypes {
  DType a, b, out;
};

/// The memory of a product.
struct MatmulOperands {
  const void *a = nullptr, *b = nullptr;
  void *c = nullptr;
  const void *added = nullptr; // lies as c, and may be c; null: nothing is added
  const void *bias = nullptr;
  void *geluInput = nullptr; // lies as c
  void *biasGrad = nullptr;
  /// Of matrices of 8 bits, the f32 numbers on the device that their elements are multiplied by.
  const void *scaleA = nullptr, *scaleB = nullptr;
  void *workspace = nullptr; // aligned to 256 bytes
};

/// c = a b for a shape, or c = added + a b, with an epilogue. Elements of f64 are computed in f64,
/// all others in f32; a device may round operands of f32 to TF32 (CudaOptions). The algorithm is
/// chosen once for each GPU and alignment of operands, so that results repeat bit by bit: what
/// cuBLASLt proposes first, or the fastest of its proposals (CudaOptions).
class Matmul {
public:
  static Expected<std::unique_ptr<Matmul>> create(const GemmShape &shape, const MatmulBatch &batch,
                                                  const MatmulTypes &types,
                                                  const MatmulEpilogue &epilogue = {});
  ~Matmul();

  size_t workspaceBytes() const { return workspace; }
  /// False where cuBLASLt has no algorithm with this epilogue: then nothing was enqueued.
  Expected<bool> enqueue(CudaQueue &queue, const MatmulOperands &operands) const;

private:
  explicit Matmul(const CublasLt &library) : library(library) {}
  MaybeError describe(const GemmShape &shape, const MatmulBatch &batch, const MatmulTypes &types);
  MaybeError check(cublasStatus_t status, const char *what) const;
  /// The matrices in cuBLASLt's order.
  struct Call {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t operation;
    const void *first, *second, *added;
    void *result, *workspace;
  };
  using Alignments = std::array<uint32_t, 3>;
  using MaybeAlgorithm = std::optional<cublasLtMatmulAlgo_t>;
  /// A GPU and the alignments of the three matrices in bytes.
  using Key = std::pair<int, Alignments>;

  /// Without addresses no operands are needed.
  MaybeError describeOperation(cublasLtMatmulDesc_t &description, const MatmulOperands &operands,
                               bool usesTf32) const;
  /// Whether the description of the product has addresses.
  bool hasAddresses() const { return !epilogue.empty() || has8Bits; }
  cublasLtEpilogue_t cublasEpilogue() const;
  bool usesTf32(const CudaQueue &queue) const;

  // None: cuBLASLt has no algorithm with the epilogue.
  Expected<MaybeAlgorithm> algorithmFor(CudaQueue &queue, const Call &call) const;
  Expected<MaybeAlgorithm> chooseAlgorithm(CudaQueue &queue, const Call &call,
                                           const Alignments &alignments) const;
  /// The algorithms that cuBLASLt proposes, at most `count`.
  Expected<std::vector<cublasLtMatmulAlgo_t>>
  askForAlgorithms(const Call &call, const Alignments &alignments, int count) const;
  /// None if all fail.
  Expected<MaybeAlgorithm> findFastest(CudaQueue &queue, const Call &call,
                                       const std::vector<cublasLtMatmulAlgo_t> &algorithms) const;
  bool isUsable(const Call &call, const cublasLtMatmulAlgo_t &algorithm) const;
  cublasStatus_t multiply(CudaQueue &queue, const Call &call,
                          const cublasLtMatmulAlgo_t &algorithm) const;
  /// Whether a status says that cuBLASLt has no algorithm with the epilogue.
  bool isRefusal(cublasStatus_t status) const;
  Key keyOf(const CudaQueue &queue, const Call &call) const;
  Expected<bool> enqueueWith(cublasLtMatmulDesc_t description, CudaQueue &queue,
                             const MatmulOperands &operands) const;

  const CublasLt &library;
  MatmulEpilogue epilogue;
  /// The operations of products without addresses; that in TF32 is only
  /// for f32.
  cublasLtMatmulDesc_t operation = nullptr, tf32Operation = nullptr;
  /// cuBLASLt's matrices are column-major. A result that is row-major is computed as its transpose,
  /// from the operands in reverse order.
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  bool reversed = false, isDouble = false, isSingle = false, has16Bits = false, has8Bits = false;
  int32_t operationA = CUBLAS_OP_N, operationB = CUBLAS_OP_N;
  int64_t resultStep = 0; // between rows of c
  size_t workspace = 0;
  std::string shapeText; // for messages
  std::string orderText; // the memory orders of the matrices, in the keys of algorithms

  mutable std::mutex mutex;
  mutable std::map<Key, MaybeAlgorithm> algorithms;
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_MATMUL_H
