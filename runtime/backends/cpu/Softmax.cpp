//===- Softmax.cpp - Softmax over the last dimension ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Softmax.h"

#include "runtime/backends/cpu/KernelSupport.h"

namespace dtc::runtime::cpu {

namespace {

template <typename F> std::unique_ptr<Kernel> makeSoftmax(int64_t rows, int64_t width) {
  return makeKernel([=](const KernelArguments &args) {
    const F *x = input<F>(args, 0);
    F *y = output<F>(args, 0);
    parallelFor(args.threads, rows, grainFor(width, 4), [=](int64_t begin, int64_t end, int) {
      simd([=] {
        for (int64_t row = begin; row < end; ++row)
          softmaxRow(x + row * width, y + row * width, width);
      });
    });
  });
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

template <typename F> std::unique_ptr<Kernel> makeSoftmaxGrad(int64_t rows, int64_t width) {
  return makeKernel([=](const KernelArguments &args) {
    const F *allY = input<F>(args, 0);
    const F *allDy = input<F>(args, 1);
    F *allDx = output<F>(args, 0);
    parallelFor(args.threads, rows, grainFor(width, 2), [=](int64_t begin, int64_t end, int) {
      simd([=] {
        for (int64_t row = begin; row < end; ++row) {
          const F *y = allY + row * width, *dy = allDy + row * width;
          F *dx = allDx + row * width;
          F sum = dotOf(y, dy, width);
#pragma omp simd
          for (int64_t i = 0; i < width; ++i)
            dx[i] = y[i] * (dy[i] - sum);
        }
      });
    });
  });
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
