//===- CrossEntropy.cpp - The loss of a classification --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/KernelSupport.h"
#include "runtime/backends/cpu/Softmax.h"

namespace dtc::runtime::cpu {

namespace {

template <typename F> std::unique_ptr<Kernel> makeCrossEntropy(int64_t rows, int64_t width) {
  return makeKernel([=](const KernelArguments &args) {
    const F *logits = input<F>(args, 0);
    const int32_t *labels = input<int32_t>(args, 1);
    F *loss = output<F>(args, 0);
    F *lse = output<F>(args, 1);
    parallelFor(args.threads, rows, grainFor(width, 2), [=](int64_t begin, int64_t end, int) {
      simd([=] {
        for (int64_t row = begin; row < end; ++row) {
          const F *x = logits + row * width;
          int32_t label = labels[row];
          lse[row] = logSumExp(x, width);
          loss[row] = lse[row] - (label >= 0 && label < width ? x[label] : F(0));
        }
      });
    });
  });
}

PrepareResult prepareCrossEntropy(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 2);
  const TensorType &logits = check.floatInput(0, 1);
  check.expectInput(1, withElements(dropLast(logits), DType::I32));
  check.expectOutput(0, dropLast(logits));
  check.expectOutput(1, dropLast(logits));
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(logits.dtype, [&](auto zero) {
    return makeCrossEntropy<decltype(zero)>(numRows(logits), logits.shape.back());
  });
}

template <typename F> std::unique_ptr<Kernel> makeCrossEntropyGrad(int64_t rows, int64_t width) {
  return makeKernel([=](const KernelArguments &args) {
    const F *logits = input<F>(args, 0);
    const int32_t *labels = input<int32_t>(args, 1);
    const F *lse = input<F>(args, 2);
    const F *dloss = input<F>(args, 3);
    F *dlogits = output<F>(args, 0);
    parallelFor(args.threads, rows, grainFor(width, 2), [=](int64_t begin, int64_t end, int) {
      simd([=] {
        for (int64_t row = begin; row < end; ++row) {
          const F *x = logits + row * width;
          F *dx = dlogits + row * width;
          F shift = lse[row], factor = dloss[row];
#pragma omp simd
          for (int64_t i = 0; i < width; ++i)
            dx[i] = vmath::exp(x[i] - shift) * factor;
          int32_t label = labels[row];
          if (label >= 0 && label < width)
            dx[label] -= factor;
        }
      });
    });
  });
}

PrepareResult prepareCrossEntropyGrad(const KernelSignature &signature) {
  SignatureChecker check(signature, 4, 1);
  const TensorType &logits = check.floatInput(0, 1);
  check.expectInput(1, withElements(dropLast(logits), DType::I32));
  check.expectInput(2, dropLast(logits));
  check.expectInput(3, dropLast(logits));
  check.expectOutput(0, logits);
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(logits.dtype, [&](auto zero) {
    return makeCrossEntropyGrad<decltype(zero)>(numRows(logits), logits.shape.back());
  });
}

} // namespace

std::span<const KernelEntry> crossEntropyKernels() {
  static constexpr KernelEntry entries[] = {
      {"cross_entropy", prepareCrossEntropy},
      {"cross_entropy_grad", prepareCrossEntropyGrad},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
