//===- AttentionGrad.cu - The gradient of attention -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The weights are recomputed from q, k and lse, once for the gradient of the queries and once
// for those of keys and values, each by blocks that own what they add to.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/AttentionGradByWarpgroups.h"
#include "runtime/backends/cuda/DeviceAttention.h"
#include "runtime/backends/cuda/JoinedAttention.h"
#include "runtime/backends/cuda/VisibleRanges.h"

namespace dtc::runtime::cuda {

namespace {

template <typename F> struct Operands {
  const F *q, *k, *v, *out;
  const Wide<F> *lse;
  const F *dout;
  F *dq, *dk, *dv;
  /// The sum of out * dout for each query of each head, in the order of lse.
  Wide<F> *dots;
};

inline constexpr unsigned kDotThreads = 256;

/// dots; a warp for each row of out and dout.
template <typename F>
__global__ void __launch_bounds__(kDotThreads)
    attentionDotsKernel(const DeviceAttention shape, const Operands<F> operands) {
  using W = Wide<F>;
  int64_t rows = shape.batch * shape.queries * shape.heads;
  int64_t step = int64_t{gridDim.x} * (blockDim.x / kWarpThreads);
  int64_t row = int64_t{blockIdx.x} * (blockDim.x / kWarpThreads) + threadIdx.x / kWarpThreads;
  for (; row < rows; row += step) {
    W sum = 0;
    for (int64_t d = threadIdx.x % kWarpThreads; d < shape.headSize; d += kWarpThreads)
      sum += widen(operands.out[row * shape.headSize + d]) *
             widen(operands.dout[row * shape.headSize + d]);
    sum = reduceWarp<SumOf>(sum);
    int64_t head = row % shape.heads, query = row / shape.heads % shape.queries;
    int64_t b = row / shape.heads / shape.queries;
    if (threadIdx.x % kWarpThreads == 0)
      operands.dots[(b * shape.heads + head) * shape.queries + query] = sum;
  }
}

/// Transforms one score: `weight` has its product, then the weight, with the mask where `factor` is
/// the mask's; `slope` has the gradient of the masked weight, then that of the product.
template <bool IsBounded, typename W>
__device__ __forceinline__ void weighGradient(const DeviceAttention &shape, bool isVisible, W scale,
                                              W lse, W dot, W factor, W &weight, W &slope) {
  W capSlope, score = shape.score<IsBounded>(weight, scale, capSlope);
  W p = isVisible ? exp(score - lse) : W(0);
  // With a mask m, out has the weights p * m, and the gradient of p is m * slope. The sum of p and
  // its gradient over a row is that of out * dout.
  slope = isVisible ? p * (factor * slope - dot) * scale * capSlope : W(0);
  weight = p * factor;
}

/// A block has a tile of queries of a head and walks the keys that these see.
template <typename T, int D, bool IsBounded, typename F = typename T::Element>
__global__ void __launch_bounds__(T::threads, kLeastBlocks)
    attentionQueryGradKernel(const DeviceAttention shape, const DeviceDropout dropout,
                             const Operands<F> operands, Wide<F> scale) {
  using W = Wide<F>;
  __shared__ typename T::Memory memory;
  auto tasks = AttentionTasks<T, D>::ofQueries(shape);
  for (int64_t task = blockIdx.x; task < tasks.count(); task += gridDim.x) {
    auto [b, head, tile, column] = tasks[task];
    DeviceAttention sample = shape.of<IsBounded>(b);
    int64_t begin = (tasks.tiles - 1 - tile) * T::size;
    int64_t kvHead = head / (shape.heads / shape.kvHeads);
    int rows = DeviceAttention::atMost(begin, shape.queries, T::size);
    HeadRows<F> q = shape.queryRows(operands.q, b, head, begin, rows);
    HeadRows<F> dout = shape.outRows(operands.dout, b, head, begin, rows);
    W sums[T::rows][T::template columns<D>] = {};
    int64_t seen = sample.visibleToRows<IsBounded>(begin, rows);
    int64_t unseen = sample.firstVisibleToRows<IsBounded>(begin, rows) / T::width * T::width;
    for (int64_t key = unseen; key < seen; key += T::width) {
      int columns = DeviceAttention::atMost(key, seen, T::width);
      HeadRows<F> k = shape.keyRows(operands.k, b, kvHead, key, columns);
      W weights[T::rows][T::scoreColumns] = {}, slopes[T::rows][T::scoreColumns] = {};
      T::addProduct(q, k, weights, memory);
      T::addProduct(dout, shape.keyRows(operands.v, b, kvHead, key, columns), slopes, memory);
#pragma unroll
      for (int i = 0; i < T::rows; ++i) {
        bool exists = T::rowOf(i) < rows;
        int64_t query = begin + T::rowOf(i);
        int visible =
            exists ? DeviceAttention::atMost(key, sample.visible<IsBounded>(query), T::width) : 0;
        int hidden = DeviceAttention::atMost(key, sample.firstVisible<IsBounded>(query), T::width);
        int64_t at = (b * shape.heads + head) * shape.queries + query;
        W lse = exists ? operands.lse[at] : W(0), dot = exists ? operands.dots[at] : W(0);
        bool kept[T::scoreColumns];
        readMask(
            dropout, dropout.element(b, head, query, key), [](int j) { return T::columnOf(j); },
            kept);
#pragma unroll
        for (int j = 0; j < T::scoreColumns; ++j)
          weighGradient<IsBounded>(
              shape, (!IsBounded || T::columnOf(j) >= hidden) && T::columnOf(j) < visible, scale,
              lse, dot, kept[j] ? static_cast<W>(dropout.scale) : W(0), weights[i][j],
              slopes[i][j]);
      }
      T::template addWeighted<D>(T::pack(slopes, memory), k.columns(column, D), sums, memory);
    }
    storeRows<T, D>(sums, operands.dq, q.columns(column, D), operands.q);
  }
}

/// A block has a tile of keys of a key-value head and walks the queries that see some of them, head
/// by head of its group. Rows of tiles are keys, columns are queries.
template <typename T, int D, bool IsBounded, typename F = typename T::Element>
__global__ void __launch_bounds__(T::threads, kLeastBlocks)
    attentionKeyGradKernel(const DeviceAttention shape, const DeviceDropout dropout,
                           const Operands<F> operands, Wide<F> scale) {
  using W = Wide<F>;
  __shared__ typename T::Memory memory;
  auto tasks = AttentionTasks<T, D>::ofKeys(shape);
  int64_t group = shape.heads / shape.kvHeads;
  for (int64_t task = blockIdx.x; task < tasks.count(); task += gridDim.x) {
    auto [b, kvHead, tile, column] = tasks[task];
    DeviceAttention sample = shape.of<IsBounded>(b);
    int64_t begin = tile * T::size; // the first keys are seen by most queries
    int rows = DeviceAttention::atMost(begin, shape.keys, T::size);
    HeadRows<F> k = shape.keyRows(operands.k, b, kvHead, begin, rows);
    HeadRows<F> v = shape.keyRows(operands.v, b, kvHead, begin, rows);
    W keySums[T::rows][T::template columns<D>] = {};
    W valueSums[T::rows][T::template columns<D>] = {};
    int64_t first = sample.firstQuery<IsBounded>(begin) / T::width * T::width;
    int64_t last = sample.lastQueries<IsBounded>(begin + rows);
    for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head)
      for (int64_t query = first; query < last; query += T::width) {
        int columns = DeviceAttention::atMost(query, shape.queries, T::width);
        HeadRows<F> q = shape.queryRows(operands.q, b, head, query, columns);
        HeadRows<F> dout = shape.outRows(operands.dout, b, head, query, columns);
        W weights[T::rows][T::scoreColumns] = {}, slopes[T::rows][T::scoreColumns] = {};
        T::addProduct(k, q, weights, memory);
        T::addProduct(v, dout, slopes, memory);
#pragma unroll
        for (int j = 0; j < T::scoreColumns; ++j) {
          bool exists = T::columnOf(j) < columns;
          int64_t i = query + T::columnOf(j);
          int visible =
              exists ? DeviceAttention::atMost(begin, sample.visible<IsBounded>(i), rows) : 0;
          int hidden = DeviceAttention::atMost(begin, sample.firstVisible<IsBounded>(i), rows);
          int64_t at = (b * shape.heads + head) * shape.queries + i;
          W lse = exists ? operands.lse[at] : W(0), dot = exists ? operands.dots[at] : W(0);
          bool kept[T::rows];
          readMask(
              dropout, dropout.element(b, head, i, begin), [](int r) { return T::rowOf(r); }, kept);
#pragma unroll
          for (int r = 0; r < T::rows; ++r)
            weighGradient<IsBounded>(
                shape, (!IsBounded || T::rowOf(r) >= hidden) && T::rowOf(r) < visible, scale, lse,
                dot, kept[r] ? static_cast<W>(dropout.scale) : W(0), weights[r][j], slopes[r][j]);
        }
        T::template addWeighted<D>(T::pack(weights, memory), dout.columns(column, D), valueSums,
                                   memory);
        T::template addWeighted<D>(T::pack(slopes, memory), q.columns(column, D), keySums, memory);
      }
    storeRows<T, D>(keySums, operands.dk, k.columns(column, D), operands.k);
    storeRows<T, D>(valueSums, operands.dv, v.columns(column, D), operands.v);
  }
}

template <typename T, int D, bool IsBounded, typename F = typename T::Element>
MaybeError enqueueAttentionGrad(CudaQueue &queue, const PlacedAttention &placed,
                                const KernelArguments &given) {
  using W = Wide<F>;
  const AttentionCall &call = placed.call;
  ApartArguments apart(placed, given);
  const KernelArguments &args = apart.get();
  AttentionShape shape = call.shapeAt(args.position);
  DeviceAttention device(placed, shape);
  DeviceDropout dropout(call, args);
  W scale = static_cast<W>(shape.scale);
  Operands<F> operands = {input<F>(args, 0),  input<F>(args, 1),
                          input<F>(args, 2),  input<F>(args, 3),
                          input<W>(args, 4),  input<F>(args, 5),
                          output<F>(args, 0), output<F>(args, 1),
                          output<F>(args, 2), static_cast<W *>(args.workspace)};
  int64_t rows = shape.batch * shape.queries * shape.heads;
  if (MaybeError error =
          enqueueRanges(queue, call, args,
                        static_cast<std::byte *>(args.workspace) + arrayBytes<W>(rows), device))
    return error;
  if (MaybeError error = launch(queue, gridStride(queue, rows * kWarpThreads, kDotThreads),
                                attentionDotsKernel<F>, device, operands))
    return error;
  if (MaybeError error =
          launch(queue, attentionGrid(AttentionTasks<T, D>::ofQueries(device)),
                 attentionQueryGradKernel<T, D, IsBounded>, device, dropout, operands, scale))
    return error;
  return launch(queue, attentionGrid(AttentionTasks<T, D>::ofKeys(device)),
                attentionKeyGradKernel<T, D, IsBounded>, device, dropout, operands, scale);
}

PrepareResult prepareAttentionGrad(const PlacedAttention &placed) {
  const AttentionCall &call = placed.call;
  int64_t rows = call.shape.batch * call.shape.queries * call.shape.heads;
  return withFloatType(call.dtype, [&](auto identity) {
    using F = typename decltype(identity)::type;
    size_t workspace = arrayBytes<Wide<F>>(rows) + rangeBytes(call);
    auto make = [&](auto tiles, auto columns, auto isBounded) -> std::unique_ptr<CudaKernel> {
      using T = typename decltype(tiles)::type;
      return makeKernel(
          [placed](CudaQueue &queue, const KernelArguments &args) {
            return enqueueAttentionGrad<T, decltype(columns)::value, decltype(isBounded)::value>(
                queue, placed, args);
          },
          workspace);
    };
    std::unique_ptr<CudaKernel> kernel = withTiles<F, /*IsGradient=*/true>(call, make);
    return canUseWarpgroups(call) ? makeAttentionGradByWarpgroups(placed, std::move(kernel))
                                  : std::move(kernel);
  });
}

} // namespace

std::span<const KernelEntry> attentionGradKernels() {
  static constexpr KernelEntry entries[] = {
      {"attention_grad", prepareBy<checkPlacedAttention, prepareAttentionGrad>},
      {"joined_attention_grad", prepareBy<checkPlacedAttention, prepareAttentionGrad>}};
  return entries;
}

} // namespace dtc::runtime::cuda
