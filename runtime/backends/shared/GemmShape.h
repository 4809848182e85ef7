//===- GemmShape.h - The shape of a product of matrices -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_SHARED_GEMMSHAPE_H
#define DTC_RUNTIME_BACKENDS_SHARED_GEMMSHAPE_H

#include <cstdint>

namespace dtc::runtime {

/// Elements between neighbours of a column, and of a row.
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

/// The transposed product: c^T = b^T a^T.
inline GemmShape transposed(const GemmShape &s) {
  auto flip = [](MatrixStrides strides) { return MatrixStrides{strides.column, strides.row}; };
  return {s.n, s.m, s.k, flip(s.b), flip(s.a), flip(s.c)};
}

} // namespace dtc::runtime

#endif // DTC_RUNTIME_BACKENDS_SHARED_GEMMSHAPE_H
