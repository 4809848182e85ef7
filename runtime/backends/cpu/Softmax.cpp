//===- Softmax.cpp - Softmax over the last dimension ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Softmax.h"

#include "calls/RowCalls.h"
#include "runtime/backends/cpu/WideBlocks.h"

#include <algorithm>

namespace dtc::runtime::cpu {

namespace {

/// The rows of a softmax, and its options: it multiplies by `scale`, and, if it is `causal`, row i
/// of each matrix of `rows` x `width` sees the columns j <= i + width - rows alone.
struct SoftmaxShape {
  int64_t width;
  int64_t rows;
  double scale;
  bool causal;

  /// The number of columns that the row of that number, counted over all matrices, sees.
  int64_t visible(int64_t row) const { return causal ? row % rows + 1 + width - rows : width; }
};

template <typename W>
void softmaxRows(const W *x, W *y, int64_t first, int64_t last, const SoftmaxShape &shape) {
  simd([=] {
    int64_t width = shape.width;
    for (int64_t row = first; row < last; ++row) {
      int64_t visible = shape.visible(row), offset = (row - first) * width;
      softmaxRow(x + offset, y + offset, visible, static_cast<W>(shape.scale));
      std::fill(y + offset + visible, y + offset + width, W(0));
    }
  });
}

template <typename F> std::unique_ptr<CpuKernel> makeSoftmax(int64_t rows, SoftmaxShape shape) {
  int64_t width = shape.width;
  WideArrays<F> arrays(width, 1);
  auto run = [=](const CpuArguments &args) {
    const F *x = input<F>(args, 0);
    F *y = output<F>(args, 0);
    parallelFor(args.threads, rows, grainFor(width, 4), [=](int64_t begin, int64_t end, int part) {
      Wide<F> *array = arrays.at(args.workspace, part, 0);
      forWideBlocks<F>(begin, end, width, [=](int64_t first, int64_t last) {
        int64_t length = (last - first) * width;
        Wide<F> *to = wideOutput(y + first * width, array);
        softmaxRows(wideInput(x + first * width, length, array), to, first, last, shape);
        storeWide(to, y + first * width, length);
      });
    });
  };
  return makeKernel(run, [=](int threads) { return arrays.bytes(threads); });
}

PrepareResult prepareSoftmax(const SoftmaxCall &call) {
  SoftmaxShape shape{call.shape.width, call.matrixRows, call.scale, call.causal};
  return withFloatType(call.shape.dtype, [&](auto zero) {
    return makeSoftmax<decltype(zero)>(call.shape.rows, shape);
  });
}

template <typename W>
void softmaxGradRows(const W *allY, const W *allDy, W *allDx, int64_t rows, int64_t width,
                     W scale) {
  simd([=] {
    for (int64_t row = 0; row < rows; ++row) {
      const W *y = allY + row * width, *dy = allDy + row * width;
      W *dx = allDx + row * width;
      W sum = dotOf(y, dy, width);
#pragma omp simd
      for (int64_t i = 0; i < width; ++i)
        dx[i] = scale * y[i] * (dy[i] - sum);
    }
  });
}

template <typename F>
std::unique_ptr<CpuKernel> makeSoftmaxGrad(int64_t rows, int64_t width, double scale) {
  WideArrays<F> arrays(width, 2);
  auto run = [=](const CpuArguments &args) {
    const F *y = input<F>(args, 0), *dy = input<F>(args, 1);
    F *dx = output<F>(args, 0);
    parallelFor(args.threads, rows, grainFor(width, 2), [=](int64_t begin, int64_t end, int part) {
      Wide<F> *yArray = arrays.at(args.workspace, part, 0);
      Wide<F> *dyArray = arrays.at(args.workspace, part, 1);
      forWideBlocks<F>(begin, end, width, [=](int64_t first, int64_t last) {
        int64_t offset = first * width, length = (last - first) * width;
        Wide<F> *to = wideOutput(dx + offset, dyArray);
        softmaxGradRows(wideInput(y + offset, length, yArray),
                        wideInput(dy + offset, length, dyArray), to, last - first, width,
                        static_cast<Wide<F>>(scale));
        storeWide(to, dx + offset, length);
      });
    });
  };
  return makeKernel(run, [=](int threads) { return arrays.bytes(threads); });
}

PrepareResult prepareSoftmaxGrad(const SoftmaxCall &call) {
  return withFloatType(call.shape.dtype, [&](auto zero) {
    return makeSoftmaxGrad<decltype(zero)>(call.shape.rows, call.shape.width, call.scale);
  });
}

} // namespace

std::span<const KernelEntry> softmaxKernels() {
  static constexpr KernelEntry entries[] = {
      {"softmax", prepareBy<checkSoftmax, prepareSoftmax>},
      {"softmax_grad", prepareBy<checkSoftmaxGrad, prepareSoftmaxGrad>},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
