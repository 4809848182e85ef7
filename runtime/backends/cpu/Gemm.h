//===- Gemm.h - Products of strided matrices ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_GEMM_H
#define DTC_RUNTIME_BACKENDS_CPU_GEMM_H

#include <cstdint>

namespace dtc::runtime::cpu {

/// Elements between neighbours in a column, and in a row.
struct MatrixStrides {
  int64_t row = 0;
  int64_t column = 1;
};

/// c = alpha * a * b, or c += alpha * a * b. a is m by k, b is k by n, c is m by n. Of each matrix
/// one of the strides is 1, unless it has a single row or column.
struct GemmShape {
  int64_t m = 1, n = 1, k = 1;
  MatrixStrides a, b, c;
};

/// float goes to oneDNN, double to plain loops. The result is cut into one block a thread; in a
/// parallel region `threads` must be 1.
void gemm(const GemmShape &shape, float alpha, const float *a, const float *b, bool accumulate,
          float *c, int threads);
void gemm(const GemmShape &shape, double alpha, const double *a, const double *b, bool accumulate,
          double *c, int threads);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_GEMM_H
