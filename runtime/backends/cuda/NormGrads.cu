//===- NormGrads.cu - Gradients of layer norm and RMS norm ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// In the comments xhat is the normalised row and dxhat = dy * gamma its gradient. The gradients of
// gamma and beta are sums over all rows: the rows are cut into parts, by their number alone; each
// part has its own sums in the workspace, which are added in a fixed order by a second launch.
//
//===----------------------------------------------------------------------===//

#include "calls/RowCalls.h"
#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"

#include <algorithm>
#include <optional>
#include <type_traits>

namespace dtc::runtime::cuda {

namespace {

/// a * b, rounded before anything is added to it: with a sum, nvcc would make it one instruction
/// that rounds once, where single calls round twice.
__device__ __forceinline__ float roundedProduct(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double roundedProduct(double a, double b) { return __dmul_rn(a, b); }

/// dx of a row for each block, with `added`, which may lie where it is written, if that is not
/// null. An RMS norm has no means (null), which stand for zeros. With one block of a multiprocessor
/// promised, not more, that of doubles has enough registers.
template <typename F>
__global__ void __launch_bounds__(kMaxBlockThreads, 1)
    normInputGradKernel(const F *allX, const F *gamma, const Wide<F> *means, const Wide<F> *rstds,
                        const F *allDy, const F *added, F *allDx, int64_t rows, int64_t width) {
  using W = Wide<F>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const F *x = allX + row * width, *dy = allDy + row * width;
    F *dx = allDx + row * width;
    W mean = means ? means[row] : W(0), rstd = rstds[row];
    W totals[2] = {}; // the sums of dxhat and of dxhat * xhat
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
      W xhat = (widen(x[i]) - mean) * rstd;
      W dxhat = widen(dy[i]) * widen(gamma[i]);
      totals[0] += dxhat;
      totals[1] += dxhat * xhat;
    }
    reduceBlock<SumOf>(totals);
    W sum = means ? totals[0] / static_cast<W>(width) : W(0);
    W dot = totals[1] / static_cast<W>(width);
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
      W xhat = (widen(x[i]) - mean) * rstd;
      F slope = narrow<F>(roundedProduct(rstd, widen(dy[i]) * widen(gamma[i]) - sum - xhat * dot));
      dx[i] = added ? narrow<F>(widen(added[row * width + i]) + widen(slope)) : slope;
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

/// All of it in one pass over the rows of part blockIdx.x: a thread has `C` columns, which are all
/// that there are. All of a row is read before the barriers of its sums: as `added` may lie where
/// dx is written, a load after a store would wait for it.
template <typename F, int C>
__global__ void __launch_bounds__(kMaxBlockThreads, 1)
    normGradKernel(const F *x, const F *gamma, const Wide<F> *means, const Wide<F> *rstds,
                   const F *dy, const F *added, F *dx, Wide<F> *sums, int64_t rows, int64_t width,
                   int64_t partRows) {
  using W = Wide<F>;
  int64_t begin = int64_t{blockIdx.x} * partRows;
  int64_t end = begin + partRows < rows ? begin + partRows : rows;
  W dgamma[C] = {}, dbeta[C] = {};
  for (int64_t row = begin; row < end; ++row) {
    W mean = means ? means[row] : W(0), rstd = rstds[row];
    W xhat[C], slope[C], totals[2] = {}; // the sums of dxhat and of dxhat * xhat
    F extra[C];
#pragma unroll
    for (int c = 0; c < C; ++c) {
      int64_t i = threadIdx.x + int64_t{c} * blockDim.x, at = row * width + i;
      bool exists = i < width;
      extra[c] = exists && added ? added[at] : narrow<F>(W(0));
      xhat[c] = exists ? (widen(x[at]) - mean) * rstd : W(0);
      slope[c] = exists ? widen(dy[at]) : W(0);
      dgamma[c] += slope[c] * xhat[c];
      dbeta[c] += slope[c];
      slope[c] *= exists ? widen(gamma[i]) : W(0);
      totals[0] += slope[c];
      totals[1] += slope[c] * xhat[c];
    }
    reduceBlock<SumOf>(totals);
    W sum = means ? totals[0] / static_cast<W>(width) : W(0);
    W dot = totals[1] / static_cast<W>(width);
#pragma unroll
    for (int c = 0; c < C; ++c) {
      int64_t i = threadIdx.x + int64_t{c} * blockDim.x;
      if (i >= width)
        continue;
      F result = narrow<F>(roundedProduct(rstd, slope[c] - sum - xhat[c] * dot));
      dx[row * width + i] = added ? narrow<F>(widen(extra[c]) + widen(result)) : result;
    }
  }
  int64_t perPart = means ? 2 * width : width;
#pragma unroll
  for (int c = 0; c < C; ++c) {
    int64_t i = threadIdx.x + int64_t{c} * blockDim.x;
    if (i >= width)
      continue;
    sums[int64_t{blockIdx.x} * perPart + i] = dgamma[c];
    if (means)
      sums[int64_t{blockIdx.x} * perPart + width + i] = dbeta[c];
  }
}

/// The sums of all parts: dgamma, then dbeta where it is not null. A warp's threads have
/// neighbouring columns, and its parts are those of the warp's number and every kSumWarps-th from
/// there on. There are few blocks, 48 for GPT-2 124M, so that each has many warps.
constexpr unsigned kSumWarps = 32;
template <typename W>
__global__ void __launch_bounds__(kSumWarps *kWarpThreads)
    addPartsKernel(const W *sums, int64_t parts, W *dgamma, W *dbeta, int64_t width) {
  __shared__ W ofWarp[kSumWarps][kWarpThreads];
  int64_t perPart = dbeta ? 2 * width : width;
  unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
  for (int64_t first = int64_t{blockIdx.x} * kWarpThreads; first < perPart;
       first += int64_t{gridDim.x} * kWarpThreads) {
    int64_t i = first + lane;
    W total = 0;
    for (int64_t part = warp; i < perPart && part < parts; part += kSumWarps)
      total += sums[part * perPart + i];
    __syncthreads(); // the sums before have been read
    ofWarp[warp][lane] = total;
    __syncthreads();
    if (warp > 0 || i >= perPart)
      continue;
    for (unsigned other = 1; other < kSumWarps; ++other)
      total += ofWarp[other][lane];
    if (i < width)
      dgamma[i] = total;
    else
      dbeta[i - width] = total;
  }
}

/// The operands of a call.
template <typename F> struct NormGradOperands {
  const F *x, *gamma;
  const Wide<F> *means, *rstds; // no means: an RMS norm
  const F *dy, *added;          // added: to dx; null: nothing is
  F *dx;
  Wide<F> *dgamma, *dbeta;
  Wide<F> *partial; // in the workspace
};

/// How the sums over the rows are cut.
struct NormGradParts {
  RowShape shape;
  int64_t statistics; // 2 of a layer norm (mean, rstd; gamma, beta), 1 of an RMS norm
  int64_t partRows, parts;
  /// About as many as an H100 holds blocks of the kernels at a time.
  static constexpr int64_t kMostParts = 512;

  NormGradParts(const RowShape &shape, int64_t statistics)
      : shape(shape), statistics(statistics),
        partRows(std::max<int64_t>(16, (shape.rows + kMostParts - 1) / kMostParts)),
        parts((shape.rows + partRows - 1) / partRows) {}
  int64_t sums() const { return parts * shape.width * statistics; }
};

/// dx and the sums of all parts, in one launch where a block's threads have registers for a row.
template <typename F>
MaybeError enqueueParts(CudaQueue &queue, const NormGradParts &cut, const NormGradOperands<F> &at) {
  const RowShape &shape = cut.shape;
  auto inOnePass = [&](auto columns) {
    constexpr int C = decltype(columns)::value;
    LaunchShape blocks = blockPerRow(cut.parts, (shape.width + C - 1) / C);
    return launch(queue, blocks, normGradKernel<F, C>, at.x, at.gamma, at.means, at.rstds, at.dy,
                  at.added, at.dx, at.partial, shape.rows, shape.width, cut.partRows);
  };
  if (shape.width <= 4 * int64_t{kMaxBlockThreads})
    return inOnePass(std::integral_constant<int, 4>());
  if constexpr (sizeof(Wide<F>) == 4)
    if (shape.width <= 8 * int64_t{kMaxBlockThreads})
      return inOnePass(std::integral_constant<int, 8>());
  if (MaybeError error =
          launch(queue, blockPerRow(shape.rows, shape.width / 4), normInputGradKernel<F>, at.x,
                 at.gamma, at.means, at.rstds, at.dy, at.added, at.dx, shape.rows, shape.width))
    return error;
  LaunchShape columns = gridStride(queue, shape.width);
  columns.blocksY = static_cast<unsigned>(cut.parts);
  return launch(queue, columns, normParameterGradKernel<F>, at.x, at.means, at.rstds, at.dy,
                at.partial, shape.rows, shape.width, cut.partRows);
}

template <typename F>
MaybeError enqueueNormGrad(CudaQueue &queue, const NormGradParts &cut,
                           const NormGradOperands<F> &at) {
  if (cut.parts > 0) // rows
    if (MaybeError error = enqueueParts(queue, cut, at))
      return error;
  LaunchShape columns = blockPerRow((cut.shape.width * cut.statistics + 31) / 32, 0);
  columns.threads = kSumWarps * kWarpThreads;
  return launch(queue, columns, addPartsKernel<Wide<F>>, static_cast<const Wide<F> *>(at.partial),
                cut.parts, at.dgamma, at.dbeta, cut.shape.width);
}

template <typename F>
std::unique_ptr<CudaKernel> makeNormGrad(const RowShape &shape, size_t statistics) {
  using W = Wide<F>;
  NormGradParts cut(shape, static_cast<int64_t>(statistics));
  return makeKernel(
      [=](CudaQueue &queue, const KernelArguments &args) {
        bool hasMean = statistics == 2;
        return enqueueNormGrad<F>(
            queue, cut,
            {input<F>(args, 0), input<F>(args, 1), hasMean ? input<W>(args, 2) : nullptr,
             input<W>(args, 1 + statistics), input<F>(args, 2 + statistics), nullptr,
             output<F>(args, 0), output<W>(args, 1), hasMean ? output<W>(args, 2) : nullptr,
             static_cast<W *>(args.workspace)});
      },
      arrayBytes<W>(cut.sums()));
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

template <typename F>
std::unique_ptr<CudaKernel> makeAddedNormGrad(const FusedCalls &calls, const AddedGradient &match,
                                              const RowShape &shape, size_t statistics) {
  using W = Wide<F>;
  NormGradParts cut(shape, static_cast<int64_t>(statistics));
  std::vector<size_t> index = calls.operandIndices(), in, out;
  for (size_t value : match.grad->inputs)
    in.push_back(index[value]);
  in.push_back(index[match.added]);
  out.push_back(index[match.sum]);
  for (size_t i = 1; i < match.grad->outputs.size(); ++i)
    out.push_back(index[match.grad->outputs[i]]);
  return makeKernel(
      [=](CudaQueue &queue, const KernelArguments &args) {
        bool hasMean = statistics == 2;
        return enqueueNormGrad<F>(
            queue, cut,
            {input<F>(args, in[0]), input<F>(args, in[1]),
             hasMean ? input<W>(args, in[2]) : nullptr, input<W>(args, in[1 + statistics]),
             input<F>(args, in[2 + statistics]), input<F>(args, in.back()), output<F>(args, out[0]),
             output<W>(args, out[1]), hasMean ? output<W>(args, out[2]) : nullptr,
             static_cast<W *>(args.workspace)});
      },
      arrayBytes<W>(cut.sums()));
}

} // namespace

PrepareResult prepareAddedNormGrad(const FusedCalls &calls, const AddedGradient &match) {
  const KernelSignature &signature = match.grad->signature;
  bool hasMean = signature.kernel == "layer_norm_grad";
  Expected<RowShape> shape = hasMean ? checkLayerNormGrad(signature) : checkRmsNormGrad(signature);
  if (!shape)
    return shape.error();
  return withFloatType(shape->dtype, [&](auto identity) -> PrepareResult {
    using F = typename decltype(identity)::type;
    return makeAddedNormGrad<F>(calls, match, *shape, hasMean ? 2 : 1);
  });
}

std::span<const KernelEntry> normGradKernels() {
  static constexpr KernelEntry entries[] = {
      {"layer_norm_grad", prepareLayerNormGrad},
      {"rms_norm_grad", prepareRmsNormGrad},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
