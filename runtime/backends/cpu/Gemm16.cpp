//===- Gemm16.cpp - Products of matrices of 16-bit numbers ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Gemm16.h"

#include "runtime/backends/cpu/Bf16Unit.h"
#include "runtime/backends/cpu/FewRows.h"
#include "runtime/backends/cpu/GemmGrid.h"
#include "runtime/backends/cpu/Transpose.h"
#include "runtime/backends/cpu/WideBlocks.h"

#include <algorithm>
#include <type_traits>

namespace dtc::runtime::cpu {

namespace {

/// With fewer multiplications a call of the library costs more than widening does.
constexpr int64_t kSmallWork = 16384;

/// The rows and columns of the operands that are widened at a time: enough for a widened element to
/// take part in hundreds of multiplications, and few enough for the blocks to be small against the
/// operands.
constexpr int64_t kBlockSize = 512;

struct BlockSizes {
  int64_t m, n, k;
  explicit BlockSizes(const GemmShape &shape)
      : m(std::min(shape.m, kBlockSize)), n(std::min(shape.n, kBlockSize)),
        k(std::min(shape.k, kBlockSize)) {}
};

/// Widens a block of a matrix; the result has the strides of the copy.
template <typename F>
MatrixStrides widenBlock(const F *from, MatrixStrides strides, int64_t rows, int64_t columns,
                         float *to) {
  if (strides.column == 1) {
    for (int64_t row = 0; row < rows; ++row)
      widen(from + row * strides.row, to + row * columns, columns);
    return {columns, 1};
  }
  if (strides.row == 1) {
    for (int64_t column = 0; column < columns; ++column)
      widen(from + column * strides.column, to + column * rows, rows);
    return {1, rows};
  }
  // A single row or column of a wider matrix.
  int64_t stride = rows == 1 ? strides.column : strides.row;
  for (int64_t i = 0; i < rows * columns; ++i)
    to[i] = from[i * stride];
  return {columns, 1};
}

template <typename F, typename R> size_t widenedBytes(const GemmShape &shape) {
  BlockSizes size(shape);
  size_t bytes = arrayBytes<float>(size.m * size.k) + arrayBytes<float>(size.k * size.n);
  return std::is_same_v<R, float> ? bytes : bytes + arrayBytes<float>(size.m * size.n);
}

/// c.column is 1, or there is one column.
template <typename F, typename R>
void multiplyWidened(const GemmShape &shape, const F *a, const F *b, R *c, void *workspace) {
  BlockSizes size(shape);
  WorkspaceCursor cursor(workspace);
  float *wideA = cursor.take<float>(size.m * size.k), *wideB = cursor.take<float>(size.k * size.n);
  float *sums = std::is_same_v<R, float> ? nullptr : cursor.take<float>(size.m * size.n);
  for (int64_t j = 0; j < shape.n; j += size.n)
    for (int64_t i = 0; i < shape.m; i += size.m) {
      GemmShape block{std::min(size.m, shape.m - i), std::min(size.n, shape.n - j), 0, {}, {}, {}};
      R *to = c + i * shape.c.row + j * shape.c.column;
      if constexpr (std::is_same_v<R, float>) {
        sums = to;
        block.c = shape.c;
      } else {
        block.c = {block.n, 1};
      }
      for (int64_t l = 0; l < shape.k; l += size.k) {
        block.k = std::min(size.k, shape.k - l);
        block.a =
            widenBlock(a + i * shape.a.row + l * shape.a.column, shape.a, block.m, block.k, wideA);
        block.b =
            widenBlock(b + l * shape.b.row + j * shape.b.column, shape.b, block.k, block.n, wideB);
        gemm(block, 1, wideA, wideB, l > 0, sums, 1);
      }
      if constexpr (!std::is_same_v<R, float>)
        for (int64_t row = 0; row < block.m; ++row)
          narrow(sums + row * block.n, to + row * shape.c.row, block.n);
    }
}

/// A product that needs no memory of its own, for when the library cannot have any.
template <typename F, typename R>
void multiplyPlainly(const GemmShape &s, const F *a, const F *b, R *c) {
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < s.k; ++l)
        sum += static_cast<float>(a[i * s.a.row + l * s.a.column]) *
               static_cast<float>(b[l * s.b.row + j * s.b.column]);
      c[i * s.c.row + j * s.c.column] = R(sum);
    }
}

/// Whether rows of the left operand are turned round first: for tiles, where an element that is
/// moved takes part in enough multiplications.
bool transposesLeft(const GemmShape &shape) {
  constexpr int64_t enough = 256;
  return bf16Unit() == Bf16Unit::Tiles && shape.a.column != 1 && shape.m > 1 && shape.k > 1 &&
         shape.n >= enough;
}
GemmShape withTransposedLeft(GemmShape shape) {
  shape.a = {shape.k, 1};
  return shape;
}

/// Parts of equal shapes share a product of the library.
template <typename Parts>
std::shared_ptr<const Bf16Matmul> findMatmul(const Parts &parts, const GemmShape &shape) {
  for (const auto &part : parts)
    if (part.matmul && part.shape.m == shape.m && part.shape.n == shape.n)
      return part.matmul;
  return nullptr;
}

} // namespace

template <typename F, typename R>
Gemm16<F, R>::Gemm16(const GemmShape &given, int threads)
    : swapped(given.c.column != 1 && given.n != 1) {
  if (hasFewRows(given)) {
    fewRows.emplace(given, threads);
    return;
  }
  GemmShape whole = swapped ? transposed(given) : given;
  bool byLibrary = std::is_same_v<F, BFloat16> && bf16Unit() != Bf16Unit::None;
  // The tiles of AMX have 16 rows and 16 columns of results; kernels use two by two of them.
  GemmGrid grid = byLibrary ? GemmGrid(whole, threads, 32, 64) : GemmGrid(whole, threads);
  for (int i = 0; i < grid.parts(); ++i) {
    GemmBlock block = grid.block(i);
    if (block.rows == 0 || block.columns == 0)
      continue;
    BlockProduct part{whole,
                      block.row * whole.a.row,
                      block.column * whole.b.column,
                      block.row * whole.c.row + block.column * whole.c.column,
                      nullptr,
                      false};
    part.shape.m = block.rows;
    part.shape.n = block.columns;
    if (byLibrary && part.shape.m * part.shape.n >= kSmallWork / part.shape.k) {
      part.transposes = transposesLeft(part.shape);
      part.matmul = findMatmul(parts, part.shape);
      if (!part.matmul)
        part.matmul =
            Bf16Matmul::create(part.transposes ? withTransposedLeft(part.shape) : part.shape,
                               std::is_same_v<R, float>);
    }
    size_t bytes =
        part.matmul ? roundToLines(part.matmul->workspaceBytes()) : widenedBytes<F, R>(part.shape);
    if (part.matmul && part.transposes)
      bytes += arrayBytes<F>(part.shape.m * part.shape.k);
    partBytes = std::max(partBytes, bytes);
    parts.push_back(std::move(part));
  }
}

template <typename F, typename R>
void Gemm16<F, R>::run(const F *a, const F *b, R *c, void *workspace) const {
  if (fewRows)
    return multiplyFewRows(fewRows->first, 1.0f, a, b, false, c, fewRows->second);
  if (swapped)
    std::swap(a, b);
  // The threads of a parallel region take over this number.
  SingleThreadedLibrary guard;
  forParts(static_cast<int>(parts.size()), [&](int part) {
    runBlock(parts[static_cast<size_t>(part)], a, b, c,
             static_cast<std::byte *>(workspace) + static_cast<size_t>(part) * partBytes);
  });
}

template <typename F, typename R>
void Gemm16<F, R>::runBlock(const BlockProduct &part, const F *a, const F *b, R *c,
                            void *workspace) const {
  a += part.a;
  b += part.b;
  c += part.c;
  if constexpr (std::is_same_v<F, BFloat16>)
    if (part.matmul) {
      WorkspaceCursor cursor(workspace);
      const BFloat16 *left = a;
      if (part.transposes) {
        auto *turned = cursor.take<BFloat16>(part.shape.m * part.shape.k);
        transpose(a, part.shape.a.column, part.shape.k, part.shape.m, part.shape.k, turned);
        left = turned;
      }
      if (!part.matmul->run(left, b, c, cursor.take<std::byte>(0)))
        multiplyPlainly(part.shape, a, b, c);
      return;
    }
  multiplyWidened(part.shape, a, b, c, workspace);
}

template class Gemm16<BFloat16, BFloat16>;
template class Gemm16<BFloat16, float>;
template class Gemm16<Float16, Float16>;
template class Gemm16<Float16, float>;

} // namespace dtc::runtime::cpu
