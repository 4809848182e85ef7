//===- DotProducts.cu - Sums of products of two arrays --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The elements are cut into chunks, by their number alone. A block sums a chunk and leaves the sum
// in the workspace; a second launch adds the chunks of each product. The order of all additions
// depends on the number of elements alone: neither on their addresses, nor on the size of the grid,
// nor on the other products of the launch.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/DotProducts.h"

#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/MultiTensor.h"

namespace dtc::runtime::cuda {

namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kMaxChunks = 1024; // of a product

/// The elements of a chunk of a product of `count`: some thousands, and a multiple of all vectors.
int64_t chunkOf(int64_t count) {
  int64_t chunks = std::clamp<int64_t>(count / 4096, 1, kMaxChunks);
  return ((count + chunks - 1) / chunks + 63) / 64 * 64;
}

/// The products of a launch. Chunk c of all leaves its sum at index c of the workspace.
template <int Capacity> struct DotTable {
  struct Group {
    const void *lhs, *rhs;
    void *out;
    int64_t count, chunk, firstChunk;

    __host__ __device__ int64_t chunks() const { return (count + chunk - 1) / chunk; }
  };

  int64_t chunks;
  int groups;
  Group group[Capacity];
};

template <typename F>
__device__ __forceinline__ Wide<F> dotOfThread(const F *lhs, const F *rhs, int64_t begin,
                                               int64_t end) {
  constexpr int V = static_cast<int>(16 / sizeof(F));
  using Elements = Vector<F, V>;
  bool isVector = isAligned(lhs, 16) && isAligned(rhs, 16);
  Wide<F> sum = 0;
  for (int64_t i = begin + threadIdx.x * V; i < end; i += blockDim.x * V) {
    if (isVector && i + V <= end) {
      Elements a = *reinterpret_cast<const Elements *>(lhs + i);
      Elements b = lhs == rhs ? a : *reinterpret_cast<const Elements *>(rhs + i);
#pragma unroll
      for (int j = 0; j < V; ++j)
        sum += widen(a.at[j]) * widen(b.at[j]);
    } else {
      for (int64_t k = i; k < i + V && k < end; ++k)
        sum += widen(lhs[k]) * widen(rhs[k]);
    }
  }
  return sum;
}

template <typename F, int Capacity>
__global__ void __launch_bounds__(kThreads)
    dotChunksKernel(const DotTable<Capacity> __grid_constant__ table, Wide<F> *sums) {
  for (int64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    const auto &group = table.group[groupOfChunk(table, chunk)];
    int64_t begin = (chunk - group.firstChunk) * group.chunk;
    int64_t end = begin + group.chunk < group.count ? begin + group.chunk : group.count;
    Wide<F> sum = dotOfThread(static_cast<const F *>(group.lhs), static_cast<const F *>(group.rhs),
                              begin, end);
    sum = reduceBlock<SumOf>(sum);
    if (threadIdx.x == 0)
      sums[chunk] = sum;
  }
}

template <typename R, typename W, int Capacity>
__global__ void __launch_bounds__(kThreads)
    addDotChunksKernel(const DotTable<Capacity> __grid_constant__ table, const W *sums) {
  for (int at = blockIdx.x; at < table.groups; at += gridDim.x) {
    const auto &group = table.group[at];
    int64_t chunks = group.chunks();
    W sum = 0;
    for (int64_t chunk = threadIdx.x; chunk < chunks; chunk += blockDim.x)
      sum += sums[group.firstChunk + chunk];
    sum = reduceBlock<SumOf>(sum);
    if (threadIdx.x == 0)
      *static_cast<R *>(group.out) = narrow<R>(sum);
  }
}

template <typename F, typename R, int Capacity>
MaybeError launchDots(CudaQueue &queue, void *workspace, std::span<const TensorGroup> groups) {
  static_assert(sizeof(DotTable<Capacity>) <= 32764 - 256);
  DotTable<Capacity> table;
  table.chunks = 0;
  table.groups = 0;
  for (const TensorGroup &from : groups) {
    auto &to = table.group[table.groups++];
    to = {from.arrays[0], from.arrays[1],      from.arrays[2],
          from.count,     chunkOf(from.count), table.chunks};
    table.chunks += to.chunks();
  }
  auto *sums = static_cast<Wide<F> *>(workspace);
  if (MaybeError error = launch(queue, gridStride(queue, table.chunks * kThreads, kThreads),
                                dotChunksKernel<F, Capacity>, table, sums))
    return error;
  return launch(queue, LaunchShape{static_cast<unsigned>(table.groups), 1, kThreads},
                addDotChunksKernel<R, Wide<F>, Capacity>, table,
                static_cast<const Wide<F> *>(sums));
}

/// The calls of a launch share their workspace.
template <typename F, typename R>
MaybeError launchDotProducts(CudaQueue &queue, const void *shared,
                             std::span<const TensorGroup> groups) {
  void *workspace = *static_cast<void *const *>(shared);
  if (queue.isPreparing()) // more calls may share a launch than are prepared together
    if (MaybeError error = launchDots<F, R, HeldLaunches::kMaxGroups>(queue, workspace, groups))
      return error;
  if (groups.size() <= 8)
    return launchDots<F, R, 8>(queue, workspace, groups);
  return launchDots<F, R, HeldLaunches::kMaxGroups>(queue, workspace, groups);
}

template <typename F, typename R> std::unique_ptr<CudaKernel> makeDot(int64_t count) {
  // Enough for the chunks of a whole launch, as calls do not know with which ones they will share
  // it.
  size_t workspace = arrayBytes<Wide<F>>(int64_t{HeldLaunches::kMaxGroups} * kMaxChunks);
  return makeMultiTensorKernel(
      [=](const KernelArguments &args) {
        HeldCall held;
        held.launch = launchDotProducts<F, R>;
        held.setShared(args.workspace);
        held.tensors = {{args.inputs[0], args.inputs[1], args.outputs[0]}, count};
        size_t bytes = static_cast<size_t>(count) * sizeof(F);
        held.reads = {{args.inputs[0], bytes}};
        if (args.inputs[1] != args.inputs[0])
          held.reads.push_back({args.inputs[1], bytes});
        held.writes = {{args.outputs[0], sizeof(R)}};
        return held;
      },
      workspace);
}

} // namespace

std::unique_ptr<CudaKernel> makeDotProduct(DType in, DType out, int64_t count) {
  return withFloatType(in, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    if (out == in)
      return makeDot<F, F>(count);
    return makeDot<F, Wide<F>>(count);
  });
}

} // namespace dtc::runtime::cuda
