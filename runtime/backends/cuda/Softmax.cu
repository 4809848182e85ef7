//===- Softmax.cu - Softmax over the last dimension -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/RowCalls.h"
#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"

namespace dtc::runtime::cuda {

namespace {

/// y = softmax(scale * x), a block for each row. y may be x: a thread reads and writes the same
/// elements of its row.
template <typename F>
__global__ void __launch_bounds__(kMaxBlockThreads)
    softmaxKernel(const F *allX, F *allY, int64_t rows, int64_t width, Wide<F> scale, bool causal,
                  int64_t matrixRows) {
  using W = Wide<F>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const F *x = allX + row * width;
    F *y = allY + row * width;
    int64_t visible = causal ? row % matrixRows + 1 + width - matrixRows : width;
    W largest = -W(INFINITY);
    for (int64_t i = threadIdx.x; i < visible; i += blockDim.x)
      largest = MaxOf::combine(largest, scale * widen(x[i]));
    largest = reduceBlock<MaxOf>(largest);
    W sum = 0;
    for (int64_t i = threadIdx.x; i < visible; i += blockDim.x)
      sum += exp(scale * widen(x[i]) - largest);
    W inverse = W(1) / reduceBlock<SumOf>(sum);
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
      y[i] = narrow<F>(i < visible ? exp(scale * widen(x[i]) - largest) * inverse : W(0));
  }
}

/// dx = scale * y * (dy - sum(y * dy)); dx may be dy.
template <typename F>
__global__ void __launch_bounds__(kMaxBlockThreads)
    softmaxGradKernel(const F *allY, const F *allDy, F *allDx, int64_t rows, int64_t width,
                      Wide<F> scale) {
  using W = Wide<F>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const F *y = allY + row * width, *dy = allDy + row * width;
    F *dx = allDx + row * width;
    W sum = 0;
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
      sum += widen(y[i]) * widen(dy[i]);
    sum = reduceBlock<SumOf>(sum);
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
      dx[i] = narrow<F>(scale * widen(y[i]) * (widen(dy[i]) - sum));
  }
}

PrepareResult prepareSoftmax(const SoftmaxCall &call) {
  return withFloatType(call.shape.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      const RowShape &shape = call.shape;
      return launch(queue, blockPerRow(shape.width ? shape.rows : 0, shape.width / 4),
                    softmaxKernel<F>, input<F>(args, 0), output<F>(args, 0), shape.rows,
                    shape.width, static_cast<Wide<F>>(call.scale), call.causal, call.matrixRows);
    });
  });
}

PrepareResult prepareSoftmaxGrad(const SoftmaxCall &call) {
  return withFloatType(call.shape.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      const RowShape &shape = call.shape;
      return launch(queue, blockPerRow(shape.width ? shape.rows : 0, shape.width / 4),
                    softmaxGradKernel<F>, input<F>(args, 0), input<F>(args, 1), output<F>(args, 0),
                    shape.rows, shape.width, static_cast<Wide<F>>(call.scale));
    });
  });
}

} // namespace

std::span<const KernelEntry> softmaxKernels() {
  static constexpr KernelEntry entries[] = {
      {"softmax", prepareBy<checkSoftmax, prepareSoftmax>},
      {"softmax_grad", prepareBy<checkSoftmaxGrad, prepareSoftmaxGrad>},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
