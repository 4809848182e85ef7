//===- GemmShape.h - The shape of a product of matrices -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_GEMMSHAPE_H
#define DTC_CALLS_GEMMSHAPE_H

#include <algorithm>
#include <cstdint>

namespace dtc {

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

/// The memory order of a matrix: which of its directions is contiguous, and the step in the other
/// one.
struct MatrixOrder {
  bool columnMajor = false;
  int64_t step = 1;

  MatrixOrder(const MatrixStrides &strides, int64_t rows, int64_t columns) {
    columnMajor = rows == 1 || (columns != 1 && strides.row == 1);
    step = columnMajor ? std::max(strides.column, rows) : std::max(strides.row, columns);
  }
};

/// The transposed product: c^T = b^T a^T.
inline GemmShape transposed(const GemmShape &s) {
  auto flip = [](MatrixStrides strides) { return MatrixStrides{strides.column, strides.row}; };
  return {s.n, s.m, s.k, flip(s.b), flip(s.a), flip(s.c)};
}

} // namespace dtc

#endif // DTC_CALLS_GEMMSHAPE_H
