//===- Gemm.cpp - Products of strided matrices ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Gemm.h"

#include "runtime/backends/cpu/Accumulate.h"
#include "runtime/backends/cpu/Parallel.h"
#include "runtime/backends/cpu/Simd.h"

#include <algorithm>
#include <oneapi/dnnl/dnnl.h>
#include <utility>

namespace dtc::runtime::cpu {

/// The same product, transposed: c^T = b^T a^T.
static GemmShape transposed(const GemmShape &shape) {
  auto flip = [](MatrixStrides strides) { return MatrixStrides{strides.column, strides.row}; };
  return {shape.n, shape.m, shape.k, flip(shape.b), flip(shape.a), flip(shape.c)};
}

/// Rows [begin, end) of c, where rows of b and c are contiguous.
template <typename F>
static void multiplyRows(const GemmShape &s, F alpha, const F *a, const F *b, bool accumulate, F *c,
                         int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    F *to = c + i * s.c.row;
    if (!accumulate)
      std::fill_n(to, s.n, F(0));
    for (int64_t p = 0; p < s.k; ++p) {
      F factor = alpha * a[i * s.a.row + p * s.a.column];
      const F *from = b + p * s.b.row;
#pragma omp simd
      for (int64_t j = 0; j < s.n; ++j)
        to[j] += factor * from[j];
    }
  }
}

/// Rows [begin, end) of c from dot products, where rows of a and columns of b are contiguous.
template <typename F>
static void multiplyDots(const GemmShape &s, F alpha, const F *a, const F *b, bool accumulate, F *c,
                         int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      F value = alpha * dotOf(a + i * s.a.row, b + j * s.b.column, s.k);
      F &to = c[i * s.c.row + j * s.c.column];
      to = accumulate ? to + value : value;
    }
}

/// Rows [begin, end) of c, any strides.
template <typename F>
static void multiplyAny(const GemmShape &s, F alpha, const F *a, const F *b, bool accumulate, F *c,
                        int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      F sum = 0;
      for (int64_t p = 0; p < s.k; ++p)
        sum += a[i * s.a.row + p * s.a.column] * b[p * s.b.row + j * s.b.column];
      F &to = c[i * s.c.row + j * s.c.column];
      to = accumulate ? to + alpha * sum : alpha * sum;
    }
}

/// The product by plain loops, whichever of them has contiguous innermost accesses.
template <typename F>
static void gemmLoops(GemmShape s, F alpha, const F *a, const F *b, bool accumulate, F *c) {
  bool rows = s.b.column == 1 && s.c.column == 1;
  bool dots = s.a.column == 1 && s.b.row == 1;
  if (!rows && !dots && s.a.row == 1 && s.c.row == 1) {
    s = transposed(s);
    std::swap(a, b);
    rows = true;
  }
  int threads = omp_in_parallel() ? 1 : omp_get_max_threads();
  parallelFor(threads, s.m, grainFor(s.n * s.k), [=](int64_t begin, int64_t end, int) {
    simd([=] {
      if (rows)
        multiplyRows(s, alpha, a, b, accumulate, c, begin, end);
      else if (dots)
        multiplyDots(s, alpha, a, b, accumulate, c, begin, end);
      else
        multiplyAny(s, alpha, a, b, accumulate, c, begin, end);
    });
  });
}

void gemm(const GemmShape &shape, double alpha, const double *a, const double *b, bool accumulate,
          double *c) {
  gemmLoops(shape, alpha, a, b, accumulate, c);
}

namespace {
/// A matrix as BLAS describes it: row-major, or the transpose of a row-major one.
struct BlasOperand {
  char transposed;
  int64_t leadingDimension;

  BlasOperand(int64_t rows, int64_t columns, MatrixStrides strides) {
    bool plain = strides.column == 1 || columns == 1;
    transposed = plain ? 'N' : 'T';
    // The stride of a single row is never used, but must look valid.
    leadingDimension = plain ? std::max(strides.row, columns) : std::max(strides.column, rows);
  }
};
} // namespace

void gemm(const GemmShape &shape, float alpha, const float *a, const float *b, bool accumulate,
          float *c) {
  // Where calling the library costs more than the product.
  constexpr int64_t smallWork = 2048;
  if (shape.m * shape.n <= smallWork && shape.m * shape.n * shape.k <= smallWork)
    return gemmLoops(shape, alpha, a, b, accumulate, c);
  GemmShape s = shape;
  if (s.c.column != 1 && s.n != 1) {
    s = transposed(s);
    std::swap(a, b);
  }
  BlasOperand left(s.m, s.k, s.a), right(s.k, s.n, s.b);
  dnnl_status_t status =
      dnnl_sgemm(left.transposed, right.transposed, s.m, s.n, s.k, alpha, a, left.leadingDimension,
                 b, right.leadingDimension, accumulate ? 1.0f : 0.0f, c, std::max(s.c.row, s.n));
  // It gives up if it cannot have memory for its packed operands.
  if (status != dnnl_success)
    gemmLoops(s, alpha, a, b, accumulate, c);
}

} // namespace dtc::runtime::cpu
