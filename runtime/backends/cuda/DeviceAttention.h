//===- DeviceAttention.h - Common parts of attention kernels --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Scores are computed tile by tile, in shared memory and registers, and never stored: Dao et al.,
// "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness" (NeurIPS 2022), and
// Dao, "FlashAttention-2" (2023). No sum is made by atomic additions, so that results repeat bit by
// bit. How a block computes the products of tiles is a parameter of the kernels: by fused
// multiply-adds (FmaTiles.h), or by tensor cores (MmaTiles.h).
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_DEVICEATTENTION_H
#define DTC_RUNTIME_BACKENDS_CUDA_DEVICEATTENTION_H

#include "calls/JoinedAttention.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/DeviceMask.h"
#include "runtime/backends/cuda/FmaTiles.h"
#include "runtime/backends/cuda/MmaTiles.h"

#include <cstdint>
#include <type_traits>

namespace dtc::runtime::cuda {

/// The blocks of attention on a multiprocessor. Left to choose, ptxas spills registers to make room
/// for two.
inline constexpr int kLeastBlocks = 1;

/// An AttentionShape as a parameter of kernels. Whether each query has a range of keys of its own,
/// or there is a soft cap, is a parameter of their templates: without, no registers are spent on
/// it.
struct DeviceAttention {
  int64_t batch, queries, keys, heads, kvHeads, headSize, earlier;
  int queryRow, keyRow, outRow; ///< elements between the rows of q, of k and v, and of out
  bool causal;
  double softcap;
  /// For each query of each batch element, or of the one at work, the keys that it sees (see
  /// VisibleRanges.h); null: causal or not is all.
  const SegmentRange *ranges = nullptr;
  bool areIncreasing = true; ///< later queries see no earlier keys

  DeviceAttention(const PlacedAttention &placed, const AttentionShape &shape)
      : batch(shape.batch), queries(shape.queries), keys(shape.keys), heads(shape.heads),
        kvHeads(shape.kvHeads), headSize(shape.headSize),
        earlier(shape.earlier + shape.order.offset),
        queryRow(static_cast<int>(placed.rowHeads(heads) * headSize)),
        keyRow(static_cast<int>(placed.rowHeads(kvHeads) * headSize)),
        outRow(static_cast<int>(heads * headSize)), causal(shape.causal), softcap(shape.softcap) {}

  /// The shape with the ranges of batch element `b`.
  template <bool IsBounded> __device__ __forceinline__ DeviceAttention of(int64_t b) const {
    DeviceAttention element = *this;
    if (IsBounded && ranges)
      element.ranges += b * queries;
    return element;
  }
  /// The end of the keys that query `i` sees.
  template <bool IsBounded> __device__ __forceinline__ int64_t visible(int64_t i) const {
    if (IsBounded && ranges)
      return ranges[i < queries ? i : queries - 1].end;
    int64_t seen = causal ? i + 1 + earlier : keys;
    return seen < 0 ? 0 : seen < keys ? seen : keys;
  }
  /// The first key that query `i` sees.
  template <bool IsBounded> __device__ __forceinline__ int64_t firstVisible(int64_t i) const {
    return IsBounded && ranges ? ranges[i < queries ? i : queries - 1].begin : 0;
  }
  /// The end of the keys that queries [begin, begin + rows) see.
  template <bool IsBounded>
  __device__ __forceinline__ int64_t visibleToRows(int64_t begin, int rows) const {
    int64_t seen = visible<IsBounded>(begin + rows - 1);
    if (IsBounded && !areIncreasing)
      for (int64_t i = begin; i < begin + rows - 1; ++i)
        seen = ranges[i].end > seen ? ranges[i].end : seen;
    return seen;
  }
  /// The first key that one of queries [begin, begin + rows) sees.
  template <bool IsBounded>
  __device__ __forceinline__ int64_t firstVisibleToRows(int64_t begin, int rows) const {
    int64_t first = firstVisible<IsBounded>(begin);
    if (IsBounded && !areIncreasing)
      for (int64_t i = begin + 1; i < begin + rows; ++i)
        first = ranges[i].begin < first ? ranges[i].begin : first;
    return first;
  }
  /// The first query that sees one of the keys from `key` on.
  template <bool IsBounded> __device__ __forceinline__ int64_t firstQuery(int64_t key) const {
    if (IsBounded && ranges)
      return areIncreasing ? countQueries([=, this](int64_t i) { return ranges[i].end <= key; })
                           : 0;
    int64_t first = causal ? key - earlier : 0;
    return first < 0 ? 0 : first;
  }
  /// The end of the queries, in order, that see a key before `end`.
  template <bool IsBounded> __device__ __forceinline__ int64_t lastQueries(int64_t end) const {
    if (!IsBounded || !ranges || !areIncreasing)
      return queries;
    return countQueries([=, this](int64_t i) { return ranges[i].begin < end; });
  }
  /// How many queries there are before the first for which the condition does not hold.
  template <typename Condition>
  __device__ __forceinline__ int64_t countQueries(const Condition &holds) const {
    int64_t low = 0, high = queries;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (holds(middle))
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  /// From a product to a score; `slope` gets the derivative by the scaled product.
  template <bool IsBounded, typename W>
  __device__ __forceinline__ W score(W product, W scale, W &slope) const {
    W scaled = scale * product;
    slope = 1;
    if (!IsBounded || softcap == 0)
      return scaled;
    W cap = static_cast<W>(softcap), part = tanh(scaled / cap);
    slope = W(1) - part * part;
    return cap * part;
  }
  /// How many there are from `begin` to `end`, none to `size`.
  static __device__ __forceinline__ int atMost(int64_t begin, int64_t end, int size) {
    int64_t left = end - begin;
    return left < 0 ? 0 : left < size ? static_cast<int>(left) : size;
  }
  /// Rows [begin, ...) of a head of q or its gradient.
  template <typename F>
  __device__ __forceinline__ HeadRows<F> queryRows(const F *q, int64_t b, int64_t head,
                                                   int64_t begin, int rows) const {
    return {q + (b * queries + begin) * queryRow + head * headSize, queryRow, rows,
            static_cast<int>(headSize)};
  }
  /// Those of out or its gradient.
  template <typename F>
  __device__ __forceinline__ HeadRows<F> outRows(const F *out, int64_t b, int64_t head,
                                                 int64_t begin, int rows) const {
    return {out + (b * queries + begin) * outRow + head * headSize, outRow, rows,
            static_cast<int>(headSize)};
  }
  /// Those of k, v or their gradients.
  template <typename F>
  __device__ __forceinline__ HeadRows<F> keyRows(const F *k, int64_t b, int64_t kvHead,
                                                 int64_t begin, int rows) const {
    return {k + (b * keys + begin) * keyRow + kvHead * headSize, keyRow, rows,
            static_cast<int>(headSize)};
  }
};

/// Dropout of the weights, as a parameter of kernels.
struct DeviceDropout {
  MaskWords words;
  int64_t origin = 0;
  int64_t strides[3] = {};
  const int32_t *key = nullptr; // null if nothing is dropped
  double scale = 1;

  /// The dropout of a call that runs.
  DeviceDropout(const AttentionCall &call, const KernelArguments &args) {
    if (!call.mask)
      return;
    // The seed and the iteration are read on the GPU.
    static constexpr int32_t noKey[2] = {};
    LocalMask local = call.mask->at(args.position, noKey);
    words = local.words;
    origin = local.origin;
    std::copy(call.maskStrides.begin(), call.maskStrides.end(), strides);
    key = static_cast<const int32_t *>(args.inputs.back());
    scale = call.mask->scale();
  }

  /// The number in the whole tensor of a weight. Those of neighbouring keys follow each other.
  __device__ __forceinline__ int64_t element(int64_t b, int64_t head, int64_t query,
                                             int64_t key) const {
    return origin + b * strides[0] + head * strides[1] + query * strides[2] + key;
  }
};

/// Which weights are kept: kept[i] is of the one that comes offsetOf(i) after that of number
/// `element`.
template <int N, typename Offset>
__device__ __forceinline__ void readMask(const DeviceDropout &dropout, int64_t element,
                                         const Offset &offsetOf, bool (&kept)[N]) {
  if (!dropout.key) {
#pragma unroll
    for (int i = 0; i < N; ++i)
      kept[i] = true;
    return;
  }
  MaskReader mask(dropout.words, dropout.key);
#pragma unroll
  for (int i = 0; i < N; ++i)
    kept[i] = mask.keeps(element + offsetOf(i));
}

/// Rounds the results of a tile, of D columns, to where they lie as `like` lies from `base` on.
template <typename T, int D, typename F = typename T::Element>
__device__ __forceinline__ void
storeRows(const typename T::W (&sums)[T::rows][T::template columns<D>], F *to,
          const HeadRows<F> &like, const F *base) {
  to += like.data - base;
#pragma unroll
  for (int i = 0; i < T::rows; ++i) {
    if (T::rowOf(i) >= like.rows)
      continue;
#pragma unroll
    for (int c = 0; c < T::template columns<D>; ++c)
      if (T::columnOf(c) < like.width)
        to[T::rowOf(i) * like.stride + T::columnOf(c)] = narrow<F>(sums[i][c]);
  }
}

/// A task of a block: elements [column, column + D) of the results of a tile of rows.
struct AttentionTask {
  int64_t b, head, tile;
  int column;
};

/// The tasks for results that lie as q does, or as k.
template <typename T, int D> struct AttentionTasks {
  int64_t tiles, batch, heads;
  int parts; // of a head

  static __host__ __device__ AttentionTasks ofQueries(const DeviceAttention &shape) {
    return {(shape.queries + T::size - 1) / T::size, shape.batch, shape.heads, partsOf(shape)};
  }
  static __host__ __device__ AttentionTasks ofKeys(const DeviceAttention &shape) {
    return {(shape.keys + T::size - 1) / T::size, shape.batch, shape.kvHeads, partsOf(shape)};
  }

  __host__ __device__ int64_t count() const { return tiles * batch * heads * parts; }
  /// Neighbours share what they read.
  __device__ __forceinline__ AttentionTask operator[](int64_t i) const {
    int64_t rest = i / parts;
    return {rest / heads % batch, rest % heads, rest / heads / batch,
            static_cast<int>(i % parts) * D};
  }

  static __host__ __device__ int partsOf(const DeviceAttention &shape) {
    return static_cast<int>((shape.headSize + D - 1) / D);
  }
};

/// A block for each task, in a grid-stride loop.
template <typename T, int D> LaunchShape attentionGrid(const AttentionTasks<T, D> &tasks) {
  return {static_cast<unsigned>(std::min<int64_t>(tasks.count(), 1 << 30)), 1, T::threads};
}

/// Calls function(tiles, columns, isBounded) with the std::type_identity of how products are
/// computed, the std::integral_constant of how many elements of a head a block has results for,
/// which lie in its registers, and the std::bool_constant of whether there is a soft cap or queries
/// have ranges of keys of their own. Where heads have more elements, several blocks share one, and
/// each computes the scores. Beside the results of a gradient, registers have place for narrow
/// tiles only, and what caps and ranges need takes the place of half of the results.
template <typename F, bool IsGradient, typename Function>
auto withTiles(const AttentionCall &call, const Function &function) {
  const AttentionShape &shape = call.shape;
  using Tiles = std::conditional_t<sizeof(F) == 2, MmaTiles<F, IsGradient ? 32 : 64>, FmaTiles<F>>;
  std::type_identity<Tiles> tiles;
  if (shape.softcap != 0 || call.hasRanges())
    return function(tiles, std::integral_constant<int, 64>(), std::true_type());
  if (shape.headSize <= 64)
    return function(tiles, std::integral_constant<int, 64>(), std::false_type());
  return function(tiles, std::integral_constant<int, 128>(), std::false_type());
}

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_DEVICEATTENTION_H
