//===- MatrixProduct.h - Products of matrices ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_MATRIXPRODUCT_H
#define DTC_TEST_STANDIN_CUDA_MATRIXPRODUCT_H

#include <cstddef>
#include <cstdint>
#include <cublasLt.h>

// The objects hold what the functions set, and nothing else.

struct cublasLtContext {
  int device;
};

struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t transA = CUBLAS_OP_N, transB = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr, *aux = nullptr;
  int64_t auxLeading = 0;
  const float *scaleA = nullptr, *scaleB = nullptr; // of operands of 8 bits, on the device

  /// A vector of the rows of D, or of the gradients of one.
  bool readsBias() const { return epilogue & CUBLASLT_EPILOGUE_BIAS; }
  bool writesBias() const {
    return epilogue & (CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB);
  }
  bool hasAux() const { return epilogue & 128; }
  bool readsAux() const { return epilogue == CUBLASLT_EPILOGUE_DGELU; }
  bool isGelu() const { return epilogue & CUBLASLT_EPILOGUE_GELU; }
};

struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t order = CUBLASLT_ORDER_COL, batches = 1;
  int64_t batchStride = 0;
};

struct cublasLtMatmulPreferenceOpaque_t {
  uint64_t workspaceBytes = 0;
};

namespace dtc::standin {

using Layout = cublasLtMatrixLayoutOpaque_t;

inline bool has8Bits(const Layout &layout) {
  return layout.type == CUDA_R_8F_E4M3 || layout.type == CUDA_R_8F_E5M2;
}

inline size_t bytesOf(cudaDataType_t type) {
  switch (type) {
  case CUDA_R_64F:
    return 8;
  case CUDA_R_32F:
    return 4;
  case CUDA_R_8F_E4M3:
  case CUDA_R_8F_E5M2:
    return 1;
  default:
    return 2;
  }
}

/// A matrix and the distance between its elements, in elements.
struct Matrix {
  std::byte *data;
  Layout layout;

  int64_t rowStride() const { return layout.order == CUBLASLT_ORDER_ROW ? layout.leading : 1; }
  int64_t columnStride() const { return layout.order == CUBLASLT_ORDER_ROW ? 1 : layout.leading; }
  /// Of all batches.
  size_t bytes() const {
    if (!layout.rows || !layout.columns)
      return 0;
    size_t elements = (layout.rows - 1) * rowStride() + (layout.columns - 1) * columnStride() +
                      (layout.batches - 1) * layout.batchStride + 1;
    return elements * bytesOf(layout.type);
  }

  double at(int64_t batch, uint64_t row, uint64_t column) const;
  void set(int64_t batch, uint64_t row, uint64_t column, double value) const;

private:
  std::byte *element(int64_t batch, uint64_t row, uint64_t column) const {
    return data + bytesOf(layout.type) *
                      (batch * layout.batchStride + row * rowStride() + column * columnStride());
  }
};

struct Product {
  cublasLtMatmulDescOpaque_t desc;
  Matrix a, b, c, d;
  double alpha = 1, beta = 0;

  uint64_t m() const { return d.layout.rows; }
  uint64_t n() const { return d.layout.columns; }
  uint64_t k() const { return desc.transA ? a.layout.rows : a.layout.columns; }
  /// The bias, or its gradient, of the type of D, as a matrix with one column.
  Matrix bias() const;
  /// The operand of the GELU, of the type of D.
  Matrix aux() const;
};

/// Whether shapes and types go together; the types are those of cuBLASLt's table of A, B, C and D.
cublasStatus_t check(const cublasLtMatmulDescOpaque_t &desc, const Layout &a, const Layout &b,
                     const Layout &c, const Layout &d);

/// Computes D, by sums in the type of the computation, in the order of k.
void multiply(const Product &product);

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_MATRIXPRODUCT_H
