//===- Einsum.cpp - Contractions ------------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/EinsumLowering.h"
#include "runtime/backends/cpu/Accumulate.h"
#include "runtime/backends/cpu/Gemm16.h"
#include "runtime/backends/cpu/StridedCopy.h"
#include "runtime/backends/cpu/WideBlocks.h"

#include <map>
#include <mutex>

namespace dtc::runtime::cpu {

namespace {

/// The matrix products of an einsum. Of 16-bit numbers they are prepared for each number of
/// threads, when it is first asked for.
template <typename F, typename R> class EinsumGemm {
public:
  explicit EinsumGemm(const EinsumLowering &plan) : plan(plan) {}

  size_t workspaceBytes(int threads) const {
    if constexpr (!kIsWide<F>) {
      if (plan.kind == EinsumLowering::Kind::Gemm)
        return static_cast<size_t>(numParts(threads, products(), grain(threads))) *
               prepared(threadsForEach(threads)).workspaceBytes();
    }
    return 0;
  }

  void run(const F *lhs, const F *rhs, R *out, std::byte *workspace, int threads) const {
    auto multiply = [&](const auto &product) {
      parallelFor(threads, products(), grain(threads), [&](int64_t begin, int64_t end, int part) {
        for (int64_t i = begin; i < end; ++i) {
          auto offsets = plan.loops.offsetsAt(i);
          product(lhs + offsets[0], rhs + offsets[1], out + offsets[2], part);
        }
      });
    };
    int each = threadsForEach(threads);
    if constexpr (!kIsWide<F>) {
      const Gemm16<F, R> &gemm16 = prepared(each);
      multiply([&](const F *a, const F *b, R *c, int part) {
        gemm16.run(a, b, c, workspace + static_cast<size_t>(part) * gemm16.workspaceBytes());
      });
    } else {
      multiply(
          [&](const F *a, const F *b, R *c, int) { gemm(plan.gemm, F(1), a, b, false, c, each); });
    }
  }

private:
  int64_t products() const { return plan.loops.elements(); }
  // Many products: a thread for each. Few: all threads for each.
  int threadsForEach(int threads) const { return products() < threads ? threads : 1; }
  int64_t grain(int threads) const {
    return products() < threads
               ? products()
               : grainFor(plan.gemm.m * plan.gemm.n, std::min<int64_t>(plan.gemm.k, 64));
  }

  const Gemm16<F, R> &prepared(int threads) const {
    std::lock_guard lock(mutex);
    std::unique_ptr<const Gemm16<F, R>> &entry = byThreads[threads];
    if (!entry)
      entry = std::make_unique<const Gemm16<F, R>>(plan.gemm, threads);
    return *entry;
  }

  const EinsumLowering &plan;
  mutable std::mutex mutex;
  mutable std::map<int, std::unique_ptr<const Gemm16<F, R>>> byThreads;
};

/// R is F, or float where F has 16 bits.
template <typename F, typename R> class EinsumKernel final : public CpuKernel {
public:
  explicit EinsumKernel(EinsumLowering given) : plan(std::move(given)), products(plan) {
    for (size_t i = 0; i < 3; ++i)
      if (plan.copies[i])
        copies[i].emplace(*plan.copies[i]);
  }

  size_t workspaceBytesFor(int threads) const override {
    size_t bytes = arrayBytes<double>(numDotTiles()) + products.workspaceBytes(threads);
    for (size_t i = 0; i < 3; ++i)
      if (copies[i])
        bytes += i == EinsumLowering::Out ? arrayBytes<R>(plan.elements[i])
                                          : arrayBytes<F>(plan.elements[i]);
    return bytes;
  }

  void run(const CpuArguments &args) const override {
    WorkspaceCursor workspace(args.workspace);
    double *partials = workspace.take<double>(numDotTiles());
    const F *lhs = operand(EinsumLowering::Lhs, args, workspace);
    const F *rhs = operand(EinsumLowering::Rhs, args, workspace);
    R *result = output<R>(args, 0);
    const auto &copyBack = copies[EinsumLowering::Out];
    R *out = copyBack ? workspace.take<R>(plan.outElements) : result;
    switch (plan.kind) {
    case EinsumLowering::Kind::Zero:
      std::fill_n(out, plan.outElements, R(0));
      break;
    case EinsumLowering::Kind::Product:
      runProduct(lhs, rhs, out, args.threads);
      break;
    case EinsumLowering::Kind::Dot:
      runDot(lhs, rhs, out, partials, args.threads);
      break;
    case EinsumLowering::Kind::Gemm:
      products.run(lhs, rhs, out, workspace.take<std::byte>(0), args.threads);
      break;
    }
    if (copyBack)
      copyBack->run(result, static_cast<const R *>(out), args.threads);
  }

private:
  using W = Wide<F>;

  /// Parts of a single dot product; few of them are not worth the workspace.
  int64_t numDotTiles() const {
    return plan.kind == EinsumLowering::Kind::Dot && plan.loops.elements() == 1
               ? numReduceTiles(plan.gemm.k)
               : 0;
  }

  const F *operand(size_t index, const CpuArguments &args, WorkspaceCursor &workspace) const {
    const F *in = input<F>(args, index);
    if (!copies[index])
      return in;
    F *copied = workspace.take<F>(plan.elements[index]);
    copies[index]->run(copied, in, args.threads);
    return copied;
  }

  void runProduct(const F *lhs, const F *rhs, R *out, int threads) const {
    const LoopNest<3> *loops = &plan.loops;
    parallelFor(threads, plan.outElements, kElementGrain, [=](int64_t begin, int64_t end, int) {
      simd([=] {
        const auto strides = loops->inner().strides;
        R *y = out + begin;
        loops->forSegments(begin, end, [&](const auto &offsets, int64_t length) {
          const F *a = lhs + offsets[0], *b = rhs + offsets[1];
          if (strides[0] == 1 && strides[1] == 1) {
#pragma omp simd
            for (int64_t i = 0; i < length; ++i)
              y[i] = R(W(a[i]) * W(b[i]));
          } else if (strides[0] == 0 && strides[1] == 1) {
            W factor = *a;
#pragma omp simd
            for (int64_t i = 0; i < length; ++i)
              y[i] = R(factor * W(b[i]));
          } else {
            for (int64_t i = 0; i < length; ++i)
              y[i] = R(W(a[i * strides[0]]) * W(b[i * strides[1]]));
          }
          y += length;
        });
      });
    });
  }

  void runDot(const F *lhs, const F *rhs, R *out, double *partials, int threads) const {
    const LoopNest<3> *loops = &plan.loops;
    int64_t length = plan.gemm.k;
    if (loops->elements() == 1) {
      *out = R(W(reduceInTiles(
          threads, length, 0.0, partials,
          [=](int64_t begin, int64_t end) {
            double sum;
            double *slot = &sum;
            simd([=] { *slot = longDot(lhs, rhs, begin, end); });
            return sum;
          },
          [](double a, double b) { return a + b; })));
      return;
    }
    parallelFor(threads, loops->elements(), grainFor(length), [=](int64_t begin, int64_t end, int) {
      simd([=] {
        const auto strides = loops->inner().strides;
        loops->forSegments(begin, end, [&](const auto &offsets, int64_t count) {
          for (int64_t i = 0; i < count; ++i)
            out[offsets[2] + i * strides[2]] = R(W(longDot(
                lhs + offsets[0] + i * strides[0], rhs + offsets[1] + i * strides[1], 0, length)));
        });
      });
    });
  }

  static double longDot(const F *lhs, const F *rhs, int64_t begin, int64_t end) {
    return sumInBlocks(begin, end, [=](int64_t first, int64_t count) {
      const F *x = lhs + first, *y = rhs + first;
      W sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < count; ++i)
        sum += W(x[i]) * W(y[i]);
      return sum;
    });
  }

  EinsumLowering plan;
  EinsumGemm<F, R> products;
  std::array<std::optional<StridedCopy>, 3> copies; // of the plan
};

PrepareResult prepareEinsum(const KernelSignature &signature) {
  Expected<EinsumLowering> plan = planEinsum(signature);
  if (!plan)
    return plan.error();
  DType operands = signature.inputs[0].dtype;
  return withFloatType(operands, [&](auto zero) -> std::unique_ptr<CpuKernel> {
    using F = decltype(zero);
    if (signature.outputs[0].dtype == operands)
      return std::make_unique<EinsumKernel<F, F>>(std::move(*plan));
    return std::make_unique<EinsumKernel<F, Wide<F>>>(std::move(*plan));
  });
}

} // namespace

std::span<const KernelEntry> einsumKernels() {
  static constexpr KernelEntry entries[] = {{"einsum", prepareEinsum}};
  return entries;
}

} // namespace dtc::runtime::cpu
