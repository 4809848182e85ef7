//===- CrossEntropy.cu - The loss of a classification ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/RowCalls.h"
#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/PackedVector.h"
#include "runtime/backends/cuda/SharedMemory.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace dtc::runtime::cuda {

namespace {

/// Elements that a thread reads at a time: as many of 16 bits as of f32, so that they are added in
/// the same order. One element of f64: registers would spill.
template <typename F> constexpr int kVector = sizeof(Wide<F>) == 8 ? 1 : 8;

/// Vectors that it reads before it computes; one for f64, for the same reason.
template <typename F> constexpr int kAhead = sizeof(Wide<F>) == 8 ? 1 : 2;

/// A row of this many elements has a block of this many threads, so that one block keeps a
/// multiprocessor busy. No more than one block is promised, so that kernels of f64 have enough
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

/// The shares of the label and of every class in a row.
template <typename W> struct LabelShares { W everyClass, onLabel; };

/// The larger of two; NaN if one is.
__device__ __forceinline__ float largerOrNan(float a, float b) {
#ifdef __CUDACC__
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
#else
  return MaxOf::combine(a, b);
#endif
}
__device__ __forceinline__ double largerOrNan(double a, double b) { return MaxOf::combine(a, b); }

/// The largest element so far, and the sums of exp(x - largest) and of x.
template <typename W> struct RowSums {
  W largest = -W(INFINITY), exponentials = 0, sum = 0;

  /// element(j) is element j of V; `addsAll`: to the sum of x too.
  template <int V, typename Element>
  __device__ __forceinline__ void add(const Element &element, bool addsAll) {
    W before = largest;
#pragma unroll
    for (int j = 0; j < V; ++j)
      largest = largerOrNan(largest, element(j));
    if (largest == -W(INFINITY))
      return;              // nothing but classes that are ruled out
    if (largest != before) // else it would be multiplied by 1
      exponentials *= exp(before - largest);
#pragma unroll
    for (int j = 0; j < V; ++j)
      exponentials += exp(element(j) - largest);
    if (addsAll)
#pragma unroll
      for (int j = 0; j < V; ++j)
        sum += element(j);
  }
};

/// The logit of the label; 0 if that is no class.
template <typename F>
__device__ __forceinline__ Wide<F> targetOf(const F *x, int64_t label, int64_t width) {
  return label >= 0 && label < width ? widen(x[label]) : Wide<F>(0);
}

/// lse, which all threads get, and the loss, from the sums of all; the first thread has `target`.
template <typename F>
__device__ __forceinline__ Wide<F> finishLoss(const RowSums<Wide<F>> &sums,
                                              const CrossEntropyArrays<F> &at, int64_t row,
                                              int64_t width, Wide<F> smoothing, Wide<F> target) {
  using W = Wide<F>;
  W largest = reduceBlock<MaxOf>(sums.largest);
  W own = sums.largest == -W(INFINITY) ? W(0) : exp(sums.largest - largest);
  W lse = largest + log(reduceBlock<SumOf>(sums.exponentials * own));
  W sum = smoothing == W(0) ? W(0) : reduceBlock<SumOf>(sums.sum);
  if (threadIdx.x == 0) {
    if (at.lse)
      at.lse[row] = lse;
    if (at.loss)
      at.loss[row] = smoothing == W(0) ? lse - target
                                       : lse - (W(1) - smoothing) * target -
                                             smoothing * (sum / static_cast<W>(width));
  }
  return lse;
}

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
    sums.template add<V>([&](int j) { return widen(first.at[j]); }, smoothing != W(0));
    if (hasSecond)
      sums.template add<V>([&](int j) { return widen(second.at[j]); }, smoothing != W(0));
  }
  W target = threadIdx.x == 0 ? targetOf(x, at.labels[row], width) : W(0);
  return finishLoss(sums, at, row, width, smoothing, target);
}

/// V elements, each rounded once.
template <int V, typename F>
__device__ __forceinline__ Vector<F, V> narrowedVector(const Wide<F> (&values)[V]) {
  if constexpr (V * sizeof(F) % 16 == 0) {
    return PackedVector<F, V>::narrowed(values).unpacked();
  } else {
    Vector<F, V> vector;
#pragma unroll
    for (int j = 0; j < V; ++j)
      vector.at[j] = narrow<F>(values[j]);
    return vector;
  }
}

/// dx = (exp(x - lse) - share) * dloss, where every class has a share and the label has more, for V
/// elements. Element `labelAt` is that of the label; if it is V or more, none is.
template <int V, typename F, typename Element>
__device__ __forceinline__ Vector<F, V> gradients(const Element &element, unsigned labelAt,
                                                  Wide<F> lse, Wide<F> factor,
                                                  LabelShares<Wide<F>> shares) {
  using W = Wide<F>;
  W values[V];
  if (labelAt >= V) {
#pragma unroll
    for (int j = 0; j < V; ++j)
      values[j] = (exp(element(j) - lse) - shares.everyClass) * factor;
  } else {
#pragma unroll
    for (int j = 0; j < V; ++j) {
      W share =
          j == static_cast<int>(labelAt) ? shares.onLabel + shares.everyClass : shares.everyClass;
      values[j] = (exp(element(j) - lse) - share) * factor;
    }
  }
  return narrowedVector<V, F>(values);
}
/// The place of the label in V elements from number i on; V or more: it is not there.
template <int V> __device__ __forceinline__ unsigned placeOf(int64_t label, int64_t i) {
  return label >= i && label < i + V ? static_cast<unsigned>(label - i) : unsigned{V};
}

/// Computes the gradient of a row from its end to its beginning: what lossOfRow() has read last is
/// the likeliest to be in the cache.
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
    auto ofFirst = [&](int j) { return widen(first.at[j]); };
    auto ofSecond = [&](int j) { return widen(second.at[j]); };
    storeVector(dx + i, gradients<V, F>(ofFirst, placeOf<V>(label, i), lse, factor, shares));
    if (hasSecond)
      storeVector(dx + i - step,
                  gradients<V, F>(ofSecond, placeOf<V>(label, i - step), lse, factor, shares));
  }
}

template <int V, typename F>
__global__ void __launch_bounds__(kWideRowThreads, 1)
    crossEntropyKernel(const CrossEntropyArrays<F> __grid_constant__ at, int64_t rows,
                       int64_t width, Wide<F> smoothing) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
    lossOfRow<V>(at, row, width, smoothing);
}

template <int V, typename F>
__global__ void __launch_bounds__(kWideRowThreads, 1)
    crossEntropyGradKernel(const CrossEntropyGradArrays<F> __grid_constant__ at, int64_t rows,
                           int64_t width, LabelShares<Wide<F>> shares) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
    gradOfRow<V>(at, row, width, at.lse[row], shares);
}

/// V elements of a thread, which stay in the type of memory as long as possible.
template <int V, typename F> struct LogitVector {
  Vector<F, V> elements;
  __device__ __forceinline__ void load(const F *from) { elements = loadVector<V>(from); }
  __device__ __forceinline__ void loadShared(const F *from) {
    elements = *reinterpret_cast<const Vector<F, V> *>(from);
  }
  __device__ __forceinline__ Wide<F> operator()(int j) const { return widen(elements.at[j]); }
};
template <typename F> struct LogitVector<8, F> {
  PackedVector<F, 8> elements;
  __device__ __forceinline__ void load(const F *from) {
    elements = PackedVector<F, 8>::template load<true>(from, 0, 1);
  }
  __device__ __forceinline__ void loadShared(const F *from) {
    memcpy(elements.words, __builtin_assume_aligned(from, 16), sizeof(elements.words));
  }
  __device__ __forceinline__ Wide<F> operator()(int j) const { return elements.widened(j); }
};

/// Vectors of a thread that are on their way to shared memory while it works on others.
inline constexpr int kCopiesAhead = 4;

/// Blocks of whole rows on a multiprocessor, where that holds as many threads.
#if defined(__CUDA_ARCH__) &&                                                                      \
    (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 880 ||                       \
     __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
inline constexpr int kWholeRowBlocks = 1;
#else
inline constexpr int kWholeRowBlocks = 2;
#endif

/// Both, with a row in shared memory in between: its first `kept` elements, all of it or whole
/// steps of the block. Two vectors of each thread are kept in registers after them; the rest is
/// read again, from its end on: the elements read last are the likeliest to be in a cache. Threads
/// keep the elements that they read themselves, so that nothing but the sums needs a barrier. The
/// first vectors of the next row are copied while the last of this one are written. `isWhole`:
/// `kept` is the width, and two blocks have room on a multiprocessor.
template <int V, bool isWhole, typename F>
__global__ void __launch_bounds__(kWideRowThreads, isWhole ? kWholeRowBlocks : 1)
    crossEntropyWithGradKernel(const CrossEntropyArrays<F> __grid_constant__ loss,
                               const CrossEntropyGradArrays<F> __grid_constant__ grad, int64_t rows,
                               int64_t width, Wide<F> smoothing, LabelShares<Wide<F>> shares,
                               int64_t kept) {
  using W = Wide<F>;
  constexpr bool copies = V * sizeof(F) % 16 == 0;
  constexpr int kRest = isWhole ? 0 : 2;
  F *shared = sharedArray<F>();
  int step = static_cast<int>(blockDim.x) * V, begin = static_cast<int>(threadIdx.x) * V;
  int inShared = static_cast<int>(kept), slots = (inShared + step - 1) / step;
  // Copies from the row at `from`; null: copies nothing.
  auto copy = [&](const F *from, int slot) {
    if constexpr (copies) {
      int i = begin + slot * step;
      if (i < inShared && from)
        copyToShared<V>(shared + i, from + i);
      endCopies();
    }
  };
  for (int slot = 0; slot < kCopiesAhead; ++slot)
    copy(loss.logits + blockIdx.x * width, slot);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const F *x = loss.logits + row * width;
    int label = loss.labels[row];
    W target = threadIdx.x == 0 ? targetOf(x, label, width) : W(0);
    W factor = grad.dloss[row * grad.dlossStride];
    LogitVector<V, F> rest[kRest + 1];
#pragma unroll
    for (int k = 0; k < kRest; ++k)
      if (int64_t i = begin + int64_t{slots + k} * step; i < width)
        rest[k].load(x + i);
    RowSums<W> sums;
    bool addsAll = smoothing != W(0);
    LogitVector<V, F> value;
    for (int slot = 0, i = begin; slot < slots; ++slot, i += step) {
      copy(x, slot + kCopiesAhead);
      if constexpr (copies)
        waitForCopies<kCopiesAhead>();
      if (i >= inShared)
        continue;
      if constexpr (!copies) {
        value.load(x + i);
        *reinterpret_cast<Vector<F, V> *>(shared + i) = value.elements;
      } else {
        value.loadShared(shared + i);
      }
      sums.template add<V>(value, addsAll);
    }
#pragma unroll
    for (int k = 0; k < kRest; ++k)
      if (begin + int64_t{slots + k} * step < width)
        sums.template add<V>(rest[k], addsAll);
    if constexpr (!isWhole)
      for (int64_t i = begin + int64_t{slots + kRest} * step; i < width; i += step) {
        value.load(x + i);
        sums.template add<V>(value, addsAll);
      }
    W lse = finishLoss(sums, loss, row, width, smoothing, target);
    __syncthreads(); // the label's logit has been read
    F *dx = grad.dlogits + row * width;
    auto write = [&](const LogitVector<V, F> &logits, int64_t i) {
      storeVector(dx + i, gradients<V, F>(logits, placeOf<V>(label, i), lse, factor, shares));
    };
    if constexpr (!isWhole) {
      int64_t first = begin + int64_t{slots + kRest} * step;
      if (first < width)
        for (int64_t i = first + (width - 1 - first) / step * step; i >= first; i -= step) {
          value.load(x + i);
          write(value, i);
        }
    }
#pragma unroll
    for (int k = 0; k < kRest; ++k)
      if (int64_t i = begin + int64_t{slots + k} * step; i < width)
        write(rest[k], i);
    const F *nextRow = row + gridDim.x < rows ? x + gridDim.x * width : nullptr;
    int copied = 0;
    for (int slot = 0, i = begin; slot < slots; ++slot, i += step) {
      if (i < inShared) {
        value.loadShared(shared + i);
        unsigned labelAt = static_cast<unsigned>(label) - static_cast<unsigned>(i);
        storeVector(dx + i, gradients<V, F>(value, labelAt, lse, factor, shares));
      }
      if (slot + kCopiesAhead >= slots)
        copy(nextRow, copied++);
    }
    for (; copied < kCopiesAhead; ++copied)
      copy(nullptr, copied);
  }
}

template <typename F> LaunchShape blocksOf(const RowShape &shape) {
  LaunchShape blocks = blockPerRow(shape.rows, shape.width / kVector<F>);
  if (shape.width >= kWideRow)
    blocks.threads = kWideRowThreads;
  return blocks;
}

/// Launches the kernel for as many elements at a time as rows and addresses allow.
template <typename F, typename... Parameters, typename... Arguments>
MaybeError launchRows(CudaQueue &queue, const RowShape &shape, bool inVectors,
                      void (*wide)(Parameters...), void (*narrow)(Parameters...),
                      const Arguments &...arguments) {
  return launch(queue, blocksOf<F>(shape),
                inVectors && shape.width % kVector<F> == 0 ? wide : narrow, arguments...);
}
template <typename F> bool allowsVectors(const F *pointer) {
  return isAligned(pointer, sizeof(Vector<F, kVector<F>>));
}

template <typename W> LabelShares<W> sharesOf(const CrossEntropyCall &call) {
  double classes = static_cast<double>(std::max<int64_t>(call.classes, 1));
  return {static_cast<W>(call.labelSmoothing / classes), static_cast<W>(1 - call.labelSmoothing)};
}

PrepareResult prepareCrossEntropy(const CrossEntropyCall &call) {
  return withFloatType(call.shape.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    using W = Wide<F>;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      CrossEntropyArrays<F> at{input<F>(args, 0), input<int32_t>(args, 1), output<W>(args, 0),
                               output<W>(args, 1)};
      return launchRows<F>(queue, call.shape, allowsVectors(at.logits),
                           crossEntropyKernel<kVector<F>, F>, crossEntropyKernel<1, F>, at,
                           call.shape.rows, call.shape.width, static_cast<W>(call.labelSmoothing));
    });
  });
}

PrepareResult prepareCrossEntropyGrad(const CrossEntropyCall &call) {
  return withFloatType(call.shape.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    using W = Wide<F>;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      CrossEntropyGradArrays<F> at{
          input<F>(args, 0), input<int32_t>(args, 1), input<W>(args, 2), input<W>(args, 3), 1,
          output<F>(args, 0)};
      return launchRows<F>(queue, call.shape, allowsVectors(at.logits) && allowsVectors(at.dlogits),
                           crossEntropyGradKernel<kVector<F>, F>, crossEntropyGradKernel<1, F>, at,
                           call.shape.rows, call.shape.width, sharesOf<W>(call));
    });
  });
}

/// With as much of a row in shared memory as has room. Blocks of wide rows are as many as the GPU
/// holds at a time, so that each reads ahead.
template <int V, typename F>
MaybeError launchLossAndGrad(CudaQueue &queue, const RowShape &shape,
                             const CrossEntropyArrays<F> &at, const CrossEntropyGradArrays<F> &grad,
                             Wide<F> smoothing, LabelShares<Wide<F>> shares) {
  LaunchShape blocks = blocksOf<F>(shape);
  auto bytes = static_cast<size_t>(shape.width) * sizeof(F);
  size_t step = blocks.threads * V * sizeof(F), room = sharedMemoryOfBlock(queue);
  // The threads of a block of doubles need more registers than two have.
  bool isWhole = sizeof(F) == 2 && bytes <= sharedMemoryOfBlock(queue, 2);
  if (bytes > room)
    bytes = room / step * step;
  if (shape.width >= kWideRow)
    blocks.blocksX = std::min(
        blocks.blocksX, static_cast<unsigned>(queue.owner().multiprocessors()) * (isWhole ? 2 : 1));
  auto kept = static_cast<int64_t>(bytes / sizeof(F));
  if constexpr (sizeof(F) == 2)
    if (isWhole)
      return launchWithShared(queue, blocks, bytes, crossEntropyWithGradKernel<V, true, F>, at,
                              grad, shape.rows, shape.width, smoothing, shares, kept);
  return launchWithShared(queue, blocks, bytes, crossEntropyWithGradKernel<V, false, F>, at, grad,
                          shape.rows, shape.width, smoothing, shares, kept);
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
    bool inVectors = allowsVectors(at.logits) && allowsVectors(gradAt.dlogits) &&
                     loss.shape.width % kVector<F> == 0;
    auto launchAs = [&](auto vector) {
      return launchLossAndGrad<decltype(vector)::value>(
          queue, loss.shape, at, gradAt, static_cast<W>(loss.labelSmoothing), sharesOf<W>(grad));
    };
    return inVectors ? launchAs(std::integral_constant<int, kVector<F>>())
                     : launchAs(std::integral_constant<int, 1>());
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
      {"cross_entropy", prepareBy<checkCrossEntropy, prepareCrossEntropy>},
      {"cross_entropy_grad", prepareBy<checkCrossEntropyGrad, prepareCrossEntropyGrad>},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
