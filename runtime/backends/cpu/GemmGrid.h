//===- GemmGrid.h - Division of a matrix product among threads ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_GEMMGRID_H
#define DTC_RUNTIME_BACKENDS_CPU_GEMMGRID_H

#include "runtime/backends/cpu/Gemm.h"

#include <algorithm>
#include <cstdint>
#include <omp.h>

namespace dtc::runtime::cpu {

/// Keeps the library from starting OpenMP's threads.
class SingleThreadedLibrary {
public:
  SingleThreadedLibrary() : before(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~SingleThreadedLibrary() { omp_set_num_threads(before); }
  SingleThreadedLibrary(const SingleThreadedLibrary &) = delete;
  SingleThreadedLibrary &operator=(const SingleThreadedLibrary &) = delete;

private:
  int before;
};

/// Rows and columns of a result; may be none.
struct GemmBlock {
  int64_t row, rows, column, columns;
};

/// The result of a product cut into at most one block a thread, by sizes alone.
class GemmGrid {
public:
  /// Rows and columns are cut into multiples of the units. The defaults are those of the register
  /// tiles of GEMM kernels.
  GemmGrid(const GemmShape &shape, int threads, int64_t rowUnit = 8, int64_t columnUnit = 48)
      : shape(shape), rowUnit(rowUnit), columnUnit(columnUnit) {
    int64_t m = units(shape.m, rowUnit), n = units(shape.n, columnUnit);
    // A thread is worth about 32^3 multiplications; m and n do not overflow, being sizes of c.
    int64_t area = shape.m * shape.n;
    int64_t useful = area / std::max<int64_t>(1, 32768 / shape.k);
    int64_t parts = std::clamp<int64_t>(useful, 1, threads);
    int64_t bestCost = -1;
    for (int64_t rowParts = 1; rowParts <= parts; ++rowParts) {
      int64_t columnParts = parts / rowParts;
      int64_t blockM = units(m, rowParts) * rowUnit, blockN = units(n, columnParts) * columnUnit;
      // The largest block decides; among equals the one that packs less of a and b.
      int64_t cost = blockM * blockN + 8 * (blockM + blockN);
      if (bestCost < 0 || cost < bestCost) {
        bestCost = cost;
        rows = rowParts;
        columns = columnParts;
      }
    }
  }

  int parts() const { return static_cast<int>(rows * columns); }
  GemmBlock block(int part) const {
    int64_t i = part / columns, j = part % columns;
    int64_t row = edge(shape.m, rowUnit, rows, i);
    int64_t column = edge(shape.n, columnUnit, columns, j);
    return {row, edge(shape.m, rowUnit, rows, i + 1) - row, column,
            edge(shape.n, columnUnit, columns, j + 1) - column};
  }

private:
  static int64_t units(int64_t size, int64_t unit) { return (size + unit - 1) / unit; }
  static int64_t edge(int64_t size, int64_t unit, int64_t parts, int64_t part) {
    return std::min(size, units(size, unit) * part / parts * unit);
  }

  GemmShape shape;
  int64_t rowUnit, columnUnit;
  int64_t rows = 1, columns = 1;
};

/// A matrix as libraries describe it: row-major, or the transpose of a row-major one.
struct LeadingDimension {
  bool transposed;
  int64_t size;

  LeadingDimension(int64_t rows, int64_t columns, MatrixStrides strides)
      : transposed(strides.column != 1 && columns != 1) {
    // The stride of a single row is never used, but must look valid.
    size = transposed ? std::max(strides.column, rows) : std::max(strides.row, columns);
  }
};

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_GEMMGRID_H
