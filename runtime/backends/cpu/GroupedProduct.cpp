//===- GroupedProduct.cpp - Products of groups of rows --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A thread has whole products: pieces of the rows where rows are kept, matrices where they are
// summed. So sums have the order of the rows whatever the number of threads. Matrices have unequal
// numbers of rows, so a thread takes the next product when it is done with one, and of sums the
// largest ones come first. Empty rows cost nothing but the zeros of the result.
//
//===----------------------------------------------------------------------===//

#include "calls/GroupedProductCall.h"
#include "runtime/backends/cpu/Gemm16.h"
#include "runtime/backends/cpu/KernelSupport.h"
#include "runtime/backends/cpu/WideBlocks.h"

#include <algorithm>
#include <vector>

namespace dtc::runtime::cpu {

namespace {

/// The elements of a loop whose multiplications are worth a thread of their own.
int64_t grainOfProducts(const GroupedProductCall &call) {
  int64_t each = call.rows * call.n * std::min<int64_t>(call.k, 64);
  return grainFor(call.keepsRows ? each : each * call.groups);
}

/// The number of rows of group `group`, of those of all matrices, that have an index.
int64_t rowsOfGroup(const GroupedProductCall &call, const int32_t *indices, int64_t group) {
  return usedRows(indices + group * call.rows, call.rows);
}

int64_t rowsOfMatrix(const GroupedProductCall &call, const int32_t *indices, int64_t matrix) {
  int64_t count = 0;
  for (int64_t group = matrix * call.groups; group < (matrix + 1) * call.groups; ++group)
    count += rowsOfGroup(call, indices, group);
  return count;
}

/// The numbers of the matrices at `order`, those with the most rows first.
void orderMatrices(const GroupedProductCall &call, const int32_t *indices, int64_t *counts,
                   int64_t *order) {
  for (int64_t i = 0; i < call.matrices; ++i) {
    order[i] = i;
    counts[i] = rowsOfMatrix(call, indices, i);
  }
  std::sort(order, order + call.matrices, [&](int64_t a, int64_t b) {
    return counts[a] != counts[b] ? counts[a] > counts[b] : a < b;
  });
}

/// The bytes of two such arrays.
size_t orderBytes(const GroupedProductCall &call) { return 2 * arrayBytes<int64_t>(call.matrices); }

/// The rows [begin, end) of those of a matrix that have an index.
struct Piece {
  int64_t matrix, begin, end;
  int64_t size() const { return end - begin; }
};

/// Calls body(row, at, count) for the parts of a piece that lie together: `count` rows from row
/// `row` of all rows, and from row `at` of the piece.
template <typename Body>
void forSegments(const GroupedProductCall &call, const int32_t *indices, const Piece &piece,
                 const Body &body) {
  int64_t first = 0; // of the group, among those of the matrix
  for (int64_t group = piece.matrix * call.groups; first < piece.end; ++group) {
    int64_t count = rowsOfGroup(call, indices, group);
    int64_t from = std::max(first, piece.begin), to = std::min(first + count, piece.end);
    if (from < to)
      body(group * call.rows + from - first, from - piece.begin, to - from);
    first += count;
  }
}

/// Copies the rows of a piece, of `width` elements, to `packed`, one after the other.
template <typename F>
void pack(const GroupedProductCall &call, const int32_t *indices, const Piece &piece, const F *rows,
          int64_t width, F *packed) {
  forSegments(call, indices, piece, [=](int64_t row, int64_t at, int64_t count) {
    std::copy_n(rows + row * width, count * width, packed + at * width);
  });
}

/// Rows that are multiplied at once where a matrix has several groups: enough that packing the
/// matrix takes little of the time of the product.
inline constexpr int64_t kPieceRows = 512;

/// The kernel for wide elements. The rows with an index of all groups of a matrix are multiplied as
/// if they lay one after the other, in pieces of equal size: the groups of a matrix may be small,
/// and a product of few rows takes most of its time to pack the matrix. A piece of several groups
/// is copied into the workspace, and its result from there.
template <typename F> class WideKernel final : public CpuKernel {
public:
  explicit WideKernel(const GroupedProductCall &call)
      : call(call), allRows(call.groups * call.rows),
        pieceRows(call.groups == 1 && !call.keepsRows ? allRows : std::min(allRows, kPieceRows)),
        piecesOfMatrix((allRows + pieceRows - 1) / pieceRows) {}

  size_t workspaceBytesFor(int threads) const override {
    return orderBytes(call) + static_cast<size_t>(parts(threads)) * partBytes();
  }

  void run(const CpuArguments &args) const override {
    Buffers buffers{input<F>(args, 0), input<F>(args, 1), input<int32_t>(args, 2),
                    output<F>(args, 0)};
    WorkspaceCursor workspace(args.workspace);
    auto *counts = workspace.take<int64_t>(call.matrices);
    auto *order = workspace.take<int64_t>(call.matrices);
    orderMatrices(call, buffers.indices, counts, order);
    auto *own = workspace.take<std::byte>(0);
    forUnits(parts(args.threads), units(), [=, this](int64_t unit, int part) {
      Buffers mine = buffers;
      if (call.groups > 1) {
        WorkspaceCursor cursor(own + static_cast<size_t>(part) * partBytes());
        mine.packedK = cursor.take<F>(pieceRows * call.k);
        mine.packedN = cursor.take<F>(pieceRows * call.n);
      }
      // The first pieces of all matrices come first: only now it is known how many a matrix has.
      if (call.keepsRows)
        multiplyPiece(mine, order[unit % call.matrices], unit / call.matrices);
      else
        sumMatrix(mine, order[unit]);
    });
  }

private:
  struct Buffers {
    const F *lhs, *rhs;
    const int32_t *indices;
    F *out;
    F *packedK = nullptr, *packedN = nullptr; ///< of a piece, [rows, k] and [rows, n]
  };

  int64_t units() const { return call.keepsRows ? call.matrices * piecesOfMatrix : call.matrices; }
  int parts(int threads) const {
    int64_t rows = call.keepsRows ? pieceRows : allRows;
    return numParts(threads, units(), grainFor(rows * call.n * std::min<int64_t>(call.k, 64)));
  }
  size_t partBytes() const {
    return call.groups == 1 ? 0
                            : arrayBytes<F>(pieceRows * call.k) + arrayBytes<F>(pieceRows * call.n);
  }

  /// Piece `number` of `count` rows; without rows where there are fewer pieces.
  Piece pieceOf(int64_t matrix, int64_t count, int64_t number) const {
    int64_t pieces = (count + pieceRows - 1) / pieceRows;
    if (number >= pieces)
      return {matrix, count, count};
    return {matrix, count * number / pieces, count * (number + 1) / pieces};
  }

  /// The first row of a piece that lies together; -1 of others.
  int64_t onlyRow(const Buffers &buffers, const Piece &piece) const {
    int64_t only = -1;
    forSegments(call, buffers.indices, piece, [&](int64_t row, int64_t, int64_t count) {
      only = count == piece.size() ? row : -1;
    });
    return only;
  }
  /// The rows of a piece one after the other: in place, or copied to `packed`.
  const F *gather(const Buffers &buffers, const Piece &piece, const F *rows, int64_t width,
                  F *packed) const {
    if (int64_t row = onlyRow(buffers, piece); row >= 0)
      return rows + row * width;
    pack(call, buffers.indices, piece, rows, width, packed);
    return packed;
  }

  void multiplyPiece(const Buffers &buffers, int64_t matrix, int64_t number) const {
    Piece piece = pieceOf(matrix, rowsOfMatrix(call, buffers.indices, matrix), number);
    if (piece.size() > 0) {
      const F *rows = gather(buffers, piece, buffers.lhs, call.k, buffers.packedK);
      int64_t only = onlyRow(buffers, piece);
      F *to = only >= 0 ? buffers.out + only * call.n : buffers.packedN;
      gemm(call.shapeOf(piece.size()), F(1), rows, buffers.rhs + matrix * call.k * call.n, false,
           to, 1);
      if (only < 0)
        forSegments(call, buffers.indices, piece, [&](int64_t row, int64_t at, int64_t count) {
          std::copy_n(to + at * call.n, count * call.n, buffers.out + row * call.n);
        });
    }
    // Each piece has its share of the groups, whose empty rows become zeros.
    for (int64_t group = number; group < call.groups; group += piecesOfMatrix) {
      F *to = buffers.out + (matrix * call.groups + group) * call.rows * call.n;
      int64_t count = rowsOfGroup(call, buffers.indices, matrix * call.groups + group);
      std::fill(to + count * call.n, to + call.rows * call.n, F(0));
    }
  }

  void sumMatrix(const Buffers &buffers, int64_t matrix) const {
    F *to = buffers.out + matrix * call.k * call.n;
    int64_t count = rowsOfMatrix(call, buffers.indices, matrix);
    if (count == 0)
      std::fill_n(to, call.k * call.n, F(0));
    for (int64_t number = 0; number < piecesOfMatrix; ++number)
      if (Piece piece = pieceOf(matrix, count, number); piece.size() > 0)
        gemm(call.shapeOf(piece.size()), F(1),
             gather(buffers, piece, buffers.lhs, call.k, buffers.packedK),
             gather(buffers, piece, buffers.rhs, call.n, buffers.packedN), number > 0, to, 1);
  }

  GroupedProductCall call;
  int64_t allRows;        ///< of a matrix
  int64_t pieceRows;      ///< at most, of a piece
  int64_t piecesOfMatrix; ///< at most
};

/// Products of 16-bit elements are prepared for one shape, so a group is computed in blocks of this
/// many rows. The last block of a group may overlap the one before it, or contain empty rows.
inline constexpr int64_t kBlockRows = 64;

template <typename F, typename R> class RowsKernel16 final : public CpuKernel {
public:
  explicit RowsKernel16(const GroupedProductCall &call)
      : call(call), block(std::min(call.rows, kBlockRows)), product(call.shapeOf(block), 1) {}

  size_t workspaceBytesFor(int threads) const override {
    return static_cast<size_t>(numParts(threads, products(), grainOfProducts(call))) *
           product.workspaceBytes();
  }

  void run(const CpuArguments &args) const override {
    const F *lhs = input<F>(args, 0), *rhs = input<F>(args, 1);
    const int32_t *indices = input<int32_t>(args, 2);
    R *out = output<R>(args, 0);
    auto *workspace = static_cast<std::byte *>(args.workspace);
    int parts = numParts(args.threads, products(), grainOfProducts(call));
    forUnits(parts, products(), [=, this](int64_t group, int part) {
      runGroup(group, lhs, rhs, indices, out,
               workspace + static_cast<size_t>(part) * product.workspaceBytes());
    });
  }

private:
  int64_t products() const { return call.matrices * call.groups; }

  void runGroup(int64_t group, const F *lhs, const F *rhs, const int32_t *indices, R *out,
                void *workspace) const {
    int64_t count = rowsOfGroup(call, indices, group);
    const F *from = lhs + group * call.rows * call.k;
    R *to = out + group * call.rows * call.n;
    for (int64_t row = 0; row < count; row += block) {
      int64_t first = std::min(row, call.rows - block);
      product.run(from + first * call.k, rhs + group / call.groups * call.k * call.n,
                  to + first * call.n, workspace);
    }
    std::fill(to + count * call.n, to + call.rows * call.n, R(0));
  }

  GroupedProductCall call;
  int64_t block;
  Gemm16<F, R> product;
};

/// The kernel that sums the rows of each matrix by one product. Products of several numbers of rows
/// are prepared, each a fifth smaller than the one before. A matrix has the smallest one for its
/// rows with an index, which are copied into the workspace, and zeros after them. If these are more
/// than half of all rows, the product is that of all: empty rows add nothing.
template <typename F, typename R> class SumsKernel16 final : public CpuKernel {
public:
  explicit SumsKernel16(const GroupedProductCall &call)
      : call(call), all(call.groups * call.rows, call) {
    for (int64_t rows = all.rows / 2; rows >= kBlockRows; rows = rows * 4 / 5 / 32 * 32)
      packed.emplace_back(rows, call);
    packedRows = packed.empty() ? 0 : packed.front().rows;
    productBytes = all.product.workspaceBytes();
    for (const Sum &sum : packed)
      productBytes = std::max(productBytes, sum.product.workspaceBytes());
  }

  size_t workspaceBytesFor(int threads) const override {
    int parts = numParts(threads, call.matrices, grainOfProducts(call));
    return orderBytes(call) + static_cast<size_t>(parts) * partBytes();
  }

  void run(const CpuArguments &args) const override {
    const F *lhs = input<F>(args, 0), *rhs = input<F>(args, 1);
    const int32_t *indices = input<int32_t>(args, 2);
    R *out = output<R>(args, 0);
    WorkspaceCursor workspace(args.workspace);
    auto *counts = workspace.take<int64_t>(call.matrices);
    auto *order = workspace.take<int64_t>(call.matrices);
    orderMatrices(call, indices, counts, order);
    auto *own = workspace.take<std::byte>(0);
    int parts = numParts(args.threads, call.matrices, grainOfProducts(call));
    forUnits(parts, call.matrices, [=, this](int64_t unit, int part) {
      int64_t i = order[unit];
      sumMatrix(i, lhs, rhs, indices, out + i * call.k * call.n,
                own + static_cast<size_t>(part) * partBytes());
    });
  }

private:
  /// A product of a number of rows.
  struct Sum {
    Sum(int64_t rows, const GroupedProductCall &call)
        : rows(rows), product(call.shapeOf(rows), 1) {}
    int64_t rows;
    Gemm16<F, R> product;
  };

  size_t partBytes() const {
    return arrayBytes<F>(packedRows * call.k) + arrayBytes<F>(packedRows * call.n) + productBytes;
  }

  void sumMatrix(int64_t matrix, const F *lhs, const F *rhs, const int32_t *indices, R *out,
                 void *workspace) const {
    WorkspaceCursor cursor(workspace);
    F *packedK = cursor.take<F>(packedRows * call.k),
      *packedN = cursor.take<F>(packedRows * call.n);
    void *own = cursor.take<std::byte>(static_cast<int64_t>(productBytes));
    int64_t count = rowsOfMatrix(call, indices, matrix);
    if (count == 0) {
      std::fill_n(out, call.k * call.n, R(0));
    } else if (count > packedRows) {
      int64_t first = matrix * all.rows;
      all.product.run(lhs + first * call.k, rhs + first * call.n, out, own);
    } else {
      const Sum *sum = &packed.front();
      for (const Sum &smaller : packed)
        if (smaller.rows >= count)
          sum = &smaller;
      Piece piece{matrix, 0, count};
      pack(call, indices, piece, lhs, call.k, packedK);
      pack(call, indices, piece, rhs, call.n, packedN);
      std::fill(packedK + count * call.k, packedK + sum->rows * call.k, F(0));
      std::fill(packedN + count * call.n, packedN + sum->rows * call.n, F(0));
      sum->product.run(packedK, packedN, out, own);
    }
  }

  GroupedProductCall call;
  Sum all;
  std::vector<Sum> packed; ///< the largest one first
  int64_t packedRows = 0;  ///< of the largest one
  size_t productBytes = 0;
};

template <typename F, typename R>
std::unique_ptr<CpuKernel> make16(const GroupedProductCall &call) {
  if (call.keepsRows)
    return std::make_unique<RowsKernel16<F, R>>(call);
  return std::make_unique<SumsKernel16<F, R>>(call);
}

/// The kernel for sums without terms.
std::unique_ptr<CpuKernel> makeZeros(size_t bytes) {
  return makeKernel([bytes](const CpuArguments &args) {
    std::fill_n(output<std::byte>(args, 0), bytes, std::byte{0});
  });
}

PrepareResult prepareGroupedProduct(const KernelSignature &signature) {
  Expected<GroupedProductCall> call = checkGroupedProduct(signature);
  if (!call)
    return call.error();
  if (signature.inputs[0].numElements() == 0 || signature.inputs[1].numElements() == 0)
    return makeZeros(signature.outputs[0].numBytes());
  return withFloatType(call->in, [&](auto zero) -> std::unique_ptr<CpuKernel> {
    using F = decltype(zero);
    if constexpr (kIsWide<F>)
      return std::make_unique<WideKernel<F>>(*call);
    else if (call->out == call->in)
      return make16<F, F>(*call);
    else
      return make16<F, float>(*call);
  });
}

} // namespace

std::span<const KernelEntry> groupedProductKernels() {
  static constexpr KernelEntry entries[] = {{"grouped_product", prepareGroupedProduct}};
  return entries;
}

} // namespace dtc::runtime::cpu
