//===- Segments.h - The segments of attention on a GPU --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_SEGMENTS_H
#define DTC_RUNTIME_BACKENDS_CUDA_SEGMENTS_H

#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/DeviceAttention.h"
#include "runtime/backends/cuda/Launch.h"

#include <cstddef>
#include <cstdint>

namespace dtc::runtime::cuda {

inline constexpr int kSegmentThreads = 128;

/// findSegments() for each batch element, which a block has. Each thread has neighbouring
/// positions; where a segment begins before them, or ends after them, it learns from the others.
static __global__ void __launch_bounds__(kSegmentThreads)
    segmentsKernel(const int32_t *numbers, SegmentRange *ranges, int64_t batch, int64_t keys) {
  // Of the positions of each thread: the last at which a segment begins, the first at which one
  // ends; -1 if none does.
  __shared__ int32_t begins[kSegmentThreads], ends[kSegmentThreads];
  int thread = static_cast<int>(threadIdx.x), last = static_cast<int>(keys) - 1;
  int each = last / kSegmentThreads + 1, from = thread * each;
  int to = from > last - each ? last + 1 : from + each;
  for (int64_t b = blockIdx.x; b < batch; b += gridDim.x) {
    const int32_t *number = numbers + b * keys;
    SegmentRange *range = ranges + b * keys;
    __syncthreads(); // what lay here has been read
    begins[thread] = ends[thread] = -1;
#pragma unroll 1
    for (int i = from; i < to; ++i) {
      if (i == 0 || number[i - 1] != number[i])
        begins[thread] = i;
      if (ends[thread] < 0 && (i == last || number[i + 1] != number[i]))
        ends[thread] = i + 1;
    }
    __syncthreads();
    int before = thread - 1, after = thread + 1;
    while (before > 0 && begins[before] < 0)
      --before;
    while (after < kSegmentThreads - 1 && ends[after] < 0)
      ++after;
    int32_t begin = before < 0 ? 0 : begins[before];
#pragma unroll 1
    for (int i = from; i < to; ++i) {
      if (i == 0 || number[i - 1] != number[i])
        begin = i;
      range[i].begin = begin;
    }
    int32_t end = after == kSegmentThreads ? 0 : ends[after];
#pragma unroll 1
    for (int i = to - 1; i >= from; --i) {
      if (i == last || number[i + 1] != number[i])
        end = i + 1;
      range[i].end = end;
    }
  }
}

/// Of the workspace, for the ranges of all batch elements.
inline size_t segmentBytes(const AttentionCall &call) {
  return call.segments ? arrayBytes<SegmentRange>(call.shape.batch * call.shape.keys) : 0;
}

/// Finds the segments of a call that has some, in so many bytes at `ranges`, and lets `device` keep
/// to them.
inline MaybeError enqueueSegments(CudaQueue &queue, const AttentionCall &call,
                                  const KernelArguments &args, void *ranges,
                                  DeviceAttention &device) {
  const AttentionShape &shape = call.shape;
  if (!call.segments || shape.batch == 0 || shape.keys == 0)
    return std::nullopt;
  auto *found = static_cast<SegmentRange *>(ranges);
  device.segments = found;
  LaunchShape blocks = {static_cast<unsigned>(std::min<int64_t>(shape.batch, 65535)), 1,
                        kSegmentThreads};
  return launch(queue, blocks, segmentsKernel, input<int32_t>(args, *call.segments), found,
                shape.batch, shape.keys);
}

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_SEGMENTS_H
