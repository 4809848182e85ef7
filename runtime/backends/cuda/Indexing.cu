//===- Indexing.cu - Kernels that look elements up ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/IndexingCalls.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/Launch.h"
#include "runtime/backends/cuda/Words.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace dtc::runtime::cuda {

namespace {

__device__ __forceinline__ bool inRange(int32_t id, int64_t size) { return id >= 0 && id < size; }

/// The tables of a lookup, and which rows of them indices name.
struct Tables {
  int64_t vocabulary, samples, perSample;

  explicit Tables(const EmbeddingCall &call)
      : vocabulary(call.vocabulary), samples(call.samples), perSample(call.perSample) {}
  /// The row of all tables that index `id` at place `i` names; -1 for none.
  __device__ __forceinline__ int64_t rowOf(int64_t i, int32_t id) const {
    if (!inRange(id, vocabulary))
      return -1;
    return samples == 1 ? id : i / perSample % samples * vocabulary + id;
  }
};

// embedding moves words of bytes of any type; pick and pick_grad elements: T is an unsigned
// integer, or a vector of them.

/// A block for each index. `width` is the words of a row.
template <typename T>
__global__ void __launch_bounds__(kMaxBlockThreads)
    embeddingKernel(const T *table, const int32_t *ids, T *out, Tables tables, int64_t width,
                    int64_t count) {
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    int64_t row = tables.rowOf(i, ids[i]);
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
      out[i * width + c] = row >= 0 ? table[row * width + c] : T{};
  }
}

// The gradient of a table: first each row gets a list of at most kListed places in `ids` that have
// its number, in any order; then rows with no more sum what is listed, in the order of the places;
// then those with more look for their places themselves, as there are few such rows. So frequent
// indices cost no more than others, and no sum depends on timing.

inline constexpr int kListed = 32; // one for each lane

/// Arrays in the workspace; all but `places` begin as zeros.
struct RowLists {
  int32_t *numLong;  // of rows with more than kListed places
  int32_t *hits;     // [rows]: places of the row
  int32_t *longRows; // in any order
  int32_t *places;   // [rows, kListed]

  static size_t clearedBytes(const EmbeddingCall &call) {
    return arrayBytes<int32_t>(1) + arrayBytes<int32_t>(call.numRows());
  }
  static int64_t mostLongRows(const EmbeddingCall &call) {
    return std::min(call.numRows(), call.count / (kListed + 1));
  }
  static size_t bytes(const EmbeddingCall &call) {
    return clearedBytes(call) + arrayBytes<int32_t>(mostLongRows(call)) +
           arrayBytes<int32_t>(call.numRows() * kListed);
  }
  RowLists(const EmbeddingCall &call, void *workspace) {
    auto *at = static_cast<std::byte *>(workspace);
    auto take = [&](int64_t count) {
      return reinterpret_cast<int32_t *>(std::exchange(at, at + arrayBytes<int32_t>(count)));
    };
    numLong = take(1);
    hits = take(call.numRows());
    longRows = take(mostLongRows(call));
    places = take(call.numRows() * kListed);
  }
};

__global__ void __launch_bounds__(256)
    listPlacesKernel(const int32_t *ids, RowLists lists, Tables tables, int64_t count) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    int64_t row = tables.rowOf(i, ids[i]);
    if (row < 0)
      continue;
    int32_t before = atomicAdd(&lists.hits[row], 1);
    if (before < kListed)
      lists.places[row * kListed + before] = static_cast<int32_t>(i);
    else if (before == kListed)
      lists.longRows[atomicAdd(lists.numLong, 1)] = static_cast<int32_t>(row);
  }
}

/// Adds V columns of the rows of dy at places number `first`, `first + step`, ... of `count`, in
/// that order; `inFlight` of them are read at a time.
template <int inFlight, int V, typename F>
__device__ __forceinline__ void addPlaces(Wide<F> (&sums)[V], const F *dy, int64_t width,
                                          const int32_t *places, int first, int step, int count) {
  for (int h = first; h < count; h += inFlight * step) {
    Vector<F, V> rows[inFlight] = {};
#pragma unroll
    for (int k = 0; k < inFlight; ++k)
      if (h + k * step < count)
        rows[k] = loadVector<V>(dy + places[h + k * step] * width);
#pragma unroll
    for (int k = 0; k < inFlight; ++k)
      if (h + k * step < count) {
#pragma unroll
        for (int j = 0; j < V; ++j)
          sums[j] += widen(rows[k].at[j]);
      }
  }
}

/// `added` is added to the sums, unless it is null; the result may lie in its place.
template <int V, typename W>
__device__ __forceinline__ void writeSums(const W (&sums)[V], const W *added, W *out, int64_t at) {
  Vector<W, V> result = added ? loadVector<V>(added + at) : Vector<W, V>();
#pragma unroll
  for (int j = 0; j < V; ++j)
    result.at[j] = added ? result.at[j] + sums[j] : sums[j];
  storeVector(out + at, result);
}

/// A warp for each row of at most kListed places.
inline constexpr unsigned kListedWarps = 8;
template <int V, typename F>
__global__ void __launch_bounds__(kListedWarps *kWarpThreads)
    sumListedKernel(const RowLists lists, const F *dy, const Wide<F> *added, Wide<F> *out,
                    int64_t rows, int64_t width) {
  __shared__ int32_t ofWarp[kListedWarps][kListed];
  unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
  int32_t *places = ofWarp[warp];
  int64_t step = int64_t{gridDim.x} * kListedWarps;
  for (int64_t row = int64_t{blockIdx.x} * kListedWarps + warp; row < rows; row += step) {
    int hits = lists.hits[row];
    if (hits > kListed)
      continue;
    bool isListed = static_cast<int>(lane) < hits;
    int32_t place = isListed ? lists.places[row * kListed + lane] : 0;
    int before = 0;
    for (int other = 0; other < hits; ++other)
      before += __shfl_sync(0xFFFFFFFFu, place, other) < place;
    __syncwarp(); // those of the row before have been read
    if (isListed)
      places[before] = place;
    __syncwarp();
    for (int64_t column = lane * V; column < width; column += kWarpThreads * V) {
      Wide<F> sums[V] = {};
      addPlaces<8>(sums, dy + column, width, places, 0, 1, hits);
      writeSums(sums, added, out, row * width + column);
    }
  }
}

inline constexpr unsigned kLongWarps = 16;
inline constexpr int kTileRounds = 8; // of a tile of ids; in each a lane reads one
inline constexpr int kTileIds = static_cast<int>(kLongWarps * kWarpThreads) * kTileRounds;

/// Lists in shared memory, in their order, the places of `row` in a tile of ids that begins at
/// `begin`; gives their number. All threads of the block call it.
__device__ __forceinline__ int listTile(const int32_t *ids, const Tables &tables, int64_t begin,
                                        int64_t count, int32_t row, int32_t (&places)[kTileIds]) {
  __shared__ int ofWarp[kLongWarps];
  unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
  int64_t first = begin + warp * kWarpThreads * kTileRounds + lane;
  int32_t found[kTileRounds];
#pragma unroll
  for (int round = 0; round < kTileRounds; ++round) {
    int64_t i = first + round * static_cast<int>(kWarpThreads);
    found[round] = i < count ? static_cast<int32_t>(tables.rowOf(i, ids[i])) : -1;
  }
  unsigned masks[kTileRounds];
  int own = 0;
#pragma unroll
  for (int round = 0; round < kTileRounds; ++round) {
    masks[round] = __ballot_sync(0xFFFFFFFFu, found[round] == row);
    own += __popc(masks[round]);
  }
  __syncthreads(); // the tile before has been read
  if (lane == 0)
    ofWarp[warp] = own;
  __syncthreads();
  int at = 0, total = 0;
  for (unsigned other = 0; other < kLongWarps; ++other) {
    at += other < warp ? ofWarp[other] : 0;
    total += ofWarp[other];
  }
#pragma unroll
  for (int round = 0; round < kTileRounds; ++round) {
    if (masks[round] >> lane & 1)
      places[at + __popc(masks[round] & ((1u << lane) - 1))] =
          static_cast<int32_t>(first + round * static_cast<int>(kWarpThreads));
    at += __popc(masks[round]);
  }
  __syncthreads();
  return total;
}

/// A block for each row of more than kListed places and 32 V columns. Each warp has every
/// kLongWarps-th place of a tile; their sums are added in the order of the warps.
template <int V, typename F>
__global__ void __launch_bounds__(kLongWarps *kWarpThreads, 2)
    sumLongKernel(const int32_t *ids, const RowLists lists, const F *dy, const Wide<F> *added,
                  Wide<F> *out, Tables tables, int64_t width, int64_t count) {
  using W = Wide<F>;
  constexpr int inFlight = sizeof(W) == 8 ? 2 : 4; // with more, registers spill
  __shared__ int32_t places[kTileIds];
  __shared__ W ofWarp[kLongWarps][V][kWarpThreads];
  unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
  int64_t column = (int64_t{blockIdx.y} * kWarpThreads + lane) * V;
  for (int64_t n = blockIdx.x; n < *lists.numLong; n += gridDim.x) {
    int32_t row = lists.longRows[n];
    W sums[V] = {};
    for (int64_t begin = 0; begin < count; begin += kTileIds) {
      int hits = listTile(ids, tables, begin, count, row, places);
      if (column < width)
        addPlaces<inFlight>(sums, dy + column, width, places, static_cast<int>(warp),
                            int{kLongWarps}, hits);
    }
#pragma unroll
    for (int j = 0; j < V; ++j)
      ofWarp[warp][j][lane] = sums[j];
    __syncthreads();
    if (warp > 0 || column >= width)
      continue;  // listTile() waits for this warp before there are other sums
#pragma unroll 1 // for registers
    for (unsigned other = 1; other < kLongWarps; ++other)
#pragma unroll
      for (int j = 0; j < V; ++j)
        sums[j] += ofWarp[other][j][lane];
    writeSums(sums, added, out, row * width + column);
  }
}

template <typename T>
__global__ void __launch_bounds__(256)
    pickKernel(const T *x, const int32_t *ids, T *out, int64_t rows, int64_t width) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows; i += step)
    out[i] = inRange(ids[i], width) ? x[i * width + ids[i]] : T(0);
}

template <typename T>
__global__ void __launch_bounds__(kMaxBlockThreads)
    pickGradKernel(const int32_t *ids, const T *dy, T *out, int64_t rows, int64_t width) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int64_t id = ids[row];
    T value = dy[row];
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
      out[row * width + c] = c == id ? value : T(0);
  }
}

/// The order of top_k: a NaN is larger than all numbers.
template <typename W> __device__ __forceinline__ bool isLarger(W a, W b) {
  return a > b || (a != a && b == b);
}

/// A block for each row. An element is taken if fewer than k of its row go before it.
template <typename F>
__global__ void __launch_bounds__(kMaxBlockThreads)
    topKKernel(const F *x, uint8_t *out, int64_t rows, int64_t width, int64_t k) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const F *from = x + row * width;
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
      Wide<F> own = widen(from[c]);
      int64_t before = 0;
      for (int64_t other = 0; other < width; ++other) {
        Wide<F> value = widen(from[other]);
        before += isLarger(value, own) || (other < c && !isLarger(own, value));
      }
      out[row * width + c] = before < k;
    }
  }
}

/// A warp for each row.
inline constexpr unsigned kNonzeroWarps = 8;
__global__ void __launch_bounds__(kNonzeroWarps *kWarpThreads)
    nonzeroKernel(const uint8_t *x, int32_t *out, int64_t rows, int64_t width, int64_t count) {
  unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
  int64_t step = int64_t{gridDim.x} * kNonzeroWarps;
  for (int64_t row = int64_t{blockIdx.x} * kNonzeroWarps + warp; row < rows; row += step) {
    int32_t *places = out + row * count;
    int64_t found = 0;
    for (int64_t begin = 0; begin < width; begin += kWarpThreads) {
      int64_t c = begin + lane;
      bool isTrue = c < width && x[row * width + c] != 0;
      unsigned mask = __ballot_sync(0xFFFFFFFFu, isTrue);
      int64_t at = found + __popc(mask & ((1u << lane) - 1));
      if (isTrue && at < count)
        places[at] = static_cast<int32_t>(c);
      found += __popc(mask);
    }
    for (int64_t at = found + lane; at < count; at += kWarpThreads)
      places[at] = -1;
  }
}

PrepareResult prepareEmbedding(const EmbeddingCall &call) {
  return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
    const void *table = args.inputs[0];
    void *out = args.outputs[0];
    int64_t bytes = call.width * static_cast<int64_t>(byteWidth(call.dtype));
    return withWords(bytes, table, out, [&](auto identity) {
      using T = typename decltype(identity)::type;
      int64_t width = bytes / static_cast<int64_t>(sizeof(T));
      return launch(queue, blockPerRow(width ? call.count : 0, width), embeddingKernel<T>,
                    static_cast<const T *>(table), input<int32_t>(args, 1), static_cast<T *>(out),
                    Tables(call), width, call.count);
    });
  });
}

/// The operands of a call; no `added`: null.
template <typename F> struct EmbeddingGradOperands {
  const int32_t *ids;
  const F *dy;
  const Wide<F> *added;
  Wide<F> *out;
};

template <int V, typename F>
MaybeError enqueueRowSums(CudaQueue &queue, const EmbeddingCall &call, const RowLists &lists,
                          const EmbeddingGradOperands<F> &at) {
  LaunchShape warps = gridStride(queue, call.numRows() * kWarpThreads, kListedWarps * kWarpThreads);
  if (MaybeError error = launch(queue, warps, sumListedKernel<V, F>, lists, at.dy, at.added, at.out,
                                call.numRows(), call.width))
    return error;
  int64_t columns = kWarpThreads * V;
  LaunchShape blocks;
  blocks.blocksX = static_cast<unsigned>(std::min<int64_t>(RowLists::mostLongRows(call), 1024));
  blocks.blocksY = static_cast<unsigned>((call.width + columns - 1) / columns);
  blocks.threads = kLongWarps * kWarpThreads;
  return launch(queue, blocks, sumLongKernel<V, F>, at.ids, lists, at.dy, at.added, at.out,
                Tables(call), call.width, call.count);
}

template <typename F>
MaybeError enqueueEmbeddingGrad(CudaQueue &queue, const EmbeddingCall &call, void *workspace,
                                const EmbeddingGradOperands<F> &at) {
  if (call.numRows() == 0 || call.width == 0)
    return std::nullopt;
  RowLists lists(call, workspace);
  if (MaybeError error =
          queue.clear(static_cast<std::byte *>(workspace), RowLists::clearedBytes(call)))
    return error;
  if (MaybeError error = launch(queue, gridStride(queue, call.count), listPlacesKernel, at.ids,
                                lists, Tables(call), call.count))
    return error;
  constexpr int V = 16 / sizeof(Wide<F>);
  bool inVectors = call.width % V == 0 && isAligned(at.dy, V * sizeof(F)) &&
                   isAligned(at.added, 16) && isAligned(at.out, 16);
  return inVectors ? enqueueRowSums<V>(queue, call, lists, at)
                   : enqueueRowSums<1>(queue, call, lists, at);
}

/// Operands are given as which of the inputs, or of the outputs, they are; `added` may be none.
template <typename F>
std::unique_ptr<CudaKernel> makeEmbeddingGrad(const EmbeddingCall &call, size_t ids, size_t dy,
                                              std::optional<size_t> added, size_t out) {
  return makeKernel(
      [=](CudaQueue &queue, const KernelArguments &args) {
        return enqueueEmbeddingGrad<F>(queue, call, args.workspace,
                                       {input<int32_t>(args, ids), input<F>(args, dy),
                                        added ? input<Wide<F>>(args, *added) : nullptr,
                                        output<Wide<F>>(args, out)});
      },
      RowLists::bytes(call));
}

PrepareResult prepareEmbeddingGrad(const EmbeddingCall &call) {
  return withFloatType(call.dtype, [&](auto identity) {
    return makeEmbeddingGrad<typename decltype(identity)::type>(call, 0, 1, std::nullopt, 0);
  });
}

PrepareResult preparePick(const PickCall &call) {
  return withElementBits(call.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      return launch(queue, gridStride(queue, call.rows), pickKernel<T>, input<T>(args, 0),
                    input<int32_t>(args, 1), output<T>(args, 0), call.rows, call.width);
    });
  });
}

PrepareResult preparePickGrad(const PickCall &call) {
  return withElementBits(call.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      return launch(queue, blockPerRow(call.rows, call.width), pickGradKernel<T>,
                    input<int32_t>(args, 0), input<T>(args, 1), output<T>(args, 0), call.rows,
                    call.width);
    });
  });
}

PrepareResult prepareTopK(const TopKCall &call) {
  return withFloatType(call.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      return launch(queue, blockPerRow(call.rows, call.width), topKKernel<F>, input<F>(args, 0),
                    output<uint8_t>(args, 0), call.rows, call.width, call.k);
    });
  });
}

PrepareResult prepareNonzero(const NonzeroCall &call) {
  return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
    return launch(queue, gridStride(queue, call.rows * kWarpThreads, kNonzeroWarps * kWarpThreads),
                  nonzeroKernel, input<uint8_t>(args, 0), output<int32_t>(args, 0), call.rows,
                  call.width, call.count);
  });
}

} // namespace

PrepareResult prepareAddedEmbeddingGrad(const FusedCalls &calls, const AddedGradient &match) {
  const FusedCalls::Call &grad = *match.grad;
  Expected<EmbeddingCall> checked = checkEmbeddingGrad(grad.signature);
  if (!checked)
    return checked.error();
  std::vector<size_t> index = calls.operandIndices();
  return withFloatType(checked->dtype, [&](auto identity) {
    return makeEmbeddingGrad<typename decltype(identity)::type>(
        *checked, index[grad.inputs[0]], index[grad.inputs[1]], index[match.added],
        index[match.sum]);
  });
}

std::span<const KernelEntry> indexingKernels() {
  static constexpr KernelEntry entries[] = {
      {"embedding", prepareBy<checkEmbedding, prepareEmbedding>},
      {"embedding_grad", prepareBy<checkEmbeddingGrad, prepareEmbeddingGrad>},
      {"nonzero", prepareBy<checkNonzero, prepareNonzero>},
      {"pick", prepareBy<checkPick, preparePick>},
      {"pick_grad", prepareBy<checkPickGrad, preparePickGrad>},
      {"top_k", prepareBy<checkTopK, prepareTopK>},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
