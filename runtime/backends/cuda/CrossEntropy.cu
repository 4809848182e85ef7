//===- CrossEntropy.cu - The loss of a classification ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/shared/RowCalls.h"

namespace dtc::runtime::cuda {

namespace {

/// A block for each row: lse = log(sum(exp(x))) and the loss.
template <typename F>
__global__ void __launch_bounds__(kMaxBlockThreads)
    crossEntropyKernel(const F *logits, const int32_t *labels, Wide<F> *loss, Wide<F> *lse,
                       int64_t rows, int64_t width, Wide<F> smoothing) {
  using W = Wide<F>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const F *x = logits + row * width;
    W largest = -W(INFINITY);
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
      largest = MaxOf::combine(largest, widen(x[i]));
    largest = reduceBlock<MaxOf>(largest);
    W exponentials = 0, sum = 0;
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
      W value = widen(x[i]);
      exponentials += exp(value - largest);
      sum += value;
    }
    exponentials = reduceBlock<SumOf>(exponentials);
    if (smoothing != W(0))
      sum = reduceBlock<SumOf>(sum);
    if (threadIdx.x != 0)
      continue;
    int32_t label = labels[row];
    W result = largest + log(exponentials);
    W target = label >= 0 && label < width ? widen(x[label]) : W(0);
    lse[row] = result;
    loss[row] = smoothing == W(0) ? result - target
                                  : result - (W(1) - smoothing) * target -
                                        smoothing * (sum / static_cast<W>(width));
  }
}

/// dx = (exp(x - lse) - share) * dloss, where every class has the share `everyClass` and the label
/// `onLabel` more; dx may be x.
template <typename F>
__global__ void __launch_bounds__(kMaxBlockThreads)
    crossEntropyGradKernel(const F *logits, const int32_t *labels, const Wide<F> *lse,
                           const Wide<F> *dloss, F *dlogits, int64_t rows, int64_t width,
                           Wide<F> everyClass, Wide<F> onLabel) {
  using W = Wide<F>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const F *x = logits + row * width;
    F *dx = dlogits + row * width;
    W shift = lse[row], factor = dloss[row];
    int64_t label = labels[row];
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
      W share = i == label ? onLabel + everyClass : everyClass;
      dx[i] = narrow<F>((exp(widen(x[i]) - shift) - share) * factor);
    }
  }
}

PrepareResult prepareCrossEntropy(const KernelSignature &signature) {
  Expected<CrossEntropyCall> checked = checkCrossEntropy(signature);
  if (!checked)
    return checked.error();
  return withFloatType(checked->shape.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    using W = Wide<F>;
    return makeKernel([call = *checked](CudaQueue &queue, const KernelArguments &args) {
      const RowShape &shape = call.shape;
      return launch(queue, blockPerRow(shape.rows, shape.width / 4), crossEntropyKernel<F>,
                    input<F>(args, 0), input<int32_t>(args, 1), output<W>(args, 0),
                    output<W>(args, 1), shape.rows, shape.width,
                    static_cast<W>(call.labelSmoothing));
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
      const RowShape &shape = call.shape;
      double classes = static_cast<double>(std::max<int64_t>(call.classes, 1));
      return launch(queue, blockPerRow(shape.rows, shape.width / 4), crossEntropyGradKernel<F>,
                    input<F>(args, 0), input<int32_t>(args, 1), input<W>(args, 2),
                    input<W>(args, 3), output<F>(args, 0), shape.rows, shape.width,
                    static_cast<W>(call.labelSmoothing / classes),
                    static_cast<W>(1 - call.labelSmoothing));
    });
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

} // namespace dtc::runtime::cuda
