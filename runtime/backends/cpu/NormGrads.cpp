//===- NormGrads.cpp - Gradients of layer norm and RMS norm ---------------===//
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

#include "runtime/backends/cpu/Norms.h"

#include "calls/RowCalls.h"
#include "runtime/backends/cpu/WideBlocks.h"

namespace dtc::runtime::cpu {

namespace {

/// The bytes of `width` sums for each thread, at the start of the workspace.
template <typename W> size_t sumsBytes(int threads, int64_t width) {
  return static_cast<size_t>(threads) * arrayBytes<W>(width);
}

/// Runs rows(begin, end, sums, part) on each part of the rows with its own `width` sums, which lie
/// one after the other from the start of the workspace and are 0 at first. `grain` is that of
/// parallelFor.
template <typename W, typename Rows>
void sumOverRows(const CpuArguments &args, int64_t numRows, int64_t grain, int64_t width,
                 const Rows &rows) {
  W *sums = static_cast<W *>(args.workspace);
  forParts(numParts(args.threads, numRows, grain), [=](int part) {
    int parts = numParts(args.threads, numRows, grain);
    W *own = sums + part * width;
    std::fill_n(own, width, W(0));
    rows(partBegin(numRows, parts, part), partBegin(numRows, parts, part + 1), own, part);
  });
}

/// total[i] = the sum over parts of sums[part * stride + i].
template <typename W>
void addParts(const W *sums, int parts, int64_t stride, W *total, int64_t width) {
  simd([=] {
    for (int part = 0; part < parts; ++part) {
      const W *own = sums + part * stride;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i)
        total[i] = part == 0 ? own[i] : total[i] + own[i];
    }
  });
}

/// Adds to dgamma and dbeta what the rows contribute.
template <typename W>
void layerNormGradRows(const W *allX, const W *gamma, const W *means, const W *rstds,
                       const W *allDy, W *allDx, W *dgamma, W *dbeta, int64_t rows, int64_t width) {
  simd([=] {
    for (int64_t row = 0; row < rows; ++row) {
      const W *x = allX + row * width, *dy = allDy + row * width;
      W *dx = allDx + row * width;
      W mean = means[row], rstd = rstds[row];
      W sum = 0, dot = 0; // of dxhat, of dxhat * xhat
#pragma omp simd reduction(+ : sum, dot)
      for (int64_t i = 0; i < width; ++i) {
        W xhat = (x[i] - mean) * rstd;
        W dxhat = dy[i] * gamma[i];
        sum += dxhat;
        dot += dxhat * xhat;
        dgamma[i] += dy[i] * xhat;
        dbeta[i] += dy[i];
      }
      sum /= static_cast<W>(width);
      dot /= static_cast<W>(width);
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) {
        W xhat = (x[i] - mean) * rstd;
        dx[i] = rstd * (dy[i] * gamma[i] - sum - xhat * dot);
      }
    }
  });
}

template <typename F> std::unique_ptr<CpuKernel> makeLayerNormGrad(int64_t rows, int64_t width) {
  using W = Wide<F>;
  int64_t grain = grainFor(width, 4);
  WideArrays<F> arrays(width, 3);
  auto run = [=](const CpuArguments &args) {
    const F *x = input<F>(args, 0), *gamma = input<F>(args, 1), *dy = input<F>(args, 4);
    const W *means = input<W>(args, 2), *rstds = input<W>(args, 3);
    F *dx = output<F>(args, 0);
    W *sums = static_cast<W *>(args.workspace);
    void *scratch =
        static_cast<std::byte *>(args.workspace) + sumsBytes<W>(args.threads, 2 * width);
    sumOverRows<W>(args, rows, grain, 2 * width, [=](int64_t begin, int64_t end, W *own, int part) {
      W *xArray = arrays.at(scratch, part, 0), *dyArray = arrays.at(scratch, part, 1);
      const W *wideGamma = wideInput(gamma, width, arrays.at(scratch, part, 2));
      forWideBlocks<F>(begin, end, width, [=](int64_t first, int64_t last) {
        int64_t offset = first * width, length = (last - first) * width;
        W *to = wideOutput(dx + offset, dyArray);
        layerNormGradRows(wideInput(x + offset, length, xArray), wideGamma, means + first,
                          rstds + first, wideInput(dy + offset, length, dyArray), to, own,
                          own + width, last - first, width);
        storeWide(to, dx + offset, length);
      });
    });
    int parts = numParts(args.threads, rows, grain);
    addParts(sums, parts, 2 * width, output<W>(args, 1), width);
    addParts(sums + width, parts, 2 * width, output<W>(args, 2), width);
  };
  return makeKernel(
      run, [=](int threads) { return sumsBytes<W>(threads, 2 * width) + arrays.bytes(threads); });
}

} // namespace

PrepareResult prepareLayerNormGrad(const RowShape &shape) {
  return withFloatType(shape.dtype, [&](auto zero) {
    return makeLayerNormGrad<decltype(zero)>(shape.rows, shape.width);
  });
}

namespace {

/// Adds to dgamma what the rows contribute.
template <typename W>
void rmsNormGradRows(const W *allX, const W *gamma, const W *rstds, const W *allDy, W *allDx,
                     W *dgamma, int64_t rows, int64_t width) {
  simd([=] {
    for (int64_t row = 0; row < rows; ++row) {
      const W *x = allX + row * width, *dy = allDy + row * width;
      W *dx = allDx + row * width;
      W rstd = rstds[row];
      W dot = 0; // of dxhat * xhat
#pragma omp simd reduction(+ : dot)
      for (int64_t i = 0; i < width; ++i) {
        W xhat = x[i] * rstd;
        dot += dy[i] * gamma[i] * xhat;
        dgamma[i] += dy[i] * xhat;
      }
      dot /= static_cast<W>(width);
#pragma omp simd
      for (int64_t i = 0; i < width; ++i)
        dx[i] = rstd * (dy[i] * gamma[i] - x[i] * rstd * dot);
    }
  });
}

template <typename F> std::unique_ptr<CpuKernel> makeRmsNormGrad(int64_t rows, int64_t width) {
  using W = Wide<F>;
  int64_t grain = grainFor(width, 4);
  WideArrays<F> arrays(width, 3);
  auto run = [=](const CpuArguments &args) {
    const F *x = input<F>(args, 0), *gamma = input<F>(args, 1), *dy = input<F>(args, 3);
    const W *rstds = input<W>(args, 2);
    F *dx = output<F>(args, 0);
    void *scratch = static_cast<std::byte *>(args.workspace) + sumsBytes<W>(args.threads, width);
    sumOverRows<W>(args, rows, grain, width, [=](int64_t begin, int64_t end, W *own, int part) {
      W *xArray = arrays.at(scratch, part, 0), *dyArray = arrays.at(scratch, part, 1);
      const W *wideGamma = wideInput(gamma, width, arrays.at(scratch, part, 2));
      forWideBlocks<F>(begin, end, width, [=](int64_t first, int64_t last) {
        int64_t offset = first * width, length = (last - first) * width;
        W *to = wideOutput(dx + offset, dyArray);
        rmsNormGradRows(wideInput(x + offset, length, xArray), wideGamma, rstds + first,
                        wideInput(dy + offset, length, dyArray), to, own, last - first, width);
        storeWide(to, dx + offset, length);
      });
    });
    addParts(static_cast<const W *>(args.workspace), numParts(args.threads, rows, grain), width,
             output<W>(args, 1), width);
  };
  return makeKernel(
      run, [=](int threads) { return sumsBytes<W>(threads, width) + arrays.bytes(threads); });
}

} // namespace

PrepareResult prepareRmsNormGrad(const RowShape &shape) {
  return withFloatType(shape.dtype, [&](auto zero) {
    return makeRmsNormGrad<decltype(zero)>(shape.rows, shape.width);
  });
}

} // namespace dtc::runtime::cpu
