//===- Softmax.cpp - Softmax over the last dimension ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Softmax.h"

#include "runtime/backends/cpu/WideBlocks.h"

namespace dtc::runtime::cpu {

namespace {

template <typename W> void softmaxRows(const W *x, W *y, int64_t rows, int64_t width) {
  simd([=] {
    for (int64_t row = 0; row < rows; ++row)
      softmaxRow(x + row * width, y + row * width, width);
  });
}

template <typename F> std::unique_ptr<Kernel> makeSoftmax(int64_t rows, int64_t width) {
  WideArrays<F> arrays(width, 1);
  auto run = [=](const KernelArguments &args) {
    const F *x = input<F>(args, 0);
    F *y = output<F>(args, 0);
    parallelFor(args.threads, rows, grainFor(width, 4), [=](int64_t begin, int64_t end, int part) {
      Wide<F> *array = arrays.at(args.workspace, part, 0);
      forWideBlocks<F>(begin, end, width, [=](int64_t first, int64_t last) {
        int64_t length = (last - first) * width;
        Wide<F> *to = wideOutput(y + first * width, array);
        softmaxRows(wideInput(x + first * width, length, array), to, last - first, width);
        storeWide(to, y + first * width, length);
      });
    });
  };
  return makeKernel(run, [=](int threads) { return arrays.bytes(threads); });
}

PrepareResult prepareSoftmax(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &x = check.floatInput(0, 1);
  check.expectOutput(0, x);
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(
      x.dtype, [&](auto zero) { return makeSoftmax<decltype(zero)>(numRows(x), x.shape.back()); });
}

template <typename W>
void softmaxGradRows(const W *allY, const W *allDy, W *allDx, int64_t rows, int64_t width) {
  simd([=] {
    for (int64_t row = 0; row < rows; ++row) {
      const W *y = allY + row * width, *dy = allDy + row * width;
      W *dx = allDx + row * width;
      W sum = dotOf(y, dy, width);
#pragma omp simd
      for (int64_t i = 0; i < width; ++i)
        dx[i] = y[i] * (dy[i] - sum);
    }
  });
}

template <typename F> std::unique_ptr<Kernel> makeSoftmaxGrad(int64_t rows, int64_t width) {
  WideArrays<F> arrays(width, 2);
  auto run = [=](const KernelArguments &args) {
    const F *y = input<F>(args, 0), *dy = input<F>(args, 1);
    F *dx = output<F>(args, 0);
    parallelFor(args.threads, rows, grainFor(width, 2), [=](int64_t begin, int64_t end, int part) {
      Wide<F> *yArray = arrays.at(args.workspace, part, 0);
      Wide<F> *dyArray = arrays.at(args.workspace, part, 1);
      forWideBlocks<F>(begin, end, width, [=](int64_t first, int64_t last) {
        int64_t offset = first * width, length = (last - first) * width;
        Wide<F> *to = wideOutput(dx + offset, dyArray);
        softmaxGradRows(wideInput(y + offset, length, yArray),
                        wideInput(dy + offset, length, dyArray), to, last - first, width);
        storeWide(to, dx + offset, length);
      });
    });
  };
  return makeKernel(run, [=](int threads) { return arrays.bytes(threads); });
}

PrepareResult prepareSoftmaxGrad(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  const TensorType &y = check.floatInput(0, 1);
  check.expectInput(1, y);
  check.expectOutput(0, y);
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(y.dtype, [&](auto zero) {
    return makeSoftmaxGrad<decltype(zero)>(numRows(y), y.shape.back());
  });
}

} // namespace

std::span<const KernelEntry> softmaxKernels() {
  static constexpr KernelEntry entries[] = {
      {"softmax", prepareSoftmax},
      {"softmax_grad", prepareSoftmaxGrad},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
