//===- AttentionGradByWarpgroups.cu - Gradient of attention on Hopper -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Dao, "FlashAttention-2" (2023), algorithm 2, in two kernels: one for the gradients of keys and
// values, which walks queries, and one for the gradient of queries, which walks keys. Each block
// owns what it adds to, so that no sum depends on timing. Scores, and their gradients, are computed
// twice for that; they stay in registers, from which they are the left operands of the second
// products. A block is one warpgroup with tiles of 64 rows; while it computes with one tile of what
// it walks, the next is copied.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/AttentionGradByWarpgroups.h"

#include "runtime/backends/cuda/CudaDevice.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/JoinedAttention.h"
#include "runtime/backends/cuda/Launch.h"
#include "runtime/backends/cuda/WarpgroupUnits.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace dtc::runtime::cuda {

namespace {

/// Three blocks fit into the shared memory of a multiprocessor, with 168 registers for each thread.
constexpr int kBlocksAtOnce = 3;
constexpr double kLog2E = 1.4426950408889634;

struct Shape {
  int64_t batch, queries, keys, heads, kvHeads;
  int64_t earlier; // query i sees the keys up to i + earlier
  int64_t queryTiles, keyTiles;
  int queryRow, keyRow, outRow; // elements between the rows of q, of k and v, and of out
  bool causal;
  float scale;

  Shape(const PlacedAttention &placed, const AttentionShape &shape)
      : batch(shape.batch), queries(shape.queries), keys(shape.keys), heads(shape.heads),
        kvHeads(shape.kvHeads), earlier(shape.earlier),
        queryTiles((shape.queries + kTileSize - 1) / kTileSize),
        keyTiles((shape.keys + kTileSize - 1) / kTileSize),
        queryRow(static_cast<int>(placed.rowHeads(heads)) * kTileSize),
        keyRow(static_cast<int>(placed.rowHeads(kvHeads)) * kTileSize),
        outRow(static_cast<int>(heads) * kTileSize), causal(shape.causal),
        scale(static_cast<float>(shape.scale)) {}

  template <typename Count> static __device__ __forceinline__ int atMostTile(Count left) {
    return left < kTileSize ? static_cast<int>(left) : kTileSize;
  }
  /// A tile of q.
  template <typename F>
  __device__ __forceinline__ HeadRows<F> queryTile(const F *q, int64_t b, int64_t head,
                                                   int64_t tile) const {
    int64_t first = tile * kTileSize;
    return {q + (b * queries + first) * queryRow + head * kTileSize, queryRow,
            atMostTile(queries - first), kTileSize};
  }
  /// A tile of the gradient of out.
  template <typename F>
  __device__ __forceinline__ HeadRows<F> outTile(const F *dout, int64_t b, int64_t head,
                                                 int64_t tile) const {
    int64_t first = tile * kTileSize;
    return {dout + (b * queries + first) * outRow + head * kTileSize, outRow,
            atMostTile(queries - first), kTileSize};
  }
  /// A tile of k or v.
  template <typename F>
  __device__ __forceinline__ HeadRows<F> keyTile(const F *k, int64_t b, int64_t kvHead,
                                                 int64_t tile) const {
    int64_t first = tile * kTileSize;
    return {k + (b * keys + first) * keyRow + kvHead * kTileSize, keyRow, atMostTile(keys - first),
            kTileSize};
  }
};

/// For each query its lse in powers of 2, and the sum of out * dout. Those of a head follow each
/// other, as many as its tiles have rows; beyond the queries, lse is infinite, so that weights are
/// 0.
struct RowStatistics {
  float *lse, *dots;

  static int64_t count(const Shape &shape) {
    return shape.batch * shape.heads * shape.queryTiles * kTileSize;
  }
  static size_t bytes(const Shape &shape) { return 2 * arrayBytes<float>(count(shape)); }
  RowStatistics(const Shape &shape, void *workspace)
      : lse(static_cast<float *>(workspace)),
        dots(lse + arrayBytes<float>(count(shape)) / sizeof(float)) {}
};

template <typename F> struct Operands {
  const F *q, *k, *v, *out;
  const float *lse;
  const F *dout;
  F *dq, *dk, *dv;
  RowStatistics rows;
};

/// 2 to the power of `x`.
[[maybe_unused]] __device__ __forceinline__ float powerOfTwo(float x) {
#ifdef __CUDACC__
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return std::exp2(x);
#endif
}

constexpr unsigned kRowLanes = 8; // that read a row of 64 elements

template <typename F>
__global__ void __launch_bounds__(256)
    statisticsKernel(const Shape __grid_constant__ shape, const Operands<F> __grid_constant__ at) {
  int64_t padded = shape.queryTiles * kTileSize;
  int64_t rows = shape.batch * padded * shape.heads;
  int64_t step = int64_t{gridDim.x} * (blockDim.x / kRowLanes);
  unsigned lane = threadIdx.x % kRowLanes;
  int64_t first = int64_t{blockIdx.x} * (blockDim.x / kRowLanes);
  // All lanes of a warp stay together, as they exchange values.
  for (; first < rows; first += step) {
    int64_t row = first + threadIdx.x / kRowLanes;
    int64_t head = row % shape.heads, query = row / shape.heads % padded;
    int64_t b = row / shape.heads / padded;
    bool exists = row < rows && query < shape.queries;
    float dot = 0;
    if (exists) {
      int64_t element = ((b * shape.queries + query) * shape.heads + head) * kTileSize + lane * 8;
      Vector<F, 8> out = loadVector<8>(at.out + element), dout = loadVector<8>(at.dout + element);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        dot += widen(out.at[i]) * widen(dout.at[i]);
    }
#pragma unroll
    for (unsigned distance = kRowLanes / 2; distance > 0; distance /= 2)
      dot += __shfl_xor_sync(0xFFFFFFFFu, dot, distance);
    if (row < rows && lane == 0) {
      int64_t ofHead = b * shape.heads + head;
      float lse =
          exists ? at.lse[ofHead * shape.queries + query] * static_cast<float>(kLog2E) : INFINITY;
      at.rows.lse[ofHead * padded + query] = lse;
      at.rows.dots[ofHead * padded + query] = dot;
    }
  }
}

#if DTC_HAS_WARPGROUPS

/// The gradient of a product from that of its weight. The scale comes last, to fewer elements, but
/// for f16, whose range the gradient may leave without it.
template <typename F> inline constexpr bool kScalesSlopes = std::is_same_v<F, __half>;
template <typename F>
__device__ __forceinline__ float slopeOf(float weight, float gradient, float scale) {
  float slope = weight * gradient;
  return kScalesSlopes<F> ? slope * scale : slope;
}
template <typename F> __device__ __forceinline__ float lateScale(float scale) {
  return kScalesSlopes<F> ? 1.0f : scale;
}

/// Stores the rows of a tile that exist, times `factor`.
template <typename F>
__device__ __forceinline__ void storeTile(const WarpgroupResult &result, float factor, F *to,
                                          const HeadRows<F> &like, const F *base) {
  to += like.data - base;
#pragma unroll
  for (int i = 0; i < WarpgroupResult::kRows; ++i) {
    int row = WarpgroupResult::rowOf(i);
    if (row >= like.rows)
      continue;
#pragma unroll
    for (int j = 0; j < WarpgroupResult::kPairs; ++j) {
      const float *pair = result.at + 4 * j + 2 * i;
      *reinterpret_cast<uint32_t *>(to + row * like.stride + WarpgroupResult::columnOf(j)) =
          packNarrow<F>(factor * pair[0], factor * pair[1]);
    }
  }
}

#endif

/// dk and dv of a tile of keys, from all queries that see some of them, head by head of the group.
/// Rows of scores are keys, columns are queries.
template <typename F>
__global__ void __launch_bounds__(kWarpgroupThreads, kBlocksAtOnce)
    keyGradKernel(const Shape __grid_constant__ shape, const Operands<F> __grid_constant__ at) {
#if DTC_HAS_WARPGROUPS
  __shared__ SwizzledTile k, v, q[2], dout[2];
  int64_t tile = blockIdx.x % shape.keyTiles, rest = blockIdx.x / shape.keyTiles;
  int64_t kvHead = rest % shape.kvHeads, b = rest / shape.kvHeads;
  int64_t begin = tile * kTileSize;
  HeadRows<F> kRows = shape.keyTile(at.k, b, kvHead, tile);
  int firstTile = 0, tiles = static_cast<int>(shape.queryTiles);
  if (shape.causal && begin > shape.earlier)
    firstTile = static_cast<int>((begin - shape.earlier) / kTileSize);
  int group = static_cast<int>(shape.heads / shape.kvHeads);
  int head = static_cast<int>(kvHead) * group, queryTile = firstTile;
  int nextHead = head, nextTile = firstTile, steps = group * (tiles - firstTile);
  auto copyNext = [&](int step) {
    if (step < steps) {
      beginCopy(shape.queryTile(at.q, b, nextHead, nextTile), q[step % 2]);
      beginCopy(shape.outTile(at.dout, b, nextHead, nextTile), dout[step % 2]);
      if (++nextTile == tiles) {
        nextTile = firstTile;
        ++nextHead;
      }
    }
  };
  beginCopy(kRows, k);
  beginCopy(shape.keyTile(at.v, b, kvHead, tile), v);
  copyNext(0);
  float factor = shape.scale * static_cast<float>(kLog2E);
  WarpgroupResult dk = {}, dv = {};
  for (int step = 0; step < steps; ++step) {
    waitForCopies();
    __syncthreads(); // all have copied these tiles, and read those that the next ones overwrite
    WarpgroupResult weights, slopes;
    beginProducts();
    beginProduct<F>(weights, k, q[step % 2]);
    endProducts();
    beginProduct<F>(slopes, v, dout[step % 2]);
    endProducts();
    copyNext(step + 1);
    const int64_t row = ((b * shape.heads + head) * tiles + queryTile) * kTileSize;
    Vector<float, 2> lse[WarpgroupResult::kPairs], dots[WarpgroupResult::kPairs];
#pragma unroll
    for (int j = 0; j < WarpgroupResult::kPairs; ++j)
      lse[j] = loadVector<2>(at.rows.lse + row + WarpgroupResult::columnOf(j));
    // In column c, the keys up to row c + seen are visible.
    int seen = shape.causal
                   ? Shape::atMostTile(queryTile * int64_t{kTileSize} + shape.earlier - begin)
                   : kTileSize;
    bool isCut = seen < kTileSize - 1;
    waitForProducts<1>();
    keepOrder(weights);
    auto weigh = [&](auto isHidden) {
#pragma unroll
      for (int j = 0; j < WarpgroupResult::kPairs; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
#pragma unroll
          for (int i = 0; i < WarpgroupResult::kRows; ++i) {
            float &weight = weights.at[4 * j + 2 * i + e];
            weight = powerOfTwo(weight * factor - lse[j].at[e]);
            if (isHidden(WarpgroupResult::rowOf(i), WarpgroupResult::columnOf(j) + e))
              weight = 0;
          }
    };
    if (isCut)
      weigh([&](int row, int column) { return row > column + seen; });
    else
      weigh([](int, int) { return false; });
#pragma unroll
    for (int j = 0; j < WarpgroupResult::kPairs; ++j)
      dots[j] = loadVector<2>(at.rows.dots + row + WarpgroupResult::columnOf(j));
    WarpgroupOperand left = packOperand<F>(weights);
    keepOrder(left);
    waitForProducts<0>();
    keepOrder(slopes);
    beginProducts();
    beginAdding<F>(dv, left, dout[step % 2]);
    endProducts();
#pragma unroll
    for (int j = 0; j < WarpgroupResult::kPairs; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e)
#pragma unroll
        for (int i = 0; i < WarpgroupResult::kRows; ++i) {
          int c = 4 * j + 2 * i + e;
          slopes.at[c] = slopeOf<F>(weights.at[c], slopes.at[c] - dots[j].at[e], shape.scale);
        }
    WarpgroupOperand slopesLeft = packOperand<F>(slopes);
    keepOrder(slopesLeft);
    beginProducts();
    beginAdding<F>(dk, slopesLeft, q[step % 2]);
    endProducts();
    if (++queryTile == tiles) {
      queryTile = firstTile;
      ++head;
    }
    waitForProducts<0>();
  }
  keepOrder(dk);
  keepOrder(dv);
  storeTile(dk, lateScale<F>(shape.scale), at.dk, kRows, at.k);
  storeTile(dv, 1.0f, at.dv, kRows, at.k);
#else
  __trap(); // see hasWarpgroups()
#endif
}

/// dq of a tile of queries, from all keys that they see. Rows of scores are queries.
template <typename F>
__global__ void __launch_bounds__(kWarpgroupThreads, kBlocksAtOnce)
    queryGradKernel(const Shape __grid_constant__ shape, const Operands<F> __grid_constant__ at) {
#if DTC_HAS_WARPGROUPS
  __shared__ SwizzledTile q, dout, k[2], v[2];
  // The last queries see most keys.
  int64_t tile = shape.queryTiles - 1 - blockIdx.x % shape.queryTiles;
  int64_t rest = blockIdx.x / shape.queryTiles;
  int64_t head = rest % shape.heads, b = rest / shape.heads;
  int64_t kvHead = head / (shape.heads / shape.kvHeads), begin = tile * kTileSize;
  HeadRows<F> qRows = shape.queryTile(at.q, b, head, tile);
  int64_t seen = begin + kTileSize + shape.earlier; // the end of the keys of the last query
  if (!shape.causal || seen > shape.keys)
    seen = shape.keys;
  int steps = static_cast<int>((seen + kTileSize - 1) / kTileSize);
  auto copyNext = [&](int step) {
    if (step < steps) {
      beginCopy(shape.keyTile(at.k, b, kvHead, step), k[step % 2]);
      beginCopy(shape.keyTile(at.v, b, kvHead, step), v[step % 2]);
    }
  };
  beginCopy(qRows, q);
  beginCopy(shape.outTile(at.dout, b, head, tile), dout);
  copyNext(0);
  float factor = shape.scale * static_cast<float>(kLog2E);
  int64_t row = ((b * shape.heads + head) * shape.queryTiles + tile) * kTileSize;
  float lse[WarpgroupResult::kRows], dots[WarpgroupResult::kRows];
#pragma unroll
  for (int i = 0; i < WarpgroupResult::kRows; ++i) {
    lse[i] = at.rows.lse[row + WarpgroupResult::rowOf(i)];
    dots[i] = at.rows.dots[row + WarpgroupResult::rowOf(i)];
  }
  WarpgroupResult dq = {};
  for (int step = 0; step < steps; ++step) {
    waitForCopies();
    __syncthreads(); // all have copied these tiles, and read those that the next ones overwrite
    WarpgroupResult weights, slopes;
    beginProducts();
    beginProduct<F>(weights, q, k[step % 2]);
    endProducts();
    beginProduct<F>(slopes, dout, v[step % 2]);
    endProducts();
    copyNext(step + 1);
    // In row r, the keys up to column r + seen of the tile are visible, and none from `end` on.
    int64_t key = int64_t{step} * kTileSize;
    int seen = shape.causal ? Shape::atMostTile(begin + shape.earlier - key) : kTileSize;
    int end = Shape::atMostTile(shape.keys - key);
    bool isCut = seen < kTileSize - 1 || end < kTileSize;
    waitForProducts<1>();
    keepOrder(weights);
    auto weigh = [&](auto isHidden) {
#pragma unroll
      for (int i = 0; i < WarpgroupResult::kRows; ++i)
#pragma unroll
        for (int j = 0; j < WarpgroupResult::kPairs; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float &weight = weights.at[4 * j + 2 * i + e];
            weight = powerOfTwo(weight * factor - lse[i]);
            if (isHidden(WarpgroupResult::rowOf(i), WarpgroupResult::columnOf(j) + e))
              weight = 0;
          }
    };
    if (isCut)
      weigh([&](int row, int column) { return column > row + seen || column >= end; });
    else
      weigh([](int, int) { return false; });
    keepOrder(weights);
    waitForProducts<0>();
    keepOrder(slopes);
#pragma unroll
    for (int i = 0; i < WarpgroupResult::kRows; ++i)
#pragma unroll
      for (int j = 0; j < WarpgroupResult::kPairs; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          int c = 4 * j + 2 * i + e;
          slopes.at[c] = slopeOf<F>(weights.at[c], slopes.at[c] - dots[i], shape.scale);
        }
    WarpgroupOperand left = packOperand<F>(slopes);
    keepOrder(left);
    beginProducts();
    beginAdding<F>(dq, left, k[step % 2]);
    endProducts();
    waitForProducts<0>();
  }
  keepOrder(dq);
  storeTile(dq, lateScale<F>(shape.scale), at.dq, qRows, at.q);
#else
  __trap(); // see hasWarpgroups()
#endif
}

template <typename F>
MaybeError enqueueGradient(CudaQueue &queue, const Shape &shape, const KernelArguments &args) {
  Operands<F> at = {input<F>(args, 0),     input<F>(args, 1),
                    input<F>(args, 2),     input<F>(args, 3),
                    input<float>(args, 4), input<F>(args, 5),
                    output<F>(args, 0),    output<F>(args, 1),
                    output<F>(args, 2),    RowStatistics(shape, args.workspace)};
  if (MaybeError error = launch(queue, gridStride(queue, RowStatistics::count(shape) * kRowLanes),
                                statisticsKernel<F>, shape, at))
    return error;
  LaunchShape keys = {static_cast<unsigned>(shape.batch * shape.kvHeads * shape.keyTiles), 1,
                      kWarpgroupThreads};
  if (MaybeError error = launch(queue, keys, keyGradKernel<F>, shape, at))
    return error;
  LaunchShape queries = {static_cast<unsigned>(shape.batch * shape.heads * shape.queryTiles), 1,
                         kWarpgroupThreads};
  return launch(queue, queries, queryGradKernel<F>, shape, at);
}

class AttentionGradByWarpgroups final : public CudaKernel {
public:
  AttentionGradByWarpgroups(const PlacedAttention &placed, std::unique_ptr<CudaKernel> other)
      : placed(placed), shape(placed, placed.call.shape), isHalf(placed.call.dtype == DType::F16),
        other(std::move(other)) {}

  size_t workspaceBytes() const override {
    return std::max(RowStatistics::bytes(shape), other->workspaceBytes());
  }

  MaybeError enqueue(CudaQueue &queue, const KernelArguments &given) const override {
    ApartArguments apart(placed, given);
    const KernelArguments &args = apart.get();
    auto isUsable = [](const void *address) { return isAligned(address, 16); };
    if (!hasWarpgroups(queue.owner().computeCapability()) ||
        !std::ranges::all_of(args.inputs, isUsable) || !std::ranges::all_of(args.outputs, isUsable))
      return other->enqueue(queue, given);
    return isHalf ? enqueueGradient<__half>(queue, shape, args)
                  : enqueueGradient<__nv_bfloat16>(queue, shape, args);
  }

private:
  PlacedAttention placed;
  Shape shape;
  bool isHalf;
  std::unique_ptr<CudaKernel> other;
};

} // namespace

bool hasWarpgroups(int computeCapability) {
#if defined(DTC_BUILDS_WARPGROUPS) || !defined(__CUDACC__) // the stand-in
  return computeCapability == 90;
#else
  return false;
#endif
}

bool canUseWarpgroups(const AttentionCall &call) {
  const AttentionShape &shape = call.shape;
  bool isPlain = call.sequence.isWhole() && !call.keyShift && !call.mask && !call.segments &&
                 shape.softcap == 0 && shape.window == 0;
  bool hasElements = shape.batch > 0 && shape.queries > 0 && shape.keys > 0 && shape.heads > 0;
  bool seesKeys = !shape.causal || shape.earlier >= 0;
  // The grid has one dimension.
  constexpr int64_t kMostBlocks = int64_t{1} << 30;
  bool fits = shape.batch * shape.heads * (std::max(shape.queries, shape.keys) / kTileSize + 1) <
              kMostBlocks;
  return byteWidth(call.dtype) == 2 && isPlain && hasElements && seesKeys && fits &&
         shape.headSize == kTileSize;
}

std::unique_ptr<CudaKernel> makeAttentionGradByWarpgroups(const PlacedAttention &placed,
                                                          std::unique_ptr<CudaKernel> other) {
  return std::make_unique<AttentionGradByWarpgroups>(placed, std::move(other));
}

} // namespace dtc::runtime::cuda
