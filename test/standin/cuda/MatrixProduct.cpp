//===- MatrixProduct.cpp - Products of matrices --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/MatrixProduct.h"

#include "support/Float8.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace dtc::standin {

namespace {

template <typename T> T load(const std::byte *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <typename T> void store(std::byte *to, T value) { std::memcpy(to, &value, sizeof(T)); }

/// The GELU, approximated by tanh, and its derivative.
double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double geluSlope(double x) {
  double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

/// The epilogue of the element (row, column) of the result on its way to memory.
template <typename Sum>
Sum applyEpilogue(const Product &product, uint64_t row, uint64_t column, Sum value) {
  const cublasLtMatmulDescOpaque_t &desc = product.desc;
  if (desc.readsBias())
    value += static_cast<Sum>(product.bias().at(0, row, 0));
  if (desc.readsAux())
    return value * static_cast<Sum>(geluSlope(product.aux().at(0, row, column)));
  if (!desc.isGelu())
    return value;
  if (desc.hasAux())
    product.aux().set(0, row, column, value);
  return static_cast<Sum>(gelu(value));
}

/// The sums of the rows of op(A), or of the columns of op(B).
template <typename Sum> void sumOperand(const Product &product) {
  const cublasLtMatmulDescOpaque_t &desc = product.desc;
  bool ofA = desc.epilogue == CUBLASLT_EPILOGUE_BGRADA;
  for (uint64_t i = 0; i < (ofA ? product.m() : product.n()); ++i) {
    Sum sum = 0;
    for (uint64_t k = 0; k < product.k(); ++k)
      sum += static_cast<Sum>(ofA ? desc.transA ? product.a.at(0, k, i) : product.a.at(0, i, k)
                              : desc.transB ? product.b.at(0, i, k)
                                            : product.b.at(0, k, i));
    product.bias().set(0, i, 0, sum);
  }
}

/// Rounded to the 10 bits of TF32's mantissa, to the nearest, ties to even.
float roundToTf32(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if (std::isfinite(value))
    bits = (bits + 0xFFF + ((bits >> 13) & 1)) & ~uint32_t{0x1FFF};
  return std::bit_cast<float>(bits);
}

template <typename Sum> void multiplyIn(const Product &product) {
  auto operand = [&](double value) {
    return product.desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32
               ? static_cast<Sum>(roundToTf32(static_cast<float>(value)))
               : static_cast<Sum>(value);
  };
  if (product.desc.writesBias())
    sumOperand<Sum>(product);

  uint64_t m = product.m(), n = product.n(), k = product.k();
  std::vector<Sum> right(k * n), sums(n);
  for (int64_t batch = 0; batch < product.d.layout.batches; ++batch) {
    for (uint64_t i = 0; i < k; ++i)
      for (uint64_t j = 0; j < n; ++j)
        right[i * n + j] =
            operand(product.desc.transB ? product.b.at(batch, j, i) : product.b.at(batch, i, j));
    for (uint64_t row = 0; row < m; ++row) {
      std::fill(sums.begin(), sums.end(), Sum(0));
      for (uint64_t i = 0; i < k; ++i) {
        Sum left = operand(product.desc.transA ? product.a.at(batch, i, row)
                                               : product.a.at(batch, row, i));
        for (uint64_t j = 0; j < n; ++j)
          sums[j] += left * right[i * n + j];
      }
      for (uint64_t j = 0; j < n; ++j) {
        Sum value = static_cast<Sum>(product.alpha) * sums[j];
        for (const float *scale : {product.desc.scaleA, product.desc.scaleB})
          if (scale)
            value *= static_cast<Sum>(*scale);
        // C is not read, and may be a NaN, where beta is 0.
        if (product.beta != 0)
          value += static_cast<Sum>(product.beta) * static_cast<Sum>(product.c.at(batch, row, j));
        product.d.set(batch, row, j, applyEpilogue(product, row, j, value));
      }
    }
  }
}

} // namespace

Matrix Product::bias() const {
  uint64_t size = desc.epilogue == CUBLASLT_EPILOGUE_BGRADB ? n() : m();
  return {static_cast<std::byte *>(desc.bias),
          {d.layout.type, size, 1, static_cast<int64_t>(size)}};
}
Matrix Product::aux() const {
  return {static_cast<std::byte *>(desc.aux), {d.layout.type, m(), n(), desc.auxLeading}};
}

double Matrix::at(int64_t batch, uint64_t row, uint64_t column) const {
  const std::byte *from = element(batch, row, column);
  switch (layout.type) {
  case CUDA_R_64F:
    return load<double>(from);
  case CUDA_R_32F:
    return load<float>(from);
  case CUDA_R_16F:
    return load<Float16>(from);
  case CUDA_R_16BF:
    return load<BFloat16>(from);
  case CUDA_R_8F_E4M3:
    return load<Float8E4M3>(from);
  case CUDA_R_8F_E5M2:
    return load<Float8E5M2>(from);
  }
  return 0;
}
void Matrix::set(int64_t batch, uint64_t row, uint64_t column, double value) const {
  std::byte *to = element(batch, row, column);
  switch (layout.type) {
  case CUDA_R_64F:
    return store(to, value);
  case CUDA_R_32F:
    return store(to, static_cast<float>(value));
  case CUDA_R_16F:
    return store(to, Float16(value));
  case CUDA_R_16BF:
    return store(to, BFloat16(value));
  case CUDA_R_8F_E4M3:
    return store(to, Float8E4M3(value));
  case CUDA_R_8F_E5M2:
    return store(to, Float8E5M2(value));
  }
}

/// Of one product, in f32, with an aux matrix of whole vectors.
static cublasStatus_t checkEpilogue(const cublasLtMatmulDescOpaque_t &desc, const Layout &d) {
  if (desc.epilogue == CUBLASLT_EPILOGUE_DEFAULT)
    return CUBLAS_STATUS_SUCCESS;
  if (((desc.readsBias() || desc.writesBias()) && !desc.bias) ||
      (desc.hasAux() && (!desc.aux || desc.auxLeading < static_cast<int64_t>(d.rows))))
    return CUBLAS_STATUS_INVALID_VALUE;
  bool isAligned = !desc.hasAux() ||
                   (desc.auxLeading % 8 == 0 && reinterpret_cast<uintptr_t>(desc.aux) % 16 == 0);
  return desc.compute != CUBLAS_COMPUTE_64F && d.order == CUBLASLT_ORDER_COL && d.batches == 1 &&
                 isAligned
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_NOT_SUPPORTED;
}

/// Of operands of 8 bits (cuBLAS documentation, cublasLtMatmul(), "To use FP8 kernels"): A is
/// transposed and B is not, not both are of e5m2, all dimensions are multiples of 16, and D has 16
/// bits or 32. Epilogues are those for which the documentation names a type: a bias in 16 bits, so
/// that D may not have 32, and the operand of a GELU in the type of D.
static cublasStatus_t check8Bits(const cublasLtMatmulDescOpaque_t &desc, const Layout &a,
                                 const Layout &b, const Layout &d) {
  if (!has8Bits(a) && !has8Bits(b))
    return desc.scaleA || desc.scaleB ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  bool typesGo = has8Bits(a) && has8Bits(b) &&
                 (a.type == CUDA_R_8F_E4M3 || b.type == CUDA_R_8F_E4M3) &&
                 (d.type == CUDA_R_16BF || d.type == CUDA_R_16F || d.type == CUDA_R_32F) &&
                 desc.compute == CUBLAS_COMPUTE_32F && desc.scale == CUDA_R_32F;
  bool isBackward = desc.writesBias() || desc.readsAux();
  if (desc.epilogue != CUBLASLT_EPILOGUE_DEFAULT && (isBackward || d.type == CUDA_R_32F))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  bool isPlaced = desc.transA == CUBLAS_OP_T && desc.transB == CUBLAS_OP_N;
  for (const Layout *layout : {&a, &b, &d})
    isPlaced = isPlaced && layout->order == CUBLASLT_ORDER_COL && layout->rows % 16 == 0 &&
               layout->columns % 16 == 0 && layout->leading % 16 == 0;
  return typesGo && isPlaced ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t check(const cublasLtMatmulDescOpaque_t &desc, const Layout &a, const Layout &b,
                     const Layout &c, const Layout &d) {
  if (cublasStatus_t status = checkEpilogue(desc, d))
    return status;
  uint64_t m = desc.transA ? a.columns : a.rows, k = desc.transA ? a.rows : a.columns;
  uint64_t inner = desc.transB ? b.columns : b.rows, n = desc.transB ? b.rows : b.columns;
  if (k != inner || d.rows != m || d.columns != n || c.rows != m || c.columns != n ||
      a.batches != d.batches || b.batches != d.batches || c.batches != d.batches || !m || !n || !k)
    return CUBLAS_STATUS_INVALID_VALUE;
  for (const Layout *layout : {&a, &b, &c, &d})
    if (layout->leading <
        int64_t(layout->order == CUBLASLT_ORDER_ROW ? layout->columns : layout->rows))
      return CUBLAS_STATUS_INVALID_VALUE;
  if (cublasStatus_t status = check8Bits(desc, a, b, d))
    return status;
  if (has8Bits(a))
    return c.type == d.type ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
  bool wide = desc.compute == CUBLAS_COMPUTE_64F;
  cudaDataType_t scale = wide ? CUDA_R_64F : CUDA_R_32F;
  bool typesGo = wide ? a.type == CUDA_R_64F && d.type == CUDA_R_64F
                      : a.type != CUDA_R_64F && (d.type == a.type || d.type == CUDA_R_32F);
  return desc.scale == scale && b.type == a.type && c.type == d.type && typesGo
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_NOT_SUPPORTED;
}

void multiply(const Product &product) {
  if (product.desc.compute == CUBLAS_COMPUTE_64F)
    multiplyIn<double>(product);
  else
    multiplyIn<float>(product);
}

} // namespace dtc::standin
