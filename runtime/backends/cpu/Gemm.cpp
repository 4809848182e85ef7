//===- Gemm.cpp - Products of strided matrices ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Gemm.h"

#include "runtime/backends/cpu/Accumulate.h"
#include "runtime/backends/cpu/FewRows.h"
#include "runtime/backends/cpu/GemmGrid.h"
#include "runtime/backends/cpu/Parallel.h"
#include "runtime/backends/cpu/Simd.h"

#include <algorithm>
#include <oneapi/dnnl/dnnl.h>

namespace dtc::runtime::cpu {

namespace {

/// A product with its operands.
template <typename F> struct Product {
  GemmShape shape;
  F alpha;
  const F *a;
  const F *b;
  bool accumulate;
  F *c;
};

/// The same product, transposed.
template <typename F> Product<F> transposed(const Product<F> &p) {
  return {transposed(p.shape), p.alpha, p.b, p.a, p.accumulate, p.c};
}

/// The part of the product that makes a block of the result.
template <typename F> Product<F> blockOf(Product<F> p, const GemmBlock &block) {
  p.a += block.row * p.shape.a.row;
  p.b += block.column * p.shape.b.column;
  p.c += block.row * p.shape.c.row + block.column * p.shape.c.column;
  p.shape.m = block.rows;
  p.shape.n = block.columns;
  return p;
}

// Plain loops, for double and for products that are too small for a library. They run in simd().

/// Rows of b and c are contiguous.
template <typename F> void multiplyRows(const Product<F> &p) {
  const GemmShape &s = p.shape;
  for (int64_t i = 0; i < s.m; ++i) {
    F *to = p.c + i * s.c.row;
    if (!p.accumulate)
      std::fill_n(to, s.n, F(0));
    for (int64_t l = 0; l < s.k; ++l) {
      F factor = p.alpha * p.a[i * s.a.row + l * s.a.column];
      const F *from = p.b + l * s.b.row;
#pragma omp simd
      for (int64_t j = 0; j < s.n; ++j)
        to[j] += factor * from[j];
    }
  }
}

/// Rows of a and columns of b are contiguous.
template <typename F> void multiplyDots(const Product<F> &p) {
  const GemmShape &s = p.shape;
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      F value = p.alpha * dotOf(p.a + i * s.a.row, p.b + j * s.b.column, s.k);
      F &to = p.c[i * s.c.row + j * s.c.column];
      to = p.accumulate ? to + value : value;
    }
}

/// Any strides.
template <typename F> void multiplyAny(const Product<F> &p) {
  const GemmShape &s = p.shape;
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      F sum = 0;
      for (int64_t l = 0; l < s.k; ++l)
        sum += p.a[i * s.a.row + l * s.a.column] * p.b[l * s.b.row + j * s.b.column];
      F &to = p.c[i * s.c.row + j * s.c.column];
      to = p.accumulate ? to + p.alpha * sum : p.alpha * sum;
    }
}

template <typename F> void multiplyByLoops(Product<F> p) {
  bool rows = p.shape.b.column == 1 && p.shape.c.column == 1;
  bool dots = p.shape.a.column == 1 && p.shape.b.row == 1;
  if (!rows && !dots && p.shape.a.row == 1 && p.shape.c.row == 1) {
    p = transposed(p);
    rows = true;
  }
  simd([=] {
    if (rows)
      multiplyRows(p);
    else if (dots)
      multiplyDots(p);
    else
      multiplyAny(p);
  });
}

void multiply(const Product<double> &product) { multiplyByLoops(product); }

/// Outside of a parallel region the library uses as many threads as OpenMP allows the caller.
void multiply(const Product<float> &product) {
  // Where calling the library costs more than the product.
  constexpr int64_t smallWork = 2048;
  const GemmShape &shape = product.shape;
  if (shape.m * shape.n <= smallWork && shape.m * shape.n * shape.k <= smallWork)
    return multiplyByLoops(product);
  Product<float> p = shape.c.column == 1 || shape.n == 1 ? product : transposed(product);
  const GemmShape &s = p.shape;
  LeadingDimension a(s.m, s.k, s.a), b(s.k, s.n, s.b);
  dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', s.m, s.n, s.k, p.alpha, p.a,
                 a.size, p.b, b.size, p.accumulate ? 1.0f : 0.0f, p.c, std::max(s.c.row, s.n));
  // It gives up if it cannot have memory for its packed operands.
  if (status != dnnl_success)
    multiplyByLoops(p);
}

template <typename F> void multiplyInBlocks(const Product<F> &product, int threads) {
  if (hasFewRows(product.shape))
    return multiplyFewRows(product.shape, product.alpha, product.a, product.b, product.accumulate,
                           product.c, threads);
  SingleThreadedLibrary guard;
  GemmGrid grid(product.shape, threads);
  if (grid.parts() == 1)
    return multiply(product);
  forParts(grid.parts(), [&](int part) {
    GemmBlock block = grid.block(part);
    if (block.rows > 0 && block.columns > 0)
      multiply(blockOf(product, block));
  });
}

} // namespace

void gemm(const GemmShape &shape, float alpha, const float *a, const float *b, bool accumulate,
          float *c, int threads) {
  multiplyInBlocks(Product<float>{shape, alpha, a, b, accumulate, c}, threads);
}

void gemm(const GemmShape &shape, double alpha, const double *a, const double *b, bool accumulate,
          double *c, int threads) {
  multiplyInBlocks(Product<double>{shape, alpha, a, b, accumulate, c}, threads);
}

} // namespace dtc::runtime::cpu
