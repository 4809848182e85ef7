//===- NormGrads.cu - Gradients of layer norm and RMS norm ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// In the comments xhat is the normalised row and dxhat = dy * gamma its gradient. The gradients of
// gamma and beta are sums over all rows: the rows are cut into parts, by their number alone; each
// part has its own sums in the workspace, which are added in order by a second launch.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/shared/RowCalls.h"

namespace dtc::runtime::cuda {

namespace {

/// dx of a row for each block. An RMS norm has no means (null), which stand for zeros. With one
/// block of a multiprocessor promised, not more, that of doubles has enough registers.
template <typename F>
__global__ void __launch_bounds__(kMaxBlockThreads, 1)
    normInputGradKernel(const F *allX, const F *gamma, const Wide<F> *means, const Wide<F> *rstds,
                        const F *allDy, F *allDx, int64_t rows, int64_t width) {
  using W = Wide<F>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const F *x = allX + row * width, *dy = allDy + row * width;
    F *dx = allDx + row * width;
    W mean = means ? means[row] : W(0), rstd = rstds[row];
    W sum = 0, dot = 0; // of dxhat, of dxhat * xhat
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
      W xhat = (widen(x[i]) - mean) * rstd;
      W dxhat = widen(dy[i]) * widen(gamma[i]);
      sum += dxhat;
      dot += dxhat * xhat;
    }
    sum = means ? reduceBlock<SumOf>(sum) / static_cast<W>(width) : W(0);
    dot = reduceBlock<SumOf>(dot) / static_cast<W>(width);
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
      W xhat = (widen(x[i]) - mean) * rstd;
      dx[i] = narrow<F>(rstd * (widen(dy[i]) * widen(gamma[i]) - sum - xhat * dot));
    }
  }
}

/// For each column the sums of dy * xhat and, of a layer norm, of dy over the rows of part
/// blockIdx.y, which has `partRows` of them: sums[part][0 or 1][column].
template <typename F>
__global__ void __launch_bounds__(256)
    normParameterGradKernel(const F *x, const Wide<F> *means, const Wide<F> *rstds, const F *dy,
                            Wide<F> *sums, int64_t rows, int64_t width, int64_t partRows) {
  using W = Wide<F>;
  int64_t begin = int64_t{blockIdx.y} * partRows;
  int64_t end = begin + partRows < rows ? begin + partRows : rows;
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  int64_t perPart = means ? 2 * width : width;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < width; i += step) {
    W dgamma = 0, dbeta = 0;
    for (int64_t row = begin; row < end; ++row) {
      W mean = means ? means[row] : W(0), slope = widen(dy[row * width + i]);
      dgamma += slope * ((widen(x[row * width + i]) - mean) * rstds[row]);
      dbeta += slope;
    }
    sums[int64_t{blockIdx.y} * perPart + i] = dgamma;
    if (means)
      sums[int64_t{blockIdx.y} * perPart + width + i] = dbeta;
  }
}

/// The sums of all parts: dgamma, then dbeta where it is not null.
template <typename W>
__global__ void __launch_bounds__(256)
    addPartsKernel(const W *sums, int64_t parts, W *dgamma, W *dbeta, int64_t width) {
  int64_t perPart = dbeta ? 2 * width : width;
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < perPart; i += step) {
    W total = 0;
    for (int64_t part = 0; part < parts; ++part)
      total += sums[part * perPart + i];
    if (i < width)
      dgamma[i] = total;
    else
      dbeta[i - width] = total;
  }
}

/// `statistics` is 2 for a layer norm (mean, rstd; gamma, beta) and 1 for an RMS norm.
template <typename F>
std::unique_ptr<CudaKernel> makeNormGrad(const RowShape &shape, size_t statistics) {
  using W = Wide<F>;
  int64_t partRows = std::max<int64_t>(16, (shape.rows + 255) / 256);
  int64_t parts = (shape.rows + partRows - 1) / partRows;
  int64_t sums = parts * shape.width * static_cast<int64_t>(statistics);
  return makeKernel(
      [=](CudaQueue &queue, const KernelArguments &args) -> MaybeError {
        bool hasMean = statistics == 2;
        const F *x = input<F>(args, 0), *gamma = input<F>(args, 1);
        const W *means = hasMean ? input<W>(args, 2) : nullptr;
        const W *rstds = input<W>(args, 1 + statistics);
        const F *dy = input<F>(args, 2 + statistics);
        W *partial = static_cast<W *>(args.workspace);
        if (MaybeError error =
                launch(queue, blockPerRow(shape.rows, shape.width / 4), normInputGradKernel<F>, x,
                       gamma, means, rstds, dy, output<F>(args, 0), shape.rows, shape.width))
          return error;
        LaunchShape columns = gridStride(queue, shape.width);
        columns.blocksY = static_cast<unsigned>(parts);
        if (MaybeError error = launch(queue, columns, normParameterGradKernel<F>, x, means, rstds,
                                      dy, partial, shape.rows, shape.width, partRows))
          return error;
        return launch(queue, gridStride(queue, shape.width * static_cast<int64_t>(statistics)),
                      addPartsKernel<W>, static_cast<const W *>(partial), parts, output<W>(args, 1),
                      hasMean ? output<W>(args, 2) : nullptr, shape.width);
      },
      arrayBytes<W>(sums));
}

PrepareResult prepareNormGrad(const Expected<RowShape> &shape, size_t statistics) {
  if (!shape)
    return shape.error();
  return withFloatType(shape->dtype, [&](auto identity) {
    return makeNormGrad<typename decltype(identity)::type>(*shape, statistics);
  });
}

PrepareResult prepareLayerNormGrad(const KernelSignature &signature) {
  return prepareNormGrad(checkLayerNormGrad(signature), 2);
}
PrepareResult prepareRmsNormGrad(const KernelSignature &signature) {
  return prepareNormGrad(checkRmsNormGrad(signature), 1);
}

} // namespace

std::span<const KernelEntry> normGradKernels() {
  static constexpr KernelEntry entries[] = {
      {"layer_norm_grad", prepareLayerNormGrad},
      {"rms_norm_grad", prepareRmsNormGrad},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
