//===- BlockReduce.h - Sums and extremes within a block of threads --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_BLOCKREDUCE_H
#define DTC_RUNTIME_BACKENDS_CUDA_BLOCKREDUCE_H

#include "runtime/backends/cuda/Launch.h"

#include <limits>

namespace dtc::runtime::cuda {

struct SumOf {
  template <typename T> static __device__ __forceinline__ T identity() { return T(0); }
  template <typename T> static __device__ __forceinline__ T combine(T a, T b) { return a + b; }
};
// A NaN in either operand is the result.
struct MaxOf {
  template <typename T> static __device__ __forceinline__ T identity() { return -T(INFINITY); }
  template <typename T> static __device__ __forceinline__ T combine(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct MinOf {
  template <typename T> static __device__ __forceinline__ T identity() { return T(INFINITY); }
  template <typename T> static __device__ __forceinline__ T combine(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

template <typename Op, typename T> __device__ __forceinline__ T reduceWarp(T value) {
#pragma unroll
  for (int distance = kWarpThreads / 2; distance > 0; distance /= 2)
    value = Op::combine(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
  return value;
}

/// The values of all threads combined, each of the N by itself, in an order that depends on the
/// number of threads alone; all threads of the block call it and get the results.
template <typename Op, typename T, int N> __device__ void reduceBlock(T (&values)[N]) {
  __shared__ T ofWarp[N][kWarpThreads]; // a block has at most 32 warps
  unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
#pragma unroll
  for (int i = 0; i < N; ++i)
    values[i] = reduceWarp<Op>(values[i]);
  if (blockDim.x == kWarpThreads)
    return;
  __syncthreads(); // the results of a call before have been read
#pragma unroll
  for (int i = 0; i < N; ++i)
    if (lane == 0)
      ofWarp[i][warp] = values[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; ++i)
    values[i] = reduceWarp<Op>(lane < blockDim.x / kWarpThreads ? ofWarp[i][lane]
                                                                : Op::template identity<T>());
}
template <typename Op, typename T> __device__ T reduceBlock(T value) {
  T values[] = {value};
  reduceBlock<Op>(values);
  return values[0];
}

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_BLOCKREDUCE_H
