//===- GroupedProduct.cpp - Products of groups of rows --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A thread has whole products: groups where rows are kept, matrices where they are summed. So sums
// have the order of the rows whatever the number of threads. Empty rows cost nothing but the zeros
// of the result.
//
//===----------------------------------------------------------------------===//

#include "calls/GroupedProductCall.h"
#include "runtime/backends/cpu/Gemm16.h"
#include "runtime/backends/cpu/KernelSupport.h"
#include "runtime/backends/cpu/WideBlocks.h"

#include <algorithm>

namespace dtc::runtime::cpu {

namespace {

/// The elements of a loop whose multiplications are worth a thread of their own.
int64_t grainOfProducts(const GroupedProductCall &call) {
  int64_t each = call.rows * call.n * std::min<int64_t>(call.k, 64);
  return grainFor(call.keepsRows ? each : each * call.groups);
}

/// The kernel for wide elements: each product has just the rows with an index.
template <typename F> std::unique_ptr<CpuKernel> makeWide(const GroupedProductCall &call) {
  return makeKernel([call](const CpuArguments &args) {
    const F *lhs = input<F>(args, 0), *rhs = input<F>(args, 1);
    const int32_t *indices = input<int32_t>(args, 2);
    F *out = output<F>(args, 0);
    int64_t matrixSize = call.k * call.n;
    auto rowsOfGroup = [=](int64_t group) {
      int64_t count = usedRows(indices + group * call.rows, call.rows);
      F *to = out + group * call.rows * call.n;
      if (count > 0)
        gemm(call.shapeOf(count), F(1), lhs + group * call.rows * call.k,
             rhs + group / call.groups * matrixSize, false, to, 1);
      std::fill(to + count * call.n, to + call.rows * call.n, F(0));
    };
    auto sumOfMatrix = [=](int64_t matrix) {
      bool isFirst = true;
      F *to = out + matrix * matrixSize;
      for (int64_t group = matrix * call.groups; group < (matrix + 1) * call.groups; ++group)
        if (int64_t count = usedRows(indices + group * call.rows, call.rows); count > 0) {
          gemm(call.shapeOf(count), F(1), lhs + group * call.rows * call.k,
               rhs + group * call.rows * call.n, !isFirst, to, 1);
          isFirst = false;
        }
      if (isFirst)
        std::fill_n(to, matrixSize, F(0));
    };
    int64_t products = call.keepsRows ? call.matrices * call.groups : call.matrices;
    parallelFor(args.threads, products, grainOfProducts(call),
                [=](int64_t begin, int64_t end, int) {
                  for (int64_t i = begin; i < end; ++i)
                    call.keepsRows ? rowsOfGroup(i) : sumOfMatrix(i);
                });
  });
}

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
    parallelFor(args.threads, products(), grainOfProducts(call),
                [=, this](int64_t begin, int64_t end, int part) {
                  void *own = workspace + static_cast<size_t>(part) * product.workspaceBytes();
                  for (int64_t group = begin; group < end; ++group)
                    runGroup(group, lhs, rhs, indices, out, own);
                });
  }

private:
  int64_t products() const { return call.matrices * call.groups; }

  void runGroup(int64_t group, const F *lhs, const F *rhs, const int32_t *indices, R *out,
                void *workspace) const {
    int64_t count = usedRows(indices + group * call.rows, call.rows);
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

/// The kernel that has one product of all rows for each matrix; empty rows add nothing.
template <typename F, typename R> class SumsKernel16 final : public CpuKernel {
public:
  explicit SumsKernel16(const GroupedProductCall &call)
      : call(call), product(call.shapeOf(call.groups * call.rows), 1) {}

  size_t workspaceBytesFor(int threads) const override {
    return static_cast<size_t>(numParts(threads, call.matrices, grainOfProducts(call))) *
           product.workspaceBytes();
  }

  void run(const CpuArguments &args) const override {
    const F *lhs = input<F>(args, 0), *rhs = input<F>(args, 1);
    R *out = output<R>(args, 0);
    auto *workspace = static_cast<std::byte *>(args.workspace);
    int64_t rows = call.groups * call.rows;
    parallelFor(args.threads, call.matrices, grainOfProducts(call),
                [=, this](int64_t begin, int64_t end, int part) {
                  void *own = workspace + static_cast<size_t>(part) * product.workspaceBytes();
                  for (int64_t i = begin; i < end; ++i)
                    product.run(lhs + i * rows * call.k, rhs + i * rows * call.n,
                                out + i * call.k * call.n, own);
                });
  }

private:
  GroupedProductCall call;
  Gemm16<F, R> product;
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
      return makeWide<F>(*call);
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
