//===- Norms.cu - Layer norm and RMS norm ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/RowCalls.h"
#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/Columns.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/LargestMagnitude.h"

#include <limits>
#include <type_traits>
#include <vector>

namespace dtc::runtime::cuda {

namespace {

/// The operands of a call; an RMS norm has no beta and no means. `largest` becomes the largest
/// magnitude of y. Null: means, rstds or the largest magnitude that are not wanted.
template <typename F> struct NormOperands {
  const F *x, *gamma, *beta;
  F *y;
  Wide<F> *means, *rstds;
  float *largest = nullptr;
};

/// Neighbouring elements of a thread that has its part of a row in registers: as many of 16 bits as
/// of f32, so that they are added in the same order.
template <typename F> constexpr int kRowVector = sizeof(Wide<F>) == 8 ? 2 : 4;

/// Each row has a block. A thread has C vectors of the row, and the threads together have the whole
/// row, which is read once. `inVectors` says how elements are read, not in which order they are
/// added.
template <bool hasMean, int C, bool inVectors, typename F>
__global__ void __launch_bounds__(kMaxBlockThreads)
    rowNormKernel(const NormOperands<F> all, int64_t rows, int64_t width, Wide<F> eps) {
  using W = Wide<F>;
  constexpr int V = kRowVector<F>;
  W largest = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    auto firstOf = [](int c) { return (threadIdx.x + int64_t{c} * blockDim.x) * V; };
    Vector<F, V> x[C], gamma[C], beta[C];
#pragma unroll
    for (int c = 0; c < C; ++c)
      x[c] = loadColumns<V, inVectors>(all.x + row * width, firstOf(c), width);
#pragma unroll
    for (int c = 0; c < C; ++c) { // before the barriers, so that nothing waits for them after
      gamma[c] = loadColumns<V, inVectors>(all.gamma, firstOf(c), width);
      if constexpr (hasMean)
        beta[c] = loadColumns<V, inVectors>(all.beta, firstOf(c), width);
    }
    W mean = 0, squares = 0;
    if constexpr (hasMean) {
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int j = 0; j < V; ++j)
          mean += widen(x[c].at[j]);
      mean = reduceBlock<SumOf>(mean) / static_cast<W>(width);
    }
#pragma unroll
    for (int c = 0; c < C; ++c)
#pragma unroll
      for (int j = 0; j < V; ++j) {
        W difference = hasMean ? widen(x[c].at[j]) - mean : widen(x[c].at[j]);
        if (firstOf(c) + j < width)
          squares += difference * difference;
      }
    W rstd = W(1) / sqrt(reduceBlock<SumOf>(squares) / static_cast<W>(width) + eps);
#pragma unroll
    for (int c = 0; c < C; ++c) {
#pragma unroll
      for (int j = 0; j < V; ++j) {
        W value = widen(x[c].at[j]);
        if constexpr (hasMean)
          value = (value - mean) * rstd * widen(gamma[c].at[j]) + widen(beta[c].at[j]);
        else
          value = value * rstd * widen(gamma[c].at[j]);
        x[c].at[j] = narrow<F>(value);
        if (!inVectors && firstOf(c) + j < width) {
          all.y[row * width + firstOf(c) + j] = x[c].at[j];
          largest = largestOf(largest, Vector<F, 1>{{x[c].at[j]}});
        }
      }
      if (inVectors && firstOf(c) < width) {
        storeVector(all.y + row * width + firstOf(c), x[c]);
        largest = largestOf(largest, x[c]);
      }
    }
    if (threadIdx.x == 0) {
      if (hasMean && all.means)
        all.means[row] = mean;
      if (all.rstds)
        all.rstds[row] = rstd;
    }
  }
  raiseLargest(all.largest, largest);
}

// Where a block's threads have no registers for a row, it is read again in each pass.

template <typename F>
__global__ void __launch_bounds__(kMaxBlockThreads)
    layerNormKernel(const F *allX, const F *gamma, const F *beta, F *allY, Wide<F> *means,
                    Wide<F> *rstds, float *number, int64_t rows, int64_t width, Wide<F> eps) {
  using W = Wide<F>;
  W largest = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const F *x = allX + row * width;
    F *y = allY + row * width;
    W sum = 0;
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
      sum += widen(x[i]);
    W mean = reduceBlock<SumOf>(sum) / static_cast<W>(width);
    W squares = 0;
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
      W difference = widen(x[i]) - mean;
      squares += difference * difference;
    }
    W rstd = W(1) / sqrt(reduceBlock<SumOf>(squares) / static_cast<W>(width) + eps);
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
      F value = narrow<F>((widen(x[i]) - mean) * rstd * widen(gamma[i]) + widen(beta[i]));
      y[i] = value;
      largest = largestOf(largest, Vector<F, 1>{{value}});
    }
    if (threadIdx.x == 0) {
      if (means)
        means[row] = mean;
      if (rstds)
        rstds[row] = rstd;
    }
  }
  raiseLargest(number, largest);
}

template <typename F>
__global__ void __launch_bounds__(kMaxBlockThreads)
    rmsNormKernel(const F *allX, const F *gamma, F *allY, Wide<F> *rstds, float *number,
                  int64_t rows, int64_t width, Wide<F> eps) {
  using W = Wide<F>;
  W largest = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const F *x = allX + row * width;
    F *y = allY + row * width;
    W squares = 0;
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
      squares += widen(x[i]) * widen(x[i]);
    W rstd = W(1) / sqrt(reduceBlock<SumOf>(squares) / static_cast<W>(width) + eps);
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
      F value = narrow<F>(widen(x[i]) * rstd * widen(gamma[i]));
      y[i] = value;
      largest = largestOf(largest, Vector<F, 1>{{value}});
    }
    if (threadIdx.x == 0 && rstds)
      rstds[row] = rstd;
  }
  raiseLargest(number, largest);
}

template <bool hasMean, typename F>
MaybeError enqueueNorm(CudaQueue &queue, const NormCall &call, const NormOperands<F> &at) {
  constexpr int V = kRowVector<F>;
  if (MaybeError error = clearLargest(queue, {at.largest}))
    return error;
  int64_t rows = call.shape.rows, width = call.shape.width;
  auto eps = static_cast<Wide<F>>(call.eps);
  constexpr size_t bytes = sizeof(Vector<F, V>);
  bool inVectors = width % V == 0 && isAligned(at.x, bytes) && isAligned(at.gamma, bytes) &&
                   isAligned(at.beta, bytes) && isAligned(at.y, bytes);
  auto inRegisters = [&](auto vectors) {
    constexpr int C = decltype(vectors)::value;
    return launch(queue, blockPerRow(rows, (width + C * V - 1) / (C * V)),
                  inVectors ? rowNormKernel<hasMean, C, true, F>
                            : rowNormKernel<hasMean, C, false, F>,
                  at, rows, width, eps);
  };
  if (width <= 2 * V * int64_t{kMaxBlockThreads})
    return inRegisters(std::integral_constant<int, 2>());
  if (width <= 4 * V * int64_t{kMaxBlockThreads})
    return inRegisters(std::integral_constant<int, 4>());
  LaunchShape blocks = blockPerRow(rows, width / 4);
  if constexpr (hasMean)
    return launch(queue, blocks, layerNormKernel<F>, at.x, at.gamma, at.beta, at.y, at.means,
                  at.rstds, at.largest, rows, width, eps);
  else
    return launch(queue, blocks, rmsNormKernel<F>, at.x, at.gamma, at.y, at.rstds, at.largest, rows,
                  width, eps);
}

PrepareResult prepareLayerNorm(const NormCall &call) {
  return withFloatType(call.shape.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    using W = Wide<F>;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      return enqueueNorm<true, F>(queue, call,
                                  {input<F>(args, 0), input<F>(args, 1), input<F>(args, 2),
                                   output<F>(args, 0), output<W>(args, 1), output<W>(args, 2)});
    });
  });
}

PrepareResult prepareRmsNorm(const NormCall &call) {
  return withFloatType(call.shape.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    using W = Wide<F>;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      return enqueueNorm<false, F>(queue, call,
                                   {input<F>(args, 0), input<F>(args, 1), nullptr,
                                    output<F>(args, 0), nullptr, output<W>(args, 1)});
    });
  });
}

template <bool hasMean, typename F>
PrepareResult makeNormAndLargest(const FusedCalls &calls, const NormAndLargest &match,
                                 const NormCall &call) {
  std::vector<size_t> indices = calls.operandIndices();
  std::vector<size_t> in, statistics;
  for (size_t value : match.norm->inputs)
    in.push_back(indices[value]);
  // The largest magnitude may lie in the place of statistics that nothing reads.
  constexpr size_t kNotWanted = std::numeric_limits<size_t>::max();
  for (size_t i = 1; i < match.norm->outputs.size(); ++i) {
    size_t value = match.norm->outputs[i];
    statistics.push_back(calls.values[value].isKept ? indices[value] : kNotWanted);
  }
  return makeKernel(
      [call, in, statistics, y = indices[match.norm->outputs[0]],
       largest = indices[match.largest]](CudaQueue &queue, const KernelArguments &args) {
        using W = Wide<F>;
        auto write = [&](size_t place) {
          return place == kNotWanted ? nullptr : output<W>(args, place);
        };
        NormOperands<F> at{input<F>(args, in[0]),
                           input<F>(args, in[1]),
                           hasMean ? input<F>(args, in.back()) : nullptr,
                           output<F>(args, y),
                           hasMean ? write(statistics.front()) : nullptr,
                           write(statistics.back()),
                           output<float>(args, largest)};
        return enqueueNorm<hasMean, F>(queue, call, at);
      });
}

} // namespace

PrepareResult prepareNormAndLargest(const FusedCalls &calls, const NormAndLargest &match) {
  const KernelSignature &signature = match.norm->signature;
  bool hasMean = signature.kernel == "layer_norm";
  Expected<NormCall> call = hasMean ? checkLayerNorm(signature) : checkRmsNorm(signature);
  if (!call)
    return call.error();
  return withFloatType(call->shape.dtype, [&](auto identity) {
    using F = typename decltype(identity)::type;
    return hasMean ? makeNormAndLargest<true, F>(calls, match, *call)
                   : makeNormAndLargest<false, F>(calls, match, *call);
  });
}

std::span<const KernelEntry> normKernels() {
  static constexpr KernelEntry entries[] = {
      {"layer_norm", prepareBy<checkLayerNorm, prepareLayerNorm>},
      {"rms_norm", prepareBy<checkRmsNorm, prepareRmsNorm>},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
