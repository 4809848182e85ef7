//===- Attention.cu - Scaled dot-product attention ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/DeviceAttention.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/JoinedAttention.h"
#include "runtime/backends/cuda/Launch.h"
#include "runtime/backends/cuda/VisibleRanges.h"

namespace dtc::runtime::cuda {

namespace {

/// The operands of attention and cached_attention. Without `positions`, which have the number of
/// earlier keys of each batch element, it is that of the shape. lse and sinks may be null.
template <typename F> struct Operands {
  const F *q, *k, *v;
  const int32_t *positions;
  F *out;
  Wide<F> *lse;
  const F *sinks;
};

/// The state of a thread's rows: the largest score so far, its own share of the sum of the
/// exponentials relative to that, and its columns of the sum of the values with these weights.
template <typename T, int D> struct RowState {
  using W = typename T::W;
  W largest[T::rows], sums[T::rows], out[T::rows][T::template columns<D>];

  __device__ __forceinline__ RowState() {
#pragma unroll
    for (int i = 0; i < T::rows; ++i) {
      largest[i] = -W(INFINITY);
      sums[i] = 0;
#pragma unroll
      for (int c = 0; c < T::template columns<D>; ++c)
        out[i][c] = 0;
    }
  }

  /// Turns the products of row i into weights. The columns from `hidden` to `visible` are seen.
  template <bool IsBounded>
  __device__ __forceinline__ void weigh(const DeviceAttention &shape, int i,
                                        W (&row)[T::scoreColumns], int hidden, int visible,
                                        W scale) {
    W top = largest[i];
#pragma unroll
    for (int j = 0; j < T::scoreColumns; ++j) {
      bool isSeen = (!IsBounded || T::columnOf(j) >= hidden) && T::columnOf(j) < visible;
      W slope;
      row[j] = isSeen ? shape.score<IsBounded>(row[j], scale, slope) : -W(INFINITY);
      top = MaxOf::combine(top, row[j]);
    }
    top = T::template reduceRow<MaxOf>(top);
    // A row that has seen nothing has no largest score.
    W base = top == -W(INFINITY) ? W(0) : top;
    W decay = exp(largest[i] - base);
    largest[i] = top;
    sums[i] *= decay;
#pragma unroll
    for (int j = 0; j < T::scoreColumns; ++j) {
      row[j] = exp(row[j] - base);
      sums[i] += row[j];
    }
#pragma unroll
    for (int c = 0; c < T::template columns<D>; ++c)
      out[i][c] *= decay;
  }

  /// Adds a score to row i, whose value is 0 and whose sum is `sum`. The result is the factor for
  /// the sum of the values.
  __device__ __forceinline__ W addSink(int i, W sink, W &sum) {
    W before = largest[i];
    largest[i] = MaxOf::combine(before, sink);
    // A row that has seen nothing has no weights.
    W factor = before == -W(INFINITY) ? W(0) : exp(before - largest[i]);
    sum = sum * factor + exp(sink - largest[i]);
    return factor;
  }
};

/// A block has a tile of queries of a head and walks the keys that these see, a tile at a time. The
/// last tiles of all heads come first: where it is causal, they take longest.
template <typename T, int D, bool IsBounded, typename F = typename T::Element>
__global__ void __launch_bounds__(T::threads, kLeastBlocks)
    attentionKernel(const DeviceAttention shape, const DeviceDropout dropout,
                    const Operands<F> operands, Wide<F> scale) {
  using W = Wide<F>;
  __shared__ typename T::Memory memory;
  auto tasks = AttentionTasks<T, D>::ofQueries(shape);
  for (int64_t task = blockIdx.x; task < tasks.count(); task += gridDim.x) {
    auto [b, head, tile, column] = tasks[task];
    int64_t begin = (tasks.tiles - 1 - tile) * T::size;
    int64_t kvHead = head / (shape.heads / shape.kvHeads);
    int rows = DeviceAttention::atMost(begin, shape.queries, T::size);
    DeviceAttention sample = shape.of<IsBounded>(b);
    if (operands.positions)
      sample.earlier = operands.positions[b];
    HeadRows<F> q = shape.queryRows(operands.q, b, head, begin, rows);
    RowState<T, D> state;
    int64_t seen = sample.visibleToRows<IsBounded>(begin, rows);
    int64_t unseen = sample.firstVisibleToRows<IsBounded>(begin, rows) / T::width * T::width;
    for (int64_t key = unseen; key < seen; key += T::width) {
      int columns = DeviceAttention::atMost(key, seen, T::width);
      W weights[T::rows][T::scoreColumns] = {};
      T::addProduct(q, shape.keyRows(operands.k, b, kvHead, key, columns), weights, memory);
#pragma unroll
      for (int i = 0; i < T::rows; ++i) {
        int64_t query = begin + T::rowOf(i);
        int visible = T::rowOf(i) < rows
                          ? DeviceAttention::atMost(key, sample.visible<IsBounded>(query), T::width)
                          : 0;
        int hidden = DeviceAttention::atMost(key, sample.firstVisible<IsBounded>(query), T::width);
        state.template weigh<IsBounded>(shape, i, weights[i], hidden, visible, scale);
        bool kept[T::scoreColumns];
        readMask(
            dropout, dropout.element(b, head, query, key), [](int j) { return T::columnOf(j); },
            kept);
#pragma unroll
        for (int j = 0; j < T::scoreColumns; ++j)
          weights[i][j] = kept[j] ? weights[i][j] : W(0);
      }
      HeadRows<F> v = shape.keyRows(operands.v, b, kvHead, key, columns).columns(column, D);
      T::template addWeighted<D>(T::pack(weights, memory), v, state.out, memory);
    }
#pragma unroll
    for (int i = 0; i < T::rows; ++i) {
      W sum = T::template reduceRow<SumOf>(state.sums[i]);
      W scale = static_cast<W>(dropout.scale);
      if (operands.sinks)
        scale *= state.addSink(i, widen(operands.sinks[head]), sum);
      W factor = sum == 0 ? W(0) : scale / sum;
#pragma unroll
      for (int c = 0; c < T::template columns<D>; ++c)
        state.out[i][c] *= factor;
      if (operands.lse && column == 0 && T::isFirstOfRow() && T::rowOf(i) < rows)
        operands.lse[(b * shape.heads + head) * shape.queries + begin + T::rowOf(i)] =
            state.largest[i] + log(sum);
    }
    HeadRows<F> out = shape.outRows<F>(operands.out, b, head, begin, rows);
    storeRows<T, D, F>(state.out, operands.out, out.columns(column, D), operands.out);
  }
}

/// A block has a row of a head at a time. merged may be out; merged_lse is not lse, which all
/// threads of a block read.
template <typename F>
__global__ void __launch_bounds__(64)
    mergeAttentionKernel(const Wide<F> *out, const Wide<F> *lse, const F *part,
                         const Wide<F> *partLse, Wide<F> *merged, Wide<F> *mergedLse,
                         int64_t queries, int64_t heads, int64_t headSize, int64_t rows) {
  using W = Wide<F>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int64_t head = row / queries % heads, query = row % queries, b = row / (heads * queries);
    int64_t begin = ((b * queries + query) * heads + head) * headSize;
    W a = lse[row], c = partLse[row], largest = a > c ? a : c;
    // Where neither has seen a key, all weights are 0.
    W base = largest == -W(INFINITY) ? W(0) : largest;
    W weight = exp(a - base), partWeight = exp(c - base), sum = weight + partWeight;
    W factor = sum == 0 ? W(0) : W(1) / sum;
    weight *= factor;
    partWeight *= factor;
    if (threadIdx.x == 0)
      mergedLse[row] = base + log(sum);
    for (int64_t i = begin + threadIdx.x; i < begin + headSize; i += blockDim.x)
      merged[i] = weight * out[i] + partWeight * widen(part[i]);
  }
}

PrepareResult prepareMerge(const MergeAttentionCall &call) {
  return withFloatType(call.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    using W = Wide<F>;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      int64_t rows = call.batch * call.queries * call.heads;
      LaunchShape grid = {static_cast<unsigned>(std::min<int64_t>(rows, 1 << 30)), 1, 64};
      return launch(queue, grid, mergeAttentionKernel<F>, input<W>(args, 0), input<W>(args, 1),
                    input<F>(args, 2), input<W>(args, 3), output<W>(args, 0), output<W>(args, 1),
                    call.queries, call.heads, call.headSize, rows);
    });
  });
}

template <typename F>
std::unique_ptr<CudaKernel> makeAttention(PlacedAttention placed, bool cached) {
  size_t workspace = rangeBytes(placed.call);
  auto make = [&](auto tiles, auto columns, auto isBounded) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(tiles)::type;
    return makeKernel(
        [placed, cached](CudaQueue &queue, const KernelArguments &given) -> MaybeError {
          const AttentionCall &call = placed.call;
          ApartArguments apart(placed, given);
          const KernelArguments &args = apart.get();
          AttentionShape shape = call.shapeAt(args.position);
          Operands<F> operands = {input<F>(args, 0),
                                  input<F>(args, 1),
                                  input<F>(args, 2),
                                  cached ? input<int32_t>(args, 3) : nullptr,
                                  output<F>(args, 0),
                                  cached ? nullptr : output<Wide<F>>(args, 1),
                                  call.sinks ? input<F>(args, *call.sinks) : nullptr};
          constexpr int D = decltype(columns)::value;
          DeviceAttention device(placed, shape);
          if (MaybeError error =
                  enqueueRanges(queue, call, args, args.workspace, device, operands.positions))
            return *error;
          return launch(queue, attentionGrid(AttentionTasks<T, D>::ofQueries(device)),
                        attentionKernel<T, D, decltype(isBounded)::value>, device,
                        DeviceDropout(call, args), operands, static_cast<Wide<F>>(shape.scale));
        },
        workspace);
  };
  return withTiles<F, /*IsGradient=*/false>(placed.call, make);
}

PrepareResult prepare(PlacedAttention placed, bool cached) {
  return withFloatType(placed.call.dtype, [&](auto identity) {
    return makeAttention<typename decltype(identity)::type>(std::move(placed), cached);
  });
}

PrepareResult prepareAttention(PlacedAttention placed) { return prepare(std::move(placed), false); }
PrepareResult prepareCachedAttention(AttentionCall call) {
  return prepare({std::move(call), std::nullopt, false}, true);
}

} // namespace

std::span<const KernelEntry> attentionKernels() {
  static constexpr KernelEntry entries[] = {
      {"attention", prepareBy<checkPlacedAttention, prepareAttention>},
      {"cached_attention", prepareBy<checkCachedAttention, prepareCachedAttention>},
      {"joined_attention", prepareBy<checkPlacedAttention, prepareAttention>},
      {"merge_attention", prepareBy<checkMergeAttention, prepareMerge>},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
