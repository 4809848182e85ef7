//===- ScaledProducts.cpp - Products of numbers of 8 bits -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/ScaledCalls.h"
#include "runtime/backends/cpu/Accumulate.h"
#include "runtime/backends/cpu/KernelSupport.h"
#include "runtime/backends/cpu/WideBlocks.h"
#include "support/Float8.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace dtc::runtime::cpu {

namespace {

/// Calls function(Q()) with the type that `dtype` names.
template <typename Function> auto withFloat8(DType dtype, const Function &function) {
  return dtype == DType::F8E5M2 ? function(Float8E5M2()) : function(Float8E4M3());
}

/// The largest absolute value of some elements; a NaN where one is.
template <typename F> double largestOf(const F *x, int64_t count) {
  using W = Wide<F>;
  double result = 0;
  double *slot = &result;
  simd([=] {
    W most = 0;
    uint32_t isNaN = 0;
#pragma omp simd reduction(max : most) reduction(| : isNaN)
    for (int64_t i = 0; i < count; ++i) {
      W value = std::abs(static_cast<W>(x[i]));
      isNaN |= static_cast<uint32_t>(value != value);
      most = value > most ? value : most;
    }
    *slot = isNaN ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(most);
  });
  return result;
}

template <typename F> std::unique_ptr<CpuKernel> makeLargest(const LargestMagnitudeCall &call) {
  return makeKernel(
      [call](const CpuArguments &args) {
        const F *x = input<F>(args, 0);
        WorkspaceCursor workspace(args.workspace);
        double *partials = workspace.take<double>(numReduceTiles(call.elements));
        *output<float>(args, 0) = static_cast<float>(reduceInTiles(
            args.threads, call.elements, 0.0, partials,
            [=](int64_t begin, int64_t end) { return largestOf(x + begin, end - begin); },
            [](double a, double b) { return a > b || a != a ? a : b; }));
      },
      [call](int) { return arrayBytes<double>(numReduceTiles(call.elements)); });
}

template <typename F, typename Q>
std::unique_ptr<CpuKernel> makeQuantize(const QuantizeF8Call &call) {
  return makeKernel([call](const CpuArguments &args) {
    const F *x = input<F>(args, 0);
    float scale = scaleToFloat8(*input<float>(args, 1), Q::format);
    *output<float>(args, 1) = 1 / scale;
    Q *y = output<Q>(args, 0);
    parallelFor(args.threads, call.elements, kElementGrain, [=](int64_t begin, int64_t end, int) {
      simd([=] {
        for (int64_t i = begin; i < end; ++i)
          y[i] = Q(static_cast<float>(x[i]) * scale);
      });
    });
  });
}

/// The einsum of both operands in bf16, times both scalars. Powers of two change no digit of a
/// product, so that it is rounded once.
class ScaledProductKernel final : public CpuKernel {
public:
  ScaledProductKernel(ScaledProductCall given, std::unique_ptr<CpuKernel> einsum)
      : call(std::move(given)), einsum(std::move(einsum)) {}

  size_t workspaceBytesFor(int threads) const override {
    return arrayBytes<BFloat16>(call.lhsElements) + arrayBytes<BFloat16>(call.rhsElements) +
           einsum->workspaceBytesFor(threads);
  }

  void run(const CpuArguments &args) const override {
    WorkspaceCursor workspace(args.workspace);
    auto *lhs = workspace.take<BFloat16>(call.lhsElements);
    auto *rhs = workspace.take<BFloat16>(call.rhsElements);
    widen(call.lhs, args.inputs[0], call.lhsElements, lhs, args.threads);
    widen(call.rhs, args.inputs[1], call.rhsElements, rhs, args.threads);
    CpuArguments inner = args;
    const std::array<void *, 2> inputs{lhs, rhs};
    inner.inputs = inputs;
    inner.workspace = workspace.take<std::byte>(0);
    einsum->run(inner);
    const float *left = input<float>(args, 2), *right = input<float>(args, 3);
    if (call.result == DType::F32)
      scale(output<float>(args, 0), *left, *right, args.threads);
    else
      scale(output<BFloat16>(args, 0), *left, *right, args.threads);
  }

private:
  static void widen(DType dtype, const void *from, int64_t count, BFloat16 *to, int threads) {
    withFloat8(dtype, [&](auto zero) {
      using Q = decltype(zero);
      const Q *x = static_cast<const Q *>(from);
      parallelFor(threads, count, kElementGrain, [=](int64_t begin, int64_t end, int) {
        simd([=] {
          for (int64_t i = begin; i < end; ++i)
            to[i] = BFloat16(static_cast<float>(x[i]));
        });
      });
    });
  }

  // One after the other: the product of both scalars may leave the range of f32.
  template <typename R> void scale(R *y, float left, float right, int threads) const {
    parallelFor(threads, call.resultElements, kElementGrain, [=](int64_t begin, int64_t end, int) {
      simd([=] {
        for (int64_t i = begin; i < end; ++i)
          y[i] = R(static_cast<float>(y[i]) * left * right);
      });
    });
  }

  ScaledProductCall call;
  std::unique_ptr<CpuKernel> einsum;
};

PrepareResult prepareLargestMagnitude(const KernelSignature &signature) {
  Expected<LargestMagnitudeCall> call = checkLargestMagnitude(signature);
  if (!call)
    return call.error();
  return withFloatType(call->dtype, [&](auto zero) { return makeLargest<decltype(zero)>(*call); });
}

PrepareResult prepareQuantizeF8(const KernelSignature &signature) {
  Expected<QuantizeF8Call> call = checkQuantizeF8(signature);
  if (!call)
    return call.error();
  return withFloatType(call->from, [&](auto from) {
    return withFloat8(call->to,
                      [&](auto to) { return makeQuantize<decltype(from), decltype(to)>(*call); });
  });
}

PrepareResult prepareScaledProduct(const KernelSignature &signature) {
  Expected<ScaledProductCall> call = checkScaledProduct(signature);
  if (!call)
    return call.error();
  PrepareResult einsum = einsumKernels().front().prepare(call->widened);
  if (!einsum)
    return einsum.error();
  return std::unique_ptr<CpuKernel>(
      std::make_unique<ScaledProductKernel>(std::move(*call), std::move(*einsum)));
}

} // namespace

std::span<const KernelEntry> scaledProductKernels() {
  static constexpr KernelEntry entries[] = {
      {"largest_magnitude", prepareLargestMagnitude},
      {"quantize_f8", prepareQuantizeF8},
      {"scaled_product", prepareScaledProduct},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
