//===- Einsum.cpp - Contractions ------------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Accumulate.h"
#include "runtime/backends/cpu/EinsumPlan.h"
#include "runtime/backends/cpu/KernelSupport.h"

#include <fmt/format.h>

namespace dtc::runtime::cpu {

namespace {

template <typename F> class EinsumKernel final : public Kernel {
public:
  explicit EinsumKernel(EinsumPlan plan) : plan(std::move(plan)) {}

  size_t workspaceBytes(int) const override {
    size_t bytes = arrayBytes<double>(numDotChunks());
    for (size_t i = 0; i < 3; ++i)
      if (plan.copies[i])
        bytes += arrayBytes<F>(plan.elements[i]);
    return bytes;
  }

  void run(const KernelArguments &args) const override {
    WorkspaceCursor workspace(args.workspace);
    double *partials = workspace.take<double>(numDotChunks());
    const F *lhs = operand(EinsumPlan::Lhs, args, workspace);
    const F *rhs = operand(EinsumPlan::Rhs, args, workspace);
    F *result = output<F>(args, 0);
    const auto &copyBack = plan.copies[EinsumPlan::Out];
    F *out = copyBack ? workspace.take<F>(plan.outElements) : result;
    switch (plan.kind) {
    case EinsumPlan::Kind::Zero:
      std::fill_n(out, plan.outElements, F(0));
      break;
    case EinsumPlan::Kind::Product:
      runProduct(lhs, rhs, out, args.threads);
      break;
    case EinsumPlan::Kind::Dot:
      runDot(lhs, rhs, out, partials, args.threads);
      break;
    case EinsumPlan::Kind::Gemm:
      runGemm(lhs, rhs, out, args.threads);
      break;
    }
    if (copyBack)
      copyBack->run(result, static_cast<const F *>(out), args.threads);
  }

private:
  /// Parts of a single dot product; few of them are not worth the workspace.
  int64_t numDotChunks() const {
    return plan.kind == EinsumPlan::Kind::Dot && plan.loops.elements() == 1
               ? numReduceChunks(plan.gemm.k)
               : 0;
  }

  const F *operand(size_t index, const KernelArguments &args, WorkspaceCursor &workspace) const {
    const F *in = input<F>(args, index);
    if (!plan.copies[index])
      return in;
    F *copied = workspace.take<F>(plan.elements[index]);
    plan.copies[index]->run(copied, in, args.threads);
    return copied;
  }

  void runProduct(const F *lhs, const F *rhs, F *out, int threads) const {
    const LoopNest<3> *loops = &plan.loops;
    parallelFor(threads, plan.outElements, elementGrain, [=](int64_t begin, int64_t end, int) {
      simd([=] {
        const auto strides = loops->inner().strides;
        F *y = out + begin;
        loops->forSegments(begin, end, [&](const auto &offsets, int64_t length) {
          const F *a = lhs + offsets[0], *b = rhs + offsets[1];
          if (strides[0] == 1 && strides[1] == 1) {
#pragma omp simd
            for (int64_t i = 0; i < length; ++i)
              y[i] = a[i] * b[i];
          } else if (strides[0] == 0 && strides[1] == 1) {
            F factor = *a;
#pragma omp simd
            for (int64_t i = 0; i < length; ++i)
              y[i] = factor * b[i];
          } else {
            for (int64_t i = 0; i < length; ++i)
              y[i] = a[i * strides[0]] * b[i * strides[1]];
          }
          y += length;
        });
      });
    });
  }

  void runDot(const F *lhs, const F *rhs, F *out, double *partials, int threads) const {
    const LoopNest<3> *loops = &plan.loops;
    int64_t length = plan.gemm.k;
    if (loops->elements() == 1) {
      *out = static_cast<F>(reduceInChunks(
          threads, length, 0.0, partials,
          [=](int64_t begin, int64_t end) {
            double sum;
            double *slot = &sum;
            simd([=] { *slot = longDot(lhs, rhs, begin, end); });
            return sum;
          },
          [](double a, double b) { return a + b; }));
      return;
    }
    parallelFor(threads, loops->elements(), grainFor(length), [=](int64_t begin, int64_t end, int) {
      simd([=] {
        const auto strides = loops->inner().strides;
        loops->forSegments(begin, end, [&](const auto &offsets, int64_t count) {
          for (int64_t i = 0; i < count; ++i)
            out[offsets[2] + i * strides[2]] = static_cast<F>(longDot(
                lhs + offsets[0] + i * strides[0], rhs + offsets[1] + i * strides[1], 0, length));
        });
      });
    });
  }

  static double longDot(const F *lhs, const F *rhs, int64_t begin, int64_t end) {
    return sumInBlocks(begin, end, [=](int64_t first, int64_t count) {
      return dotOf(lhs + first, rhs + first, count);
    });
  }

  void runGemm(const F *lhs, const F *rhs, F *out, int threads) const {
    int64_t products = plan.loops.elements();
    auto multiply = [&](int64_t begin, int64_t end, int threadsForEach) {
      for (int64_t i = begin; i < end; ++i) {
        auto offsets = plan.loops.offsetsAt(i);
        gemm(plan.gemm, F(1), lhs + offsets[0], rhs + offsets[1], false, out + offsets[2],
             threadsForEach);
      }
    };
    // Many products: a thread for each. Few: all threads for each.
    if (products < threads)
      return multiply(0, products, threads);
    int64_t grain = grainFor(plan.gemm.m * plan.gemm.n, std::min<int64_t>(plan.gemm.k, 64));
    parallelFor(threads, products, grain,
                [&](int64_t begin, int64_t end, int) { multiply(begin, end, 1); });
  }

  EinsumPlan plan;
};

PrepareResult prepareEinsum(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  const TensorType &lhs = check.floatInput(0);
  const std::array<const TensorType *, 3> types = {&lhs, &check.input(1), &check.output(0)};
  check.expectInput(1, withElements(check.input(1), lhs.dtype));
  check.expectOutput(0, withElements(check.output(0), lhs.dtype));
  std::string text = check.stringAttribute("equation");
  std::optional<EinsumEquation> equation = EinsumEquation::parse(text);
  if (!equation)
    check.failAttribute("equation", fmt::format("\"{}\"", text),
                        "an equation such as \"bsd,df->bsf\", each letter at most once in a term "
                        "and in two terms or three");
  if (check.failed())
    return *check.finish();

  std::array<int64_t, 26> sizes;
  sizes.fill(-1);
  for (size_t i = 0; i < 3; ++i) {
    const std::string &term = equation->terms[i];
    bool matches = term.size() == types[i]->shape.size();
    for (size_t dim = 0; matches && dim < term.size(); ++dim) {
      int64_t &size = sizes[static_cast<size_t>(term[dim] - 'a')];
      matches = size < 0 || size == types[i]->shape[dim];
      size = types[i]->shape[dim];
    }
    if (!matches)
      check.fail(fmt::format("{} {} is {}, expected the sizes of \"{}\" in \"{}\"",
                             i < 2 ? "input" : "output", i < 2 ? i : 0, types[i]->str(), term,
                             text));
  }
  if (MaybeError error = check.finish())
    return *error;
  EinsumPlan plan = EinsumPlan::create(std::move(*equation), sizes);
  return withFloatType(lhs.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    return std::make_unique<EinsumKernel<decltype(zero)>>(std::move(plan));
  });
}

} // namespace

std::span<const KernelEntry> einsumKernels() {
  static constexpr KernelEntry entries[] = {{"einsum", prepareEinsum}};
  return entries;
}

} // namespace dtc::runtime::cpu
