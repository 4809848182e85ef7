//===- CrossEntropy.cpp - Cross entropy and its gradient ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/RowCalls.h"
#include "runtime/backends/cpu/Softmax.h"
#include "runtime/backends/cpu/WideBlocks.h"

namespace dtc::runtime::cpu {

namespace {

template <typename W> W meanOf(const W *x, int64_t width) {
  double sum =
      sumInBlocks(0, width, [=](int64_t first, int64_t count) { return sumOf(x + first, count); });
  return static_cast<W>(sum / static_cast<double>(width));
}

template <typename F>
std::unique_ptr<CpuKernel> makeCrossEntropy(int64_t rows, int64_t width, double labelSmoothing) {
  using W = Wide<F>;
  W smoothing = static_cast<W>(labelSmoothing);
  WideArrays<F> arrays(width, 1);
  auto run = [=](const CpuArguments &args) {
    const F *logits = input<F>(args, 0);
    const int32_t *labels = input<int32_t>(args, 1);
    W *loss = output<W>(args, 0);
    W *lse = output<W>(args, 1);
    parallelFor(args.threads, rows, grainFor(width, 2), [=](int64_t begin, int64_t end, int part) {
      W *array = arrays.at(args.workspace, part, 0);
      for (int64_t row = begin; row < end; ++row) {
        const W *x = wideInput(logits + row * width, width, array);
        int32_t label = labels[row];
        W *rowLoss = loss + row, *rowLse = lse + row;
        simd([=] {
          *rowLse = logSumExp(x, width);
          W target = label >= 0 && label < width ? x[label] : W(0);
          if (smoothing == 0)
            *rowLoss = *rowLse - target;
          else
            *rowLoss = *rowLse - (1 - smoothing) * target - smoothing * meanOf(x, width);
        });
      }
    });
  };
  return makeKernel(run, [=](int threads) { return arrays.bytes(threads); });
}

PrepareResult prepareCrossEntropy(const CrossEntropyCall &call) {
  return withFloatType(call.shape.dtype, [&](auto zero) {
    return makeCrossEntropy<decltype(zero)>(call.shape.rows, call.shape.width, call.labelSmoothing);
  });
}

/// dx[begin, end) = (exp(x - lse) - share) * factor; dx may be x. To be called in simd().
template <typename W>
inline void gradientOf(const W *x, W *dx, int64_t begin, int64_t end, W lse, W share, W factor) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i)
    dx[i] = (vmath::exp(x[i] - lse) - share) * factor;
}

template <typename F>
std::unique_ptr<CpuKernel> makeCrossEntropyGrad(int64_t rows, int64_t width, double labelSmoothing,
                                                int64_t classes) {
  using W = Wide<F>;
  // The probability of every class in the target distribution, and the additional one of the label.
  W everyClass =
      static_cast<W>(labelSmoothing / static_cast<double>(std::max<int64_t>(classes, 1)));
  W onLabel = static_cast<W>(1 - labelSmoothing);
  WideArrays<F> arrays(width, 1);
  auto run = [=](const CpuArguments &args) {
    const F *logits = input<F>(args, 0);
    const int32_t *labels = input<int32_t>(args, 1);
    const W *lse = input<W>(args, 2);
    const W *dloss = input<W>(args, 3);
    F *dlogits = output<F>(args, 0);
    parallelFor(args.threads, rows, grainFor(width, 2), [=](int64_t begin, int64_t end, int part) {
      W *array = arrays.at(args.workspace, part, 0);
      for (int64_t row = begin; row < end; ++row) {
        const W *x = wideInput(logits + row * width, width, array);
        W *dx = wideOutput(dlogits + row * width, array);
        W shift = lse[row], factor = dloss[row];
        int64_t label = labels[row];
        bool valid = label >= 0 && label < width;
        simd([=] {
          gradientOf(x, dx, 0, valid ? label : width, shift, everyClass, factor);
          if (!valid)
            return;
          gradientOf(x, dx, label, label + 1, shift, onLabel + everyClass, factor);
          gradientOf(x, dx, label + 1, width, shift, everyClass, factor);
        });
        storeWide(dx, dlogits + row * width, width);
      }
    });
  };
  return makeKernel(run, [=](int threads) { return arrays.bytes(threads); });
}

PrepareResult prepareCrossEntropyGrad(const CrossEntropyCall &call) {
  return withFloatType(call.shape.dtype, [&](auto zero) {
    return makeCrossEntropyGrad<decltype(zero)>(call.shape.rows, call.shape.width,
                                                call.labelSmoothing, call.classes);
  });
}

} // namespace

std::span<const KernelEntry> crossEntropyKernels() {
  static constexpr KernelEntry entries[] = {
      {"cross_entropy", prepareBy<checkCrossEntropy, prepareCrossEntropy>},
      {"cross_entropy_grad", prepareBy<checkCrossEntropyGrad, prepareCrossEntropyGrad>},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
