//===- Optimizer.cpp - Updates of parameters ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/KernelSupport.h"

#include <cmath>

namespace dtc::runtime::cpu {

namespace {

struct AdamWAttributes {
  double beta1, beta2, eps, weightDecay;
};

template <typename F>
std::unique_ptr<Kernel> makeAdamW(const AdamWAttributes &attributes, int64_t count) {
  return makeKernel([=](const KernelArguments &args) {
    const F *p = input<F>(args, 0), *g = input<F>(args, 1);
    const F *m = input<F>(args, 2), *v = input<F>(args, 3);
    F *pOut = output<F>(args, 0), *mOut = output<F>(args, 1), *vOut = output<F>(args, 2);
    double lr = *input<F>(args, 4), step = *input<F>(args, 5);
    F scale = *input<F>(args, 6);
    // What depends on the step alone, in double: 1 - beta^step cancels.
    F beta1 = static_cast<F>(attributes.beta1), rest1 = static_cast<F>(1 - attributes.beta1);
    F beta2 = static_cast<F>(attributes.beta2), rest2 = static_cast<F>(1 - attributes.beta2);
    F stepSize = static_cast<F>(lr / (1 - std::pow(attributes.beta1, step)));
    F correction = static_cast<F>(1 / std::sqrt(1 - std::pow(attributes.beta2, step)));
    F eps = static_cast<F>(attributes.eps);
    F decay = static_cast<F>(1 - lr * attributes.weightDecay);
    parallelFor(args.threads, count, elementGrain / 4, [=](int64_t begin, int64_t end, int) {
      simd([=] {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) {
          F gradient = g[i] * scale;
          F first = beta1 * m[i] + rest1 * gradient;
          F second = beta2 * v[i] + rest2 * (gradient * gradient);
          mOut[i] = first;
          vOut[i] = second;
          pOut[i] = p[i] * decay - stepSize * first / (std::sqrt(second) * correction + eps);
        }
      });
    });
  });
}

PrepareResult prepareAdamW(const KernelSignature &signature) {
  SignatureChecker check(signature, 7, 3);
  const TensorType &p = check.floatInput(0);
  for (size_t i = 1; i < 4; ++i)
    check.expectInput(i, p);
  for (size_t i = 4; i < 7; ++i)
    check.expectInput(i, TensorType{p.dtype, {}});
  for (size_t i = 0; i < 3; ++i)
    check.expectOutput(i, p);
  AdamWAttributes attributes;
  attributes.beta1 = check.floatAttributeInRange("beta1", 0, 1);
  attributes.beta2 = check.floatAttributeInRange("beta2", 0, 1);
  attributes.eps = check.floatAttribute("eps");
  attributes.weightDecay = check.floatAttribute("weight_decay");
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(
      p.dtype, [&](auto zero) { return makeAdamW<decltype(zero)>(attributes, p.numElements()); });
}

template <typename F>
std::unique_ptr<Kernel> makeSgd(double momentum, double weightDecay, int64_t count) {
  return makeKernel([=](const KernelArguments &args) {
    const F *p = input<F>(args, 0), *g = input<F>(args, 1), *m = input<F>(args, 2);
    F lr = *input<F>(args, 3), scale = *input<F>(args, 4);
    F *pOut = output<F>(args, 0), *mOut = output<F>(args, 1);
    F keep = static_cast<F>(momentum), decay = static_cast<F>(weightDecay);
    parallelFor(args.threads, count, elementGrain / 2, [=](int64_t begin, int64_t end, int) {
      simd([=] {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) {
          F velocity = keep * m[i] + (g[i] * scale + decay * p[i]);
          mOut[i] = velocity;
          pOut[i] = p[i] - lr * velocity;
        }
      });
    });
  });
}

PrepareResult prepareSgd(const KernelSignature &signature) {
  SignatureChecker check(signature, 5, 2);
  const TensorType &p = check.floatInput(0);
  check.expectInput(1, p);
  check.expectInput(2, p);
  check.expectInput(3, TensorType{p.dtype, {}});
  check.expectInput(4, TensorType{p.dtype, {}});
  check.expectOutput(0, p);
  check.expectOutput(1, p);
  double momentum = check.floatAttribute("momentum");
  double weightDecay = check.floatAttribute("weight_decay");
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(p.dtype, [&](auto zero) {
    return makeSgd<decltype(zero)>(momentum, weightDecay, p.numElements());
  });
}

} // namespace

std::span<const KernelEntry> optimizerKernels() {
  static constexpr KernelEntry entries[] = {
      {"adamw", prepareAdamW},
      {"sgd", prepareSgd},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
