//===- Norms.cpp - Layer norm and RMS norm --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Norms.h"

#include "calls/RowCalls.h"
#include "runtime/backends/cpu/Accumulate.h"
#include "runtime/backends/cpu/WideBlocks.h"

#include <cmath>

namespace dtc::runtime::cpu {

namespace {

template <typename W>
void layerNormRows(const W *allX, const W *gamma, const W *beta, W *allY, W *means, W *rstds,
                   int64_t rows, int64_t width, double eps) {
  simd([=] {
    for (int64_t row = 0; row < rows; ++row) {
      const W *x = allX + row * width;
      W *y = allY + row * width;
      W mean = sumOf(x, width) / static_cast<W>(width);
      W squares = 0;
#pragma omp simd reduction(+ : squares)
      for (int64_t i = 0; i < width; ++i)
        squares += (x[i] - mean) * (x[i] - mean);
      W rstd = W(1) / std::sqrt(squares / static_cast<W>(width) + static_cast<W>(eps));
#pragma omp simd
      for (int64_t i = 0; i < width; ++i)
        y[i] = (x[i] - mean) * rstd * gamma[i] + beta[i];
      means[row] = mean;
      rstds[row] = rstd;
    }
  });
}

template <typename F>
std::unique_ptr<CpuKernel> makeLayerNorm(int64_t rows, int64_t width, double eps) {
  using W = Wide<F>;
  WideArrays<F> arrays(width, 3);
  auto run = [=](const CpuArguments &args) {
    const F *x = input<F>(args, 0), *gamma = input<F>(args, 1), *beta = input<F>(args, 2);
    F *y = output<F>(args, 0);
    W *means = output<W>(args, 1), *rstds = output<W>(args, 2);
    parallelFor(args.threads, rows, grainFor(width, 2), [=](int64_t begin, int64_t end, int part) {
      W *array = arrays.at(args.workspace, part, 0);
      const W *wideGamma = wideInput(gamma, width, arrays.at(args.workspace, part, 1));
      const W *wideBeta = wideInput(beta, width, arrays.at(args.workspace, part, 2));
      forWideBlocks<F>(begin, end, width, [=](int64_t first, int64_t last) {
        int64_t offset = first * width, length = (last - first) * width;
        W *to = wideOutput(y + offset, array);
        layerNormRows(wideInput(x + offset, length, array), wideGamma, wideBeta, to, means + first,
                      rstds + first, last - first, width, eps);
        storeWide(to, y + offset, length);
      });
    });
  };
  return makeKernel(run, [=](int threads) { return arrays.bytes(threads); });
}

PrepareResult prepareLayerNorm(const NormCall &call) {
  return withFloatType(call.shape.dtype, [&](auto zero) {
    return makeLayerNorm<decltype(zero)>(call.shape.rows, call.shape.width, call.eps);
  });
}

template <typename W>
void rmsNormRows(const W *allX, const W *gamma, W *allY, W *rstds, int64_t rows, int64_t width,
                 double eps) {
  simd([=] {
    for (int64_t row = 0; row < rows; ++row) {
      const W *x = allX + row * width;
      W *y = allY + row * width;
      W meanSquare = dotOf(x, x, width) / static_cast<W>(width);
      W rstd = W(1) / std::sqrt(meanSquare + static_cast<W>(eps));
#pragma omp simd
      for (int64_t i = 0; i < width; ++i)
        y[i] = x[i] * rstd * gamma[i];
      rstds[row] = rstd;
    }
  });
}

template <typename F>
std::unique_ptr<CpuKernel> makeRmsNorm(int64_t rows, int64_t width, double eps) {
  using W = Wide<F>;
  WideArrays<F> arrays(width, 2);
  auto run = [=](const CpuArguments &args) {
    const F *x = input<F>(args, 0), *gamma = input<F>(args, 1);
    F *y = output<F>(args, 0);
    W *rstds = output<W>(args, 1);
    parallelFor(args.threads, rows, grainFor(width, 2), [=](int64_t begin, int64_t end, int part) {
      W *array = arrays.at(args.workspace, part, 0);
      const W *wideGamma = wideInput(gamma, width, arrays.at(args.workspace, part, 1));
      forWideBlocks<F>(begin, end, width, [=](int64_t first, int64_t last) {
        int64_t offset = first * width, length = (last - first) * width;
        W *to = wideOutput(y + offset, array);
        rmsNormRows(wideInput(x + offset, length, array), wideGamma, to, rstds + first,
                    last - first, width, eps);
        storeWide(to, y + offset, length);
      });
    });
  };
  return makeKernel(run, [=](int threads) { return arrays.bytes(threads); });
}

PrepareResult prepareRmsNorm(const NormCall &call) {
  return withFloatType(call.shape.dtype, [&](auto zero) {
    return makeRmsNorm<decltype(zero)>(call.shape.rows, call.shape.width, call.eps);
  });
}

} // namespace

std::span<const KernelEntry> normKernels() {
  static constexpr KernelEntry entries[] = {
      {"layer_norm", prepareBy<checkLayerNorm, prepareLayerNorm>},
      {"layer_norm_grad", prepareBy<checkLayerNormGrad, prepareLayerNormGrad>},
      {"rms_norm", prepareBy<checkRmsNorm, prepareRmsNorm>},
      {"rms_norm_grad", prepareBy<checkRmsNormGrad, prepareRmsNormGrad>},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
