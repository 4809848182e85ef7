//===- NormGrads.cu - Gradients of layer norm and RMS norm ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// In the comments xhat is the normalised row and dxhat = dy * gamma its gradient. The gradients of
// gamma and beta, and that of a bias
// that was added to what is normalised, are sums over all rows: the rows are cut into parts, by
// their shape alone; each part has its own sums in the workspace, which are added in a fixed order
// by a second launch.
//
//===----------------------------------------------------------------------===//

#include "calls/RowCalls.h"
#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/PackedVector.h"
#include "runtime/backends/cuda/RoundedProduct.h"

#include <algorithm>
#include <optional>
#include <type_traits>

namespace dtc::runtime::cuda {

namespace {

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

/// For each column the sums of dy * xhat, of a layer norm of dy, and of dx unless it is null, over
/// the rows of part blockIdx.y, which has `partRows` of them: sums[part][which][column].
template <typename F>
__global__ void __launch_bounds__(256)
    normParameterGradKernel(const F *x, const Wide<F> *means, const Wide<F> *rstds, const F *dy,
                            const F *dx, Wide<F> *sums, int64_t rows, int64_t width,
                            int64_t partRows) {
  using W = Wide<F>;
  int64_t begin = int64_t{blockIdx.y} * partRows;
  int64_t end = begin + partRows < rows ? begin + partRows : rows;
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  W *ofPart = sums + int64_t{blockIdx.y} * width * (1 + (means ? 1 : 0) + (dx ? 1 : 0));
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < width; i += step) {
    W dgamma = 0, dbeta = 0, column = 0;
    for (int64_t row = begin; row < end; ++row) {
      W mean = means ? means[row] : W(0), slope = widen(dy[row * width + i]);
      dgamma += slope * ((widen(x[row * width + i]) - mean) * rstds[row]);
      dbeta += slope;
      if (dx)
        column += widen(dx[row * width + i]);
    }
    W *to = ofPart + i;
    *to = dgamma;
    if (means)
      *(to += width) = dbeta;
    if (dx)
      *(to += width) = column;
  }
}

/// The operands of a call.
template <typename F> struct NormGradOperands {
  const F *x, *gamma;
  const Wide<F> *means, *rstds; // no means: an RMS norm
  const F *dy, *added;          // added: to dx; null: nothing is
  F *dx;
  Wide<F> *dgamma, *dbeta;
  Wide<F> *columns; // the sums of the rows of dx; null: nothing
  Wide<F> *partial; // in the workspace
};

/// Neighbouring columns of a thread: as many of 16 bits as of f32, so that they are added in the
/// same order.
template <typename F> constexpr int kNormVector = sizeof(Wide<F>) == 8 ? 4 : 8;

/// The most threads of a block where each has one vector of a row, with several rows at a time: two
/// such blocks, of up to 80 registers a thread, are on a multiprocessor.
inline constexpr unsigned kNormThreads = 384;
/// Rows that are wider than the vectors of this many threads have two for each.
inline constexpr unsigned kNormRowThreads = 256;
template <typename F, bool sumsColumns = false>
constexpr int kMostNormVectors = sizeof(Wide<F>) == 8 || sumsColumns ? 1 : 2;

template <typename F> using NormVector = PackedVector<F, kNormVector<F>>;

/// The part of a row that a thread has: C vectors.
template <typename F, int C> struct NormGradRow {
  NormVector<F> x[C], dy[C];
  Wide<F> mean, rstd;
};

/// All of it in one pass over the rows of part blockIdx.x. `rowThreads` threads of the block, whole
/// warps, have a row, and as many rows are worked on at a time as the block has threads for. The
/// rows after them are read before the sums of these are made, so that memory always has work:
/// each multiprocessor of an H100 has 36 KB of GPT-2 124M's rows on the way. `inVectors` says how
/// rows are read, not in which order they are added. `added` may lie where dx is written. The rows
/// of dx are summed as they are written, if at all (`sumsColumns`).
template <typename F, int C, bool inVectors, bool sumsColumns>
__global__ void __launch_bounds__(C == 1 ? kNormThreads : kMaxBlockThreads,
                                  sizeof(F) == 2 && C == 1 && (inVectors || !sumsColumns) ? 2 : 1)
    normGradKernel(const NormGradOperands<F> __grid_constant__ at, int rows, int width,
                   int partRows, int rowThreads) {
  using W = Wide<F>;
  using Row = NormGradRow<F, C>;
  constexpr int V = kNormVector<F>;
  __shared__ W ofWarp[2][2][kMaxBlockThreads / kWarpThreads]; // of every second step the same
  int begin = static_cast<int>(blockIdx.x) * partRows;
  int end = begin + partRows < rows ? begin + partRows : rows;
  int groups = static_cast<int>(blockDim.x) / rowThreads;
  int group = static_cast<int>(threadIdx.x) / rowThreads;
  int thread = static_cast<int>(threadIdx.x) % rowThreads;
  int warp = static_cast<int>(threadIdx.x) / int{kWarpThreads}, lane = thread % int{kWarpThreads};
  int rowWarps = rowThreads / int{kWarpThreads};
  auto firstOf = [&](int c) { return (thread + c * rowThreads) * V; };
  auto loadFrom = [&](const F *all, int row, int c, bool exists) { // zeros if it does not
    return NormVector<F>::template load<inVectors>(all + int64_t{row} * width, firstOf(c),
                                                   exists ? width : 0);
  };
  auto load = [&](int row) {
    Row value;
    bool exists = row < end;
    value.mean = exists && at.means ? at.means[row] : W(0);
    value.rstd = exists ? at.rstds[row] : W(0);
#pragma unroll
    for (int c = 0; c < C; ++c) {
      value.x[c] = loadFrom(at.x, row, c, exists);
      value.dy[c] = loadFrom(at.dy, row, c, exists);
    }
    return value;
  };
  auto loadAdded = [&](int row, int c) {
    return loadFrom(at.added, row, c, at.added && row < end);
  };
  // As far as there are registers.
  constexpr bool readsAhead = inVectors && C * V * sizeof(F) <= 32;
  constexpr bool readsAddedAhead = readsAhead && C == 1 && !sumsColumns;
  Row next;
  NormVector<F> nextAdded[C];
  if constexpr (readsAhead)
    next = load(begin + group);
  if constexpr (readsAddedAhead)
    nextAdded[0] = loadAdded(begin + group, 0);
  W dgamma[C][V] = {}, dbeta[C][V] = {}, columns[sumsColumns ? C : 1][V] = {},
    perColumn = W(1) / static_cast<W>(width);
  int turn = 0;
  for (int row = begin + group; row - group < end; row += groups, turn ^= 1) {
    Row now;
    if constexpr (readsAhead)
      now = next;
    else
      now = load(row);
    NormVector<F> gamma[C], added[C];
#pragma unroll
    for (int c = 0; c < C; ++c) {
      gamma[c] = loadFrom(at.gamma, 0, c, true); // in the L1 cache, rather than in registers
      if constexpr (inVectors)
        added[c] = readsAddedAhead ? nextAdded[c] : loadAdded(row, c);
    }
    if constexpr (readsAhead)
      next = load(row + groups);
    if constexpr (readsAddedAhead)
      nextAdded[0] = loadAdded(row + groups, 0);
    auto normalized = [&](int c, int j) { return (now.x[c].widened(j) - now.mean) * now.rstd; };
    W slope[C][V], totals[2] = {}; // the sums of dxhat and of dxhat * xhat
#pragma unroll
    for (int c = 0; c < C; ++c) {
#pragma unroll
      for (int j = 0; j < V; ++j) {
        W xhat = firstOf(c) + (inVectors ? 0 : j) < width ? normalized(c, j) : W(0);
        slope[c][j] = now.dy[c].widened(j);
        dgamma[c][j] += slope[c][j] * xhat;
        dbeta[c][j] += slope[c][j];
        slope[c][j] *= gamma[c].widened(j);
        totals[0] += slope[c][j];
        totals[1] += slope[c][j] * xhat;
      }
      now.x[c].forgetResults();
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      totals[i] = reduceWarp<SumOf>(totals[i]);
      if (lane == 0)
        ofWarp[turn][i][warp] = totals[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; ++i)
      totals[i] =
          reduceWarp<SumOf>(lane < rowWarps ? ofWarp[turn][i][group * rowWarps + lane] : W(0));
    W sum = at.means ? totals[0] * perColumn : W(0), dot = totals[1] * perColumn;
    if (row >= end)
      continue;
#pragma unroll
    for (int c = 0; c < C; ++c) {
#pragma unroll
      for (int j = 0; j < V; ++j)
        slope[c][j] = roundedProduct(now.rstd, slope[c][j] - sum - normalized(c, j) * dot);
      NormVector<F> result = NormVector<F>::narrowed(slope[c]);
      if (at.added) {
        if constexpr (!inVectors)
          added[c] = loadAdded(row, c);
#pragma unroll
        for (int j = 0; j < V; ++j)
          slope[c][j] = added[c].widened(j) + result.widened(j);
        result = NormVector<F>::narrowed(slope[c]);
      }
      if constexpr (sumsColumns) {
#pragma unroll
        for (int j = 0; j < V; ++j)
          columns[c][j] += result.widened(j);
      }
      result.template store<inVectors>(at.dx + int64_t{row} * width, firstOf(c), width);
    }
  }
  int results = 1 + (at.means ? 1 : 0) + (sumsColumns ? 1 : 0);
  W *sums = at.partial + int64_t{blockIdx.x} * width * results;
  auto store = [&](const W(&own)[C][V], W *to) {
    if constexpr (C == 1) { // rows in more vectors have all threads of the block
      __shared__ W ofThread[V][kMaxBlockThreads];
      __syncthreads(); // the earlier contents have been read
#pragma unroll
      for (int j = 0; j < V; ++j)
        ofThread[j][threadIdx.x] = own[0][j];
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < width; i += static_cast<int>(blockDim.x)) {
        W total = ofThread[i % V][i / V];
        for (int other = 1; other < groups; ++other)
          total += ofThread[i % V][other * rowThreads + i / V];
        to[i] = total;
      }
    } else {
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int j = 0; j < V; ++j)
          if (firstOf(c) + j < width)
            to[firstOf(c) + j] = own[c][j];
    }
  };
  store(dgamma, sums);
  if (at.means)
    store(dbeta, sums += width);
  if constexpr (sumsColumns)
    store(columns, sums + width);
}

/// The sums of all parts, of up to three results. A warp's threads have neighbouring columns, and
/// its parts are those of the warp's number and every kSumWarps-th from there on. There are few
/// blocks, 48 for GPT-2 124M, so that each has many warps.
constexpr unsigned kSumWarps = 32;
template <typename W> struct SummedColumns {
  W *of[3];
  int64_t count, width;
};
template <typename W>
__global__ void __launch_bounds__(kSumWarps *kWarpThreads)
    addPartsKernel(const W *sums, int64_t parts, SummedColumns<W> results) {
  __shared__ W ofWarp[kSumWarps][kWarpThreads];
  int64_t perPart = results.count * results.width;
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
    int64_t result = i / results.width;
    W *to = result == 0 ? results.of[0] : result == 1 ? results.of[1] : results.of[2];
    to[i - result * results.width] = total;
  }
}

/// How the sums over the rows are cut: by their shape alone, so that all GPUs give the same bits.
struct NormGradParts {
  RowShape shape;
  int64_t results; // dgamma, of a layer norm dbeta, and the sums of dx where they are asked for
  int64_t vectors; // of a thread, in one pass; 0: a block has no registers for a row
  int64_t rowThreads, groups;
  int64_t partRows, parts;

  /// Threads have up to `mostVectors` vectors of `vector` columns.
  NormGradParts(const RowShape &shape, int64_t results, int64_t vector, int64_t mostVectors)
      : shape(shape), results(results) {
    auto divideUp = [](int64_t count, int64_t unit) { return (count + unit - 1) / unit; };
    int64_t rowVectors = std::max<int64_t>(divideUp(shape.width, vector), 1);
    vectors = divideUp(rowVectors, kNormRowThreads);
    rowThreads = divideUp(divideUp(rowVectors, vectors), kWarpThreads) * kWarpThreads;
    groups = vectors == 1 ? std::max<int64_t>(kNormThreads / rowThreads, 1) : 1;
    if (vectors > mostVectors || shape.rows > INT32_MAX / 2)
      vectors = 0;
    // As many parts as an H100 holds blocks of the kernels for 16 bits at a time.
    int64_t warps = rowThreads * groups / kWarpThreads;
    int64_t most = 132 * std::max<int64_t>((vectors == 1 ? 24 : 16) / warps, 1);
    partRows = divideUp(std::max<int64_t>(16, divideUp(shape.rows, most)), groups) * groups;
    parts = divideUp(shape.rows, partRows);
  }
  int64_t sums() const { return parts * shape.width * results; }
};

/// dx and the sums of all parts, in one launch where a block's threads have registers for a row.
template <typename F>
MaybeError enqueueParts(CudaQueue &queue, const NormGradParts &cut, const NormGradOperands<F> &at) {
  const RowShape &shape = cut.shape;
  constexpr int V = kNormVector<F>;
  constexpr size_t bytes = sizeof(Vector<F, V>);
  bool inVectors = shape.width % V == 0 && isAligned(at.x, bytes) && isAligned(at.gamma, bytes) &&
                   isAligned(at.dy, bytes) && isAligned(at.added, bytes) && isAligned(at.dx, bytes);
  auto launchOnePass = [&](auto vectors, auto sumsColumns) {
    constexpr int C = decltype(vectors)::value;
    constexpr bool sums = decltype(sumsColumns)::value;
    LaunchShape blocks{static_cast<unsigned>(cut.parts), 1,
                       static_cast<unsigned>(cut.rowThreads * cut.groups)};
    return launch(queue, blocks,
                  inVectors ? normGradKernel<F, C, true, sums> : normGradKernel<F, C, false, sums>,
                  at, shape.rows, static_cast<int>(shape.width), cut.partRows,
                  static_cast<int>(cut.rowThreads));
  };
  auto inOnePass = [&](auto vectors) {
    if constexpr (decltype(vectors)::value <= kMostNormVectors<F, true>)
      if (at.columns)
        return launchOnePass(vectors, std::true_type());
    return launchOnePass(vectors, std::false_type());
  };
  if (cut.vectors == 1)
    return inOnePass(std::integral_constant<int, 1>());
  if constexpr (kMostNormVectors<F> == 2)
    if (cut.vectors == 2)
      return inOnePass(std::integral_constant<int, 2>());
  if (MaybeError error =
          launch(queue, blockPerRow(shape.rows, shape.width / 4), normInputGradKernel<F>, at.x,
                 at.gamma, at.means, at.rstds, at.dy, at.added, at.dx, shape.rows, shape.width))
    return error;
  LaunchShape columns = gridStride(queue, shape.width);
  columns.blocksY = static_cast<unsigned>(cut.parts);
  const F *dx = at.columns ? at.dx : nullptr;
  return launch(queue, columns, normParameterGradKernel<F>, at.x, at.means, at.rstds, at.dy, dx,
                at.partial, shape.rows, shape.width, cut.partRows);
}

template <typename F>
MaybeError enqueueNormGrad(CudaQueue &queue, const NormGradParts &cut,
                           const NormGradOperands<F> &at) {
  if (cut.parts > 0) // rows
    if (MaybeError error = enqueueParts(queue, cut, at))
      return error;
  LaunchShape columns = blockPerRow((cut.shape.width * cut.results + 31) / 32, 0);
  columns.threads = kSumWarps * kWarpThreads;
  SummedColumns<Wide<F>> results{{at.dgamma}, 1, cut.shape.width};
  if (at.dbeta)
    results.of[results.count++] = at.dbeta;
  if (at.columns)
    results.of[results.count++] = at.columns;
  return launch(queue, columns, addPartsKernel<Wide<F>>, static_cast<const Wide<F> *>(at.partial),
                cut.parts, results);
}

template <typename F>
std::unique_ptr<CudaKernel> makeNormGrad(const RowShape &shape, size_t statistics) {
  using W = Wide<F>;
  NormGradParts cut(shape, static_cast<int64_t>(statistics), kNormVector<F>, kMostNormVectors<F>);
  return makeKernel(
      [=](CudaQueue &queue, const KernelArguments &args) {
        bool hasMean = statistics == 2;
        return enqueueNormGrad<F>(
            queue, cut,
            {input<F>(args, 0), input<F>(args, 1), hasMean ? input<W>(args, 2) : nullptr,
             input<W>(args, 1 + statistics), input<F>(args, 2 + statistics), nullptr,
             output<F>(args, 0), output<W>(args, 1), hasMean ? output<W>(args, 2) : nullptr,
             nullptr, static_cast<W *>(args.workspace)});
      },
      arrayBytes<W>(cut.sums()));
}

template <size_t statistics> PrepareResult prepareNormGrad(const RowShape &shape) {
  return withFloatType(shape.dtype, [&](auto identity) {
    return makeNormGrad<typename decltype(identity)::type>(shape, statistics);
  });
}

template <typename F>
std::unique_ptr<CudaKernel> makeAddedNormGrad(const FusedCalls &calls, const AddedGradient &match,
                                              const RowShape &shape, size_t statistics) {
  using W = Wide<F>;
  std::vector<size_t> index = calls.operandIndices(), in, out{index[match.sum]};
  for (size_t value : match.grad->inputs)
    in.push_back(index[value]);
  for (size_t i = 1; i < match.grad->outputs.size(); ++i)
    out.push_back(index[match.grad->outputs[i]]);
  in.push_back(index[match.added]);
  // A third call sums the rows of the sum.
  std::optional<size_t> columns;
  if (calls.calls.size() == 3)
    columns = index[calls.calls[2].outputs[0]];
  NormGradParts cut(shape, static_cast<int64_t>(statistics) + (columns ? 1 : 0), kNormVector<F>,
                    columns ? kMostNormVectors<F, true> : kMostNormVectors<F>);
  return makeKernel(
      [=](CudaQueue &queue, const KernelArguments &args) {
        bool hasMean = statistics == 2;
        return enqueueNormGrad<F>(
            queue, cut,
            {input<F>(args, in[0]), input<F>(args, in[1]),
             hasMean ? input<W>(args, in[2]) : nullptr, input<W>(args, in[1 + statistics]),
             input<F>(args, in[2 + statistics]), input<F>(args, in.back()), output<F>(args, out[0]),
             output<W>(args, out[1]), hasMean ? output<W>(args, out[2]) : nullptr,
             columns ? output<W>(args, *columns) : nullptr, static_cast<W *>(args.workspace)});
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
      {"layer_norm_grad", prepareBy<checkLayerNormGrad, prepareNormGrad<2>>},
      {"rms_norm_grad", prepareBy<checkRmsNormGrad, prepareNormGrad<1>>},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
