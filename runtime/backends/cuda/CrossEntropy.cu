//===- CrossEntropy.cu - The loss of a classification ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/RowCalls.h"
#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace dtc::runtime::cuda {

namespace {

/// Elements that a thread reads at a time: as many of 16 bits as of f32, so that they are added in
/// the same order. Of f64 one: registers would spill.
template <typename F> constexpr int kVector = sizeof(Wide<F>) == 8 ? 1 : 8;

/// Vectors that it reads before it computes; of f64 one for the same reason.
template <typename F> constexpr int kAhead = sizeof(Wide<F>) == 8 ? 1 : 2;

/// Rows of so many elements have a block of so many threads, so that one block keeps a
/// multiprocessor busy. Not more than one is promised, so that kernels of f64 have enough
/// registers.
inline constexpr int64_t kWideRow = 32768;
inline constexpr unsigned kWideRowThreads = 1024;

/// The arrays of a launch, one row for each block; null: not wanted.
template <typename F> struct CrossEntropyArrays {
  const F *logits;
  const int32_t *labels;
  Wide<F> *loss, *lse;
};
/// `dlogits` may be `logits`. Row r has the gradient of its loss at `dloss[r * dlossStride]`.
template <typename F> struct CrossEntropyGradArrays {
  const F *logits;
  const int32_t *labels;
  const Wide<F> *lse, *dloss;
  int64_t dlossStride;
  F *dlogits;
};

/// What the label and every class take of a row.
template <typename W> struct LabelShares { W everyClass, onLabel; };

/// The largest element so far, and the sums of exp(x - largest) and of x.
template <typename W> struct RowSums {
  W largest = -W(INFINITY), exponentials = 0, sum = 0;

  template <typename F, int V> __device__ __forceinline__ void add(Vector<F, V> x) {
    W before = largest;
#pragma unroll
    for (int j = 0; j < V; ++j)
      largest = MaxOf::combine(largest, widen(x.at[j]));
    if (largest == -W(INFINITY))
      return; // nothing but classes that are ruled out
    exponentials *= exp(before - largest);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      exponentials += exp(widen(x.at[j]) - largest);
      sum += widen(x.at[j]);
    }
  }
};

/// lse = log(sum(exp(x))) of a row, which all threads get, and the loss. The sums of the threads'
/// elements are relative to the largest that each has seen, as in Milakov and Gimelshein, "Online
/// normalizer calculation for softmax" (2018), algorithm 3, so that the row is read once.
template <int V, typename F>
__device__ Wide<F> lossOfRow(const CrossEntropyArrays<F> &at, int64_t row, int64_t width,
                             Wide<F> smoothing) {
  using W = Wide<F>;
  const F *x = at.logits + row * width;
  RowSums<W> sums;
  int64_t step = int64_t{blockDim.x} * V;
  for (int64_t i = threadIdx.x * V; i < width; i += kAhead<F> * step) {
    Vector<F, V> first = loadVector<V>(x + i), second = first;
    bool hasSecond = kAhead<F> == 2 && i + step < width;
    if (hasSecond)
      second = loadVector<V>(x + i + step);
    sums.add(first);
    if (hasSecond)
      sums.add(second);
  }
  W largest = reduceBlock<MaxOf>(sums.largest);
  W own = sums.largest == -W(INFINITY) ? W(0) : exp(sums.largest - largest);
  W lse = largest + log(reduceBlock<SumOf>(sums.exponentials * own));
  W sum = smoothing == W(0) ? W(0) : reduceBlock<SumOf>(sums.sum);
  if (threadIdx.x == 0) {
    int32_t label = at.labels[row];
    W target = label >= 0 && label < width ? widen(x[label]) : W(0);
    if (at.lse)
      at.lse[row] = lse;
    if (at.loss)
      at.loss[row] = smoothing == W(0) ? lse - target
                                       : lse - (W(1) - smoothing) * target -
                                             smoothing * (sum / static_cast<W>(width));
  }
  return lse;
}

/// dx = (exp(x - lse) - share) * dloss, where every class has a share and the label has more: of V
/// elements from number i on.
template <int V, typename F>
__device__ __forceinline__ void toGradients(Vector<F, V> &values, int64_t i, int64_t label,
                                            Wide<F> lse, Wide<F> factor,
                                            LabelShares<Wide<F>> shares) {
  using W = Wide<F>;
  int labelAt = label >= i && label < i + V ? static_cast<int>(label - i) : -1;
#pragma unroll
  for (int j = 0; j < V; ++j) {
    W share = j == labelAt ? shares.onLabel + shares.everyClass : shares.everyClass;
    values.at[j] = narrow<F>((exp(widen(values.at[j]) - lse) - share) * factor);
  }
}

/// Of a row, from its end on: what lossOfRow() has read last is the likeliest to be in the cache.
template <int V, typename F>
__device__ void gradOfRow(const CrossEntropyGradArrays<F> &at, int64_t row, int64_t width,
                          Wide<F> lse, LabelShares<Wide<F>> shares) {
  const F *x = at.logits + row * width;
  F *dx = at.dlogits + row * width;
  Wide<F> factor = at.dloss[row * at.dlossStride];
  int64_t label = at.labels[row], step = int64_t{blockDim.x} * V, begin = threadIdx.x * V;
  if (begin >= width)
    return;
  for (int64_t i = begin + (width - 1 - begin) / step * step; i >= begin; i -= kAhead<F> * step) {
    Vector<F, V> first = loadVector<V>(x + i), second = first;
    bool hasSecond = kAhead<F> == 2 && i - step >= begin;
    if (hasSecond)
      second = loadVector<V>(x + i - step);
    toGradients(first, i, label, lse, factor, shares);
    storeVector(dx + i, first);
    if (!hasSecond)
      continue;
    toGradients(second, i - step, label, lse, factor, shares);
    storeVector(dx + i - step, second);
  }
}

template <int V, typename F>
__global__ void __launch_bounds__(kWideRowThreads, 1)
    crossEntropyKernel(const __grid_constant__ CrossEntropyArrays<F> at, int64_t rows,
                       int64_t width, Wide<F> smoothing) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
    lossOfRow<V>(at, row, width, smoothing);
}

template <int V, typename F>
__global__ void __launch_bounds__(kWideRowThreads, 1)
    crossEntropyGradKernel(const __grid_constant__ CrossEntropyGradArrays<F> at, int64_t rows,
                           int64_t width, LabelShares<Wide<F>> shares) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
    gradOfRow<V>(at, row, width, at.lse[row], shares);
}

/// Both: of wide rows, the launch has so few blocks that the gradient finds much of its row in the
/// L2 cache.
template <int V, typename F>
__global__ void __launch_bounds__(kWideRowThreads, 1)
    crossEntropyWithGradKernel(const __grid_constant__ CrossEntropyArrays<F> loss,
                               const __grid_constant__ CrossEntropyGradArrays<F> grad, int64_t rows,
                               int64_t width, Wide<F> smoothing, LabelShares<Wide<F>> shares) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    Wide<F> lse = lossOfRow<V>(loss, row, width, smoothing);
    __syncthreads(); // the label's logit has been read
    gradOfRow<V>(grad, row, width, lse, shares);
  }
}

/// Launches the kernel for as many elements at a time as rows and addresses allow. Where it reads
/// rows twice (`isTwice`) and they are wide, multiprocessors have one at a time: 132 rows of
/// Llama's 128,256 logits of 16 bits are 34 MB of an H100's 50 MB of L2 cache, those of all the
/// blocks that it holds would be 135 MB.
template <typename F, typename... Arguments>
MaybeError launchRows(CudaQueue &queue, const RowShape &shape, bool inVectors, bool isTwice,
                      void (*wide)(Arguments...), void (*narrow)(Arguments...),
                      const Arguments &...arguments) {
  LaunchShape blocks = blockPerRow(shape.rows, shape.width / kVector<F>);
  if (shape.width >= kWideRow) {
    blocks.threads = kWideRowThreads;
    if (isTwice)
      blocks.blocksX =
          std::min(blocks.blocksX, static_cast<unsigned>(queue.owner().multiprocessors()));
  }
  return launch(queue, blocks, inVectors && shape.width % kVector<F> == 0 ? wide : narrow,
                arguments...);
}
template <typename F> bool allowsVectors(const F *pointer) {
  return isAligned(pointer, sizeof(Vector<F, kVector<F>>));
}

template <typename W> LabelShares<W> sharesOf(const CrossEntropyCall &call) {
  double classes = static_cast<double>(std::max<int64_t>(call.classes, 1));
  return {static_cast<W>(call.labelSmoothing / classes), static_cast<W>(1 - call.labelSmoothing)};
}

PrepareResult prepareCrossEntropy(const KernelSignature &signature) {
  Expected<CrossEntropyCall> checked = checkCrossEntropy(signature);
  if (!checked)
    return checked.error();
  return withFloatType(checked->shape.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    using W = Wide<F>;
    return makeKernel([call = *checked](CudaQueue &queue, const KernelArguments &args) {
      CrossEntropyArrays<F> at{input<F>(args, 0), input<int32_t>(args, 1), output<W>(args, 0),
                               output<W>(args, 1)};
      return launchRows<F>(queue, call.shape, allowsVectors(at.logits), /*isTwice=*/false,
                           crossEntropyKernel<kVector<F>, F>, crossEntropyKernel<1, F>, at,
                           call.shape.rows, call.shape.width, static_cast<W>(call.labelSmoothing));
    });
  });
}

PrepareResult prepareCrossEntropyGrad(const KernelSignature &signature) {
  Expected<CrossEntropyCall> checked = checkCrossEntropyGrad(signature);
  if (!checked)
    return checked.error();
  return withFloatType(checked->shape.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    using W = Wide<F>;
    return makeKernel([call = *checked](CudaQueue &queue, const KernelArguments &args) {
      CrossEntropyGradArrays<F> at{
          input<F>(args, 0), input<int32_t>(args, 1), input<W>(args, 2), input<W>(args, 3), 1,
          output<F>(args, 0)};
      return launchRows<F>(queue, call.shape, allowsVectors(at.logits) && allowsVectors(at.dlogits),
                           /*isTwice=*/false, crossEntropyGradKernel<kVector<F>, F>,
                           crossEntropyGradKernel<1, F>, at, call.shape.rows, call.shape.width,
                           sharesOf<W>(call));
    });
  });
}

template <typename F>
std::unique_ptr<CudaKernel> makeLossAndGrad(const FusedCalls &calls, const LossAndGrad &match,
                                            const CrossEntropyCall &loss,
                                            const CrossEntropyCall &grad) {
  using W = Wide<F>;
  std::vector<size_t> index = calls.operandIndices();
  auto ifKept = [&](size_t value) {
    return calls.values[value].isKept ? std::optional(index[value]) : std::nullopt;
  };
  size_t logits = index[match.loss->inputs[0]], labels = index[match.loss->inputs[1]],
         dloss = index[match.dloss], dlogits = index[match.grad->outputs[0]];
  std::optional<size_t> losses = ifKept(match.loss->outputs[0]),
                        lse = ifKept(match.loss->outputs[1]);
  int64_t stride = match.isBroadcast ? 0 : 1;
  return makeKernel([=](CudaQueue &queue, const KernelArguments &args) {
    auto written = [&](std::optional<size_t> i) { return i ? output<W>(args, *i) : nullptr; };
    CrossEntropyArrays<F> at{input<F>(args, logits), input<int32_t>(args, labels), written(losses),
                             written(lse)};
    CrossEntropyGradArrays<F> gradAt{
        at.logits, at.labels, nullptr, input<W>(args, dloss), stride, output<F>(args, dlogits)};
    return launchRows<F>(queue, loss.shape,
                         allowsVectors(at.logits) && allowsVectors(gradAt.dlogits),
                         /*isTwice=*/true, crossEntropyWithGradKernel<kVector<F>, F>,
                         crossEntropyWithGradKernel<1, F>, at, gradAt, loss.shape.rows,
                         loss.shape.width, static_cast<W>(loss.labelSmoothing), sharesOf<W>(grad));
  });
}

} // namespace

PrepareResult prepareLossAndGrad(const FusedCalls &calls, const LossAndGrad &match) {
  Expected<CrossEntropyCall> loss = checkCrossEntropy(match.loss->signature);
  Expected<CrossEntropyCall> grad = checkCrossEntropyGrad(match.grad->signature);
  if (!loss || !grad)
    return loss ? grad.error() : loss.error();
  return withFloatType(loss->shape.dtype, [&](auto identity) {
    return makeLossAndGrad<typename decltype(identity)::type>(calls, match, *loss, *grad);
  });
}

std::span<const KernelEntry> crossEntropyKernels() {
  static constexpr KernelEntry entries[] = {
      {"cross_entropy", prepareCrossEntropy},
      {"cross_entropy_grad", prepareCrossEntropyGrad},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
