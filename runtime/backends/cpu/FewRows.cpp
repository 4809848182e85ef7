//===- FewRows.cpp - Products of a few rows with a matrix -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/FewRows.h"

#include "runtime/backends/cpu/Parallel.h"
#include "runtime/backends/cpu/Simd.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace dtc::runtime::cpu {

namespace {

constexpr int64_t kMostRows = 4;
/// Elements of the matrix from which on reading it is what takes time.
constexpr int64_t kLeastElements = 65536;
/// Columns whose sums a thread holds, and rows of the matrix that it goes through before the next
/// of these columns: both arrays stay in the first cache.
constexpr int64_t kColumns = 1024, kDepth = 1024;
/// Rows of the matrix that are read at a time, so that a sum is loaded and stored once for them.
constexpr int64_t kStreams = 8;
/// The columns of a thread begin at multiples of this.
constexpr int64_t kColumnUnit = 64;

/// The sums of some columns, and the part of the left operand that goes into them next.
template <typename W, int Rows> struct Block {
  alignas(64) W sums[Rows][kColumns];
  alignas(64) W factors[Rows][kDepth];
};

/// The processor finds by itself that a long stretch of memory is read. Of rows or columns that lie
/// apart, as those of a head, it learns too late.
template <typename F> inline constexpr int64_t kPrefetched = 256 / static_cast<int64_t>(sizeof(F));
template <typename F>
inline void prefetch(const F *from, int64_t stride, int64_t count, int64_t elements) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t e = 0; e < elements; e += 64 / static_cast<int64_t>(sizeof(F)))
      __builtin_prefetch(from + i * stride + e);
}

/// sums += factors * b for contiguous rows of b. In simd().
template <typename F, int Rows>
inline void addRows(Block<Wide<F>, Rows> &block, const F *b, int64_t stride, int64_t depth,
                    int64_t columns) {
  using W = Wide<F>;
  int64_t l = 0;
  for (; l + kStreams <= depth; l += kStreams, b += kStreams * stride) {
    const F *b0 = b, *b1 = b0 + stride, *b2 = b1 + stride, *b3 = b2 + stride;
    const F *b4 = b3 + stride, *b5 = b4 + stride, *b6 = b5 + stride, *b7 = b6 + stride;
    if (l + 2 * kStreams <= depth)
      prefetch(b + kStreams * stride, stride, kStreams, std::min(columns, kPrefetched<F>));
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) {
      W x0 = W(b0[j]), x1 = W(b1[j]), x2 = W(b2[j]), x3 = W(b3[j]);
      W x4 = W(b4[j]), x5 = W(b5[j]), x6 = W(b6[j]), x7 = W(b7[j]);
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i) {
        const W *f = block.factors[i] + l;
        W sum = block.sums[i][j];
        sum += f[0] * x0;
        sum += f[1] * x1;
        sum += f[2] * x2;
        sum += f[3] * x3;
        sum += f[4] * x4;
        sum += f[5] * x5;
        sum += f[6] * x6;
        sum += f[7] * x7;
        block.sums[i][j] = sum;
      }
    }
  }
  for (; l < depth; ++l, b += stride)
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j)
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i)
        block.sums[i][j] += block.factors[i][l] * W(b[j]);
}

/// A cache line of elements in the type of the sums.
template <typename W> struct LineOf { using type [[gnu::vector_size(64)]] = W; };
template <typename W> using Line = typename LineOf<W>::type;
template <typename W> inline constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(W));

template <typename F> inline void loadLine(const F *from, Line<Wide<F>> &line) {
  using W = Wide<F>;
  if constexpr (std::is_same_v<F, W>) {
    std::memcpy(&line, from, sizeof(line));
  } else if constexpr (std::is_same_v<F, BFloat16>) {
    typedef uint16_t Halves [[gnu::vector_size(32)]];
    typedef uint32_t Words [[gnu::vector_size(64)]];
    Halves halves;
    std::memcpy(&halves, from, sizeof(halves));
    Words words = __builtin_convertvector(halves, Words) << 16;
    std::memcpy(&line, &words, sizeof(line));
  } else {
#pragma GCC unroll 16
    for (int64_t e = 0; e < kLine<W>; ++e)
      line[e] = static_cast<W>(from[e]);
  }
}

template <typename W> inline W sumOfLine(const Line<W> &line) {
  W elements[kLine<W>];
  std::memcpy(elements, &line, sizeof(line));
#pragma GCC unroll 4
  for (int64_t half = kLine<W> / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int64_t e = 0; e < half; ++e)
      elements[e] += elements[e + half];
  return elements[0];
}

/// The same for `Columns` columns. Their sums are in as many registers, each with a lane for every
/// element of a line.
template <typename F, int Rows, int Columns>
inline void addDotsOf(Block<Wide<F>, Rows> &block, const F *b, int64_t stride, int64_t depth,
                      int64_t column) {
  using W = Wide<F>;
  Line<W> sums[Rows][Columns] = {};
  int64_t l = 0;
  for (; l + kLine<W> <= depth; l += kLine<W>) {
    Line<W> factors[Rows];
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i)
      loadLine(block.factors[i] + l, factors[i]);
#pragma GCC unroll 4
    for (int j = 0; j < Columns; ++j) {
      Line<W> line;
      loadLine(b + j * stride + l, line);
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i)
        sums[i][j] += factors[i] * line;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Columns; ++j) {
      W sum = sumOfLine<W>(sums[i][j]);
      for (int64_t rest = l; rest < depth; ++rest)
        sum += block.factors[i][rest] * W(b[j * stride + rest]);
      block.sums[i][column + j] += sum;
    }
}

/// Columns are computed several at a time where they are so short that adding the lanes of their
/// sums takes a good part of the time; long ones one by one, in the order of the memory.
constexpr int64_t kShortColumn = 256;

/// sums += factors * b for contiguous columns of b. In simd().
template <typename F, int Rows>
inline void addDots(Block<Wide<F>, Rows> &block, const F *b, int64_t stride, int64_t depth,
                    int64_t columns) {
  constexpr int together = Rows > 2 ? 2 : 4;
  constexpr int64_t ahead = 16;
  int64_t j = 0;
  if (depth <= kShortColumn)
    for (; j + together <= columns; j += together) {
      if (j + ahead + together <= columns)
        prefetch(b + (j + ahead) * stride, stride, together, std::min(depth, kPrefetched<F>));
      addDotsOf<F, Rows, together>(block, b + j * stride, stride, depth, j);
    }
  for (; j < columns; ++j)
    addDotsOf<F, Rows, 1>(block, b + j * stride, stride, depth, j);
}

/// The columns [begin, begin + columns) of the result. In simd().
template <int Rows, typename A, typename F, typename R>
inline void multiplyColumns(const GemmShape &s, Wide<F> alpha, const A *a, const F *b,
                            bool accumulate, R *c, int64_t begin, int64_t columns) {
  using W = Wide<F>;
  Block<W, Rows> block;
  for (int i = 0; i < Rows; ++i)
    std::fill_n(block.sums[i], columns, W(0));
  for (int64_t first = 0; first < s.k; first += kDepth) {
    int64_t depth = std::min(kDepth, s.k - first);
    for (int i = 0; i < Rows; ++i) {
      const A *from = a + i * s.a.row + first * s.a.column;
      for (int64_t l = 0; l < depth; ++l)
        block.factors[i][l] = alpha * W(from[l * s.a.column]);
    }
    const F *right = b + first * s.b.row + begin * s.b.column;
    if (s.b.column == 1)
      addRows<F, Rows>(block, right, s.b.row, depth, columns);
    else
      addDots<F, Rows>(block, right, s.b.column, depth, columns);
  }
  for (int i = 0; i < Rows; ++i) {
    R *to = c + i * s.c.row + begin * s.c.column;
    for (int64_t j = 0; j < columns; ++j) {
      R &result = to[j * s.c.column];
      result = R(accumulate ? W(result) + block.sums[i][j] : block.sums[i][j]);
    }
  }
}

template <int Rows, typename A, typename F, typename R>
void multiplyRows(const GemmShape &shape, Wide<F> alpha, const A *a, const F *b, bool accumulate,
                  R *c, int threads) {
  int64_t units = (shape.n + kColumnUnit - 1) / kColumnUnit;
  int64_t grain = grainFor(kColumnUnit * shape.k);
  parallelFor(threads, units, grain, [&, s = shape](int64_t from, int64_t to, int) {
    int64_t end = std::min(s.n, to * kColumnUnit);
    for (int64_t first = from * kColumnUnit; first < end; first += kColumns)
      simd([=, columns = std::min(kColumns, end - first)] {
        multiplyColumns<Rows>(s, alpha, a, b, accumulate, c, first, columns);
      });
  });
}

} // namespace

bool hasFewRows(const GemmShape &shape) {
  return std::min(shape.m, shape.n) <= kMostRows &&
         std::max(shape.m, shape.n) * shape.k >= kLeastElements;
}

template <typename A, typename F, typename R>
void multiplyByRows(GemmShape s, Wide<F> alpha, const A *a, const F *b, bool accumulate, R *c,
                    int threads) {
  for (int64_t left = s.m; left > 0; left -= kMostRows) {
    s.m = std::min(left, kMostRows);
    auto multiply = s.m == 1   ? multiplyRows<1, A, F, R>
                    : s.m == 2 ? multiplyRows<2, A, F, R>
                    : s.m == 3 ? multiplyRows<3, A, F, R>
                               : multiplyRows<4, A, F, R>;
    multiply(s, alpha, a, b, accumulate, c, threads);
    a += s.m * s.a.row;
    c += s.m * s.c.row;
  }
}

template <typename F, typename R>
void multiplyFewRows(const GemmShape &shape, Wide<F> alpha, const F *a, const F *b, bool accumulate,
                     R *c, int threads) {
  if (shape.n < shape.m)
    multiplyByRows(transposed(shape), alpha, b, a, accumulate, c, threads);
  else
    multiplyByRows(shape, alpha, a, b, accumulate, c, threads);
}

template void multiplyFewRows(const GemmShape &, float, const float *, const float *, bool, float *,
                              int);
template void multiplyFewRows(const GemmShape &, double, const double *, const double *, bool,
                              double *, int);
template void multiplyFewRows(const GemmShape &, float, const BFloat16 *, const BFloat16 *, bool,
                              BFloat16 *, int);
template void multiplyFewRows(const GemmShape &, float, const BFloat16 *, const BFloat16 *, bool,
                              float *, int);
template void multiplyFewRows(const GemmShape &, float, const Float16 *, const Float16 *, bool,
                              Float16 *, int);
template void multiplyFewRows(const GemmShape &, float, const Float16 *, const Float16 *, bool,
                              float *, int);

template void multiplyByRows(GemmShape, float, const float *, const float *, bool, float *, int);
template void multiplyByRows(GemmShape, double, const double *, const double *, bool, double *,
                             int);
template void multiplyByRows(GemmShape, float, const float *, const BFloat16 *, bool, float *, int);
template void multiplyByRows(GemmShape, float, const float *, const Float16 *, bool, float *, int);

} // namespace dtc::runtime::cpu
