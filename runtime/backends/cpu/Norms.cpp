//===- Norms.cpp - Layer norm and RMS norm --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// In the comments xhat is the normalised row and dxhat = dy * gamma its gradient. The gradients of
// gamma and beta are sums over all rows: each part of the rows has its own sums in the workspace,
// which are added in order at the end.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Accumulate.h"
#include "runtime/backends/cpu/KernelSupport.h"

#include <cmath>

namespace dtc::runtime::cpu {

namespace {

template <typename F>
std::unique_ptr<Kernel> makeLayerNorm(int64_t rows, int64_t width, double eps) {
  return makeKernel([=](const KernelArguments &args) {
    const F *allX = input<F>(args, 0), *gamma = input<F>(args, 1), *beta = input<F>(args, 2);
    F *allY = output<F>(args, 0), *allMeans = output<F>(args, 1), *allRstds = output<F>(args, 2);
    parallelFor(args.threads, rows, grainFor(width, 2), [=](int64_t begin, int64_t end, int) {
      simd([=] {
        for (int64_t row = begin; row < end; ++row) {
          const F *x = allX + row * width;
          F *y = allY + row * width;
          F mean = sumOf(x, width) / static_cast<F>(width);
          F squares = 0;
#pragma omp simd reduction(+ : squares)
          for (int64_t i = 0; i < width; ++i)
            squares += (x[i] - mean) * (x[i] - mean);
          F rstd = F(1) / std::sqrt(squares / static_cast<F>(width) + static_cast<F>(eps));
#pragma omp simd
          for (int64_t i = 0; i < width; ++i)
            y[i] = (x[i] - mean) * rstd * gamma[i] + beta[i];
          allMeans[row] = mean;
          allRstds[row] = rstd;
        }
      });
    });
  });
}

PrepareResult prepareLayerNorm(const KernelSignature &signature) {
  SignatureChecker check(signature, 3, 3);
  const TensorType &x = check.floatInput(0, 1);
  if (!check.failed()) {
    check.expectInput(1, TensorType{x.dtype, {x.shape.back()}});
    check.expectInput(2, TensorType{x.dtype, {x.shape.back()}});
  }
  check.expectOutput(0, x);
  check.expectOutput(1, dropLast(x));
  check.expectOutput(2, dropLast(x));
  double eps = check.floatAttribute("eps");
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(x.dtype, [&](auto zero) {
    return makeLayerNorm<decltype(zero)>(numRows(x), x.shape.back(), eps);
  });
}

template <typename F> std::unique_ptr<Kernel> makeRmsNorm(int64_t rows, int64_t width, double eps) {
  return makeKernel([=](const KernelArguments &args) {
    const F *allX = input<F>(args, 0), *gamma = input<F>(args, 1);
    F *allY = output<F>(args, 0), *allRstds = output<F>(args, 1);
    parallelFor(args.threads, rows, grainFor(width, 2), [=](int64_t begin, int64_t end, int) {
      simd([=] {
        for (int64_t row = begin; row < end; ++row) {
          const F *x = allX + row * width;
          F *y = allY + row * width;
          F meanSquare = dotOf(x, x, width) / static_cast<F>(width);
          F rstd = F(1) / std::sqrt(meanSquare + static_cast<F>(eps));
#pragma omp simd
          for (int64_t i = 0; i < width; ++i)
            y[i] = x[i] * rstd * gamma[i];
          allRstds[row] = rstd;
        }
      });
    });
  });
}

PrepareResult prepareRmsNorm(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 2);
  const TensorType &x = check.floatInput(0, 1);
  if (!check.failed())
    check.expectInput(1, TensorType{x.dtype, {x.shape.back()}});
  check.expectOutput(0, x);
  check.expectOutput(1, dropLast(x));
  double eps = check.floatAttribute("eps");
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(x.dtype, [&](auto zero) {
    return makeRmsNorm<decltype(zero)>(numRows(x), x.shape.back(), eps);
  });
}

/// Zeroes, then runs rows(begin, end, sums) on each part of the rows with its own `width` sums, and
/// adds the sums of the parts to `total` in order. `grain` and `rows` are those of parallelFor.
template <typename F, typename Rows>
void sumOverRows(const KernelArguments &args, int64_t numRows, int64_t grain, int64_t width,
                 const Rows &rows) {
  F *sums = static_cast<F *>(args.workspace);
  forParts(numParts(args.threads, numRows, grain), [=](int part) {
    int parts = numParts(args.threads, numRows, grain);
    F *own = sums + part * width;
    std::fill_n(own, width, F(0));
    rows(partBegin(numRows, parts, part), partBegin(numRows, parts, part + 1), own);
  });
}

/// total[i] = the sum over parts of sums[part * stride + i].
template <typename F>
void addParts(const F *sums, int parts, int64_t stride, F *total, int64_t width) {
  simd([=] {
    for (int part = 0; part < parts; ++part) {
      const F *own = sums + part * stride;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i)
        total[i] = part == 0 ? own[i] : total[i] + own[i];
    }
  });
}

template <typename F> std::unique_ptr<Kernel> makeLayerNormGrad(int64_t rows, int64_t width) {
  int64_t grain = grainFor(width, 4);
  auto run = [=](const KernelArguments &args) {
    const F *allX = input<F>(args, 0), *gamma = input<F>(args, 1), *means = input<F>(args, 2);
    const F *rstds = input<F>(args, 3), *allDy = input<F>(args, 4);
    F *allDx = output<F>(args, 0), *dgammaOut = output<F>(args, 1), *dbetaOut = output<F>(args, 2);
    sumOverRows<F>(args, rows, grain, 2 * width, [=](int64_t begin, int64_t end, F *sums) {
      simd([=] {
        F *dgamma = sums, *dbeta = sums + width;
        for (int64_t row = begin; row < end; ++row) {
          const F *x = allX + row * width, *dy = allDy + row * width;
          F *dx = allDx + row * width;
          F mean = means[row], rstd = rstds[row];
          F sum = 0, dot = 0; // of dxhat, of dxhat * xhat
#pragma omp simd reduction(+ : sum, dot)
          for (int64_t i = 0; i < width; ++i) {
            F xhat = (x[i] - mean) * rstd;
            F dxhat = dy[i] * gamma[i];
            sum += dxhat;
            dot += dxhat * xhat;
            dgamma[i] += dy[i] * xhat;
            dbeta[i] += dy[i];
          }
          sum /= static_cast<F>(width);
          dot /= static_cast<F>(width);
#pragma omp simd
          for (int64_t i = 0; i < width; ++i) {
            F xhat = (x[i] - mean) * rstd;
            dx[i] = rstd * (dy[i] * gamma[i] - sum - xhat * dot);
          }
        }
      });
    });
    const F *sums = static_cast<const F *>(args.workspace);
    int parts = numParts(args.threads, rows, grain);
    addParts(sums, parts, 2 * width, dgammaOut, width);
    addParts(sums + width, parts, 2 * width, dbetaOut, width);
  };
  return makeKernel(run, [=](int threads) { return threads * arrayBytes<F>(2 * width); });
}

PrepareResult prepareLayerNormGrad(const KernelSignature &signature) {
  SignatureChecker check(signature, 5, 3);
  const TensorType &x = check.floatInput(0, 1);
  TensorType parameter{x.dtype, {check.failed() ? 0 : x.shape.back()}};
  check.expectInput(1, parameter);
  check.expectInput(2, dropLast(x));
  check.expectInput(3, dropLast(x));
  check.expectInput(4, x);
  check.expectOutput(0, x);
  check.expectOutput(1, parameter);
  check.expectOutput(2, parameter);
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(x.dtype, [&](auto zero) {
    return makeLayerNormGrad<decltype(zero)>(numRows(x), x.shape.back());
  });
}

template <typename F> std::unique_ptr<Kernel> makeRmsNormGrad(int64_t rows, int64_t width) {
  int64_t grain = grainFor(width, 4);
  auto run = [=](const KernelArguments &args) {
    const F *allX = input<F>(args, 0), *gamma = input<F>(args, 1), *rstds = input<F>(args, 2);
    const F *allDy = input<F>(args, 3);
    F *allDx = output<F>(args, 0), *dgammaOut = output<F>(args, 1);
    sumOverRows<F>(args, rows, grain, width, [=](int64_t begin, int64_t end, F *dgamma) {
      simd([=] {
        for (int64_t row = begin; row < end; ++row) {
          const F *x = allX + row * width, *dy = allDy + row * width;
          F *dx = allDx + row * width;
          F rstd = rstds[row];
          F dot = 0; // of dxhat * xhat
#pragma omp simd reduction(+ : dot)
          for (int64_t i = 0; i < width; ++i) {
            F xhat = x[i] * rstd;
            dot += dy[i] * gamma[i] * xhat;
            dgamma[i] += dy[i] * xhat;
          }
          dot /= static_cast<F>(width);
#pragma omp simd
          for (int64_t i = 0; i < width; ++i)
            dx[i] = rstd * (dy[i] * gamma[i] - x[i] * rstd * dot);
        }
      });
    });
    addParts(static_cast<const F *>(args.workspace), numParts(args.threads, rows, grain), width,
             dgammaOut, width);
  };
  return makeKernel(run, [=](int threads) { return threads * arrayBytes<F>(width); });
}

PrepareResult prepareRmsNormGrad(const KernelSignature &signature) {
  SignatureChecker check(signature, 4, 2);
  const TensorType &x = check.floatInput(0, 1);
  TensorType parameter{x.dtype, {check.failed() ? 0 : x.shape.back()}};
  check.expectInput(1, parameter);
  check.expectInput(2, dropLast(x));
  check.expectInput(3, x);
  check.expectOutput(0, x);
  check.expectOutput(1, parameter);
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(x.dtype, [&](auto zero) {
    return makeRmsNormGrad<decltype(zero)>(numRows(x), x.shape.back());
  });
}

} // namespace

std::span<const KernelEntry> normKernels() {
  static constexpr KernelEntry entries[] = {
      {"layer_norm", prepareLayerNorm},
      {"layer_norm_grad", prepareLayerNormGrad},
      {"rms_norm", prepareRmsNorm},
      {"rms_norm_grad", prepareRmsNormGrad},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
