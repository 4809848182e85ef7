//===- Norms.cu - Layer norm and RMS norm ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "calls/RowCalls.h"

namespace dtc::runtime::cuda {

namespace {

template <typename F>
__global__ void __launch_bounds__(kMaxBlockThreads)
    layerNormKernel(const F *allX, const F *gamma, const F *beta, F *allY, Wide<F> *means,
                    Wide<F> *rstds, int64_t rows, int64_t width, Wide<F> eps) {
  using W = Wide<F>;
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
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
      y[i] = narrow<F>((widen(x[i]) - mean) * rstd * widen(gamma[i]) + widen(beta[i]));
    if (threadIdx.x == 0) {
      means[row] = mean;
      rstds[row] = rstd;
    }
  }
}

template <typename F>
__global__ void __launch_bounds__(kMaxBlockThreads)
    rmsNormKernel(const F *allX, const F *gamma, F *allY, Wide<F> *rstds, int64_t rows,
                  int64_t width, Wide<F> eps) {
  using W = Wide<F>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const F *x = allX + row * width;
    F *y = allY + row * width;
    W squares = 0;
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
      squares += widen(x[i]) * widen(x[i]);
    W rstd = W(1) / sqrt(reduceBlock<SumOf>(squares) / static_cast<W>(width) + eps);
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
      y[i] = narrow<F>(widen(x[i]) * rstd * widen(gamma[i]));
    if (threadIdx.x == 0)
      rstds[row] = rstd;
  }
}

PrepareResult prepareLayerNorm(const KernelSignature &signature) {
  Expected<NormCall> checked = checkLayerNorm(signature);
  if (!checked)
    return checked.error();
  return withFloatType(checked->shape.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    using W = Wide<F>;
    return makeKernel([call = *checked](CudaQueue &queue, const KernelArguments &args) {
      const RowShape &shape = call.shape;
      return launch(queue, blockPerRow(shape.rows, shape.width / 4), layerNormKernel<F>,
                    input<F>(args, 0), input<F>(args, 1), input<F>(args, 2), output<F>(args, 0),
                    output<W>(args, 1), output<W>(args, 2), shape.rows, shape.width,
                    static_cast<W>(call.eps));
    });
  });
}

PrepareResult prepareRmsNorm(const KernelSignature &signature) {
  Expected<NormCall> checked = checkRmsNorm(signature);
  if (!checked)
    return checked.error();
  return withFloatType(checked->shape.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    using W = Wide<F>;
    return makeKernel([call = *checked](CudaQueue &queue, const KernelArguments &args) {
      const RowShape &shape = call.shape;
      return launch(queue, blockPerRow(shape.rows, shape.width / 4), rmsNormKernel<F>,
                    input<F>(args, 0), input<F>(args, 1), output<F>(args, 0), output<W>(args, 1),
                    shape.rows, shape.width, static_cast<W>(call.eps));
    });
  });
}

} // namespace

std::span<const KernelEntry> normKernels() {
  static constexpr KernelEntry entries[] = {
      {"layer_norm", prepareLayerNorm},
      {"rms_norm", prepareRmsNorm},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
