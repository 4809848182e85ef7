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

/// The same product, transposed: c^T = b^T a^T.
template <typename F> Product<F> transposed(const Product<F> &p) {
  auto flip = [](MatrixStrides strides) { return MatrixStrides{strides.column, strides.row}; };
  const GemmShape &s = p.shape;
  return {{s.n, s.m, s.k, flip(s.b), flip(s.a), flip(s.c)}, p.alpha, p.b, p.a, p.accumulate, p.c};
}

/// The part of the product that makes rows [row, row + rows) and columns [column, column +
/// columns).
template <typename F>
Product<F> blockOf(Product<F> p, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  p.a += row * p.shape.a.row;
  p.b += column * p.shape.b.column;
  p.c += row * p.shape.c.row + column * p.shape.c.column;
  p.shape.m = rows;
  p.shape.n = columns;
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
  BlasOperand a(s.m, s.k, s.a), b(s.k, s.n, s.b);
  dnnl_status_t status =
      dnnl_sgemm(a.transposed, b.transposed, s.m, s.n, s.k, p.alpha, p.a, a.leadingDimension, p.b,
                 b.leadingDimension, p.accumulate ? 1.0f : 0.0f, p.c, std::max(s.c.row, s.n));
  // It gives up if it cannot have memory for its packed operands.
  if (status != dnnl_success)
    multiplyByLoops(p);
}

/// How the result is cut into blocks.
struct Grid {
  int64_t rows, columns;
};

// Blocks are multiples of the register tiles of GEMM kernels.
constexpr int64_t rowUnit = 8, columnUnit = 48;
int64_t units(int64_t size, int64_t unit) { return (size + unit - 1) / unit; }

Grid chooseGrid(const GemmShape &shape, int threads) {
  int64_t m = units(shape.m, rowUnit), n = units(shape.n, columnUnit);
  // A thread is worth about 32^3 multiplications; m and n do not overflow, being sizes of c.
  int64_t area = shape.m * shape.n;
  int64_t useful = area / std::max<int64_t>(1, 32768 / shape.k);
  int64_t parts = std::clamp<int64_t>(useful, 1, threads);
  Grid best{1, 1};
  int64_t bestCost = -1;
  for (int64_t rows = 1; rows <= parts; ++rows) {
    int64_t columns = parts / rows;
    int64_t blockM = units(m, rows) * rowUnit, blockN = units(n, columns) * columnUnit;
    // The largest block decides; among equals the one that packs less of a and b.
    int64_t cost = blockM * blockN + 8 * (blockM + blockN);
    if (bestCost < 0 || cost < bestCost) {
      bestCost = cost;
      best = {rows, columns};
    }
  }
  return best;
}

/// Keeps the library from starting threads of its own.
class SingleThreadedLibrary {
public:
  SingleThreadedLibrary() : before(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~SingleThreadedLibrary() { omp_set_num_threads(before); }

private:
  int before;
};

template <typename F> void multiplyInBlocks(const Product<F> &product, int threads) {
  const GemmShape &shape = product.shape;
  SingleThreadedLibrary guard;
  Grid grid = chooseGrid(shape, threads);
  if (grid.rows * grid.columns == 1)
    return multiply(product);
  auto edge = [](int64_t size, int64_t unit, int64_t parts, int64_t part) {
    return std::min(size, units(size, unit) * part / parts * unit);
  };
  forParts(static_cast<int>(grid.rows * grid.columns), [&](int part) {
    int64_t i = part / grid.columns, j = part % grid.columns;
    int64_t row = edge(shape.m, rowUnit, grid.rows, i);
    int64_t column = edge(shape.n, columnUnit, grid.columns, j);
    int64_t rows = edge(shape.m, rowUnit, grid.rows, i + 1) - row;
    int64_t columns = edge(shape.n, columnUnit, grid.columns, j + 1) - column;
    if (rows > 0 && columns > 0)
      multiply(blockOf(product, row, rows, column, columns));
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
