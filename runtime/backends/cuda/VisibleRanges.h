//===- VisibleRanges.h - The keys that queries see, on a GPU --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A query sees a contiguous range of keys. Where more than causal or not decides which, the ranges
// are computed once for a call, and the kernels of attention know nothing else of windows, segments
// and orders.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_VISIBLERANGES_H
#define DTC_RUNTIME_BACKENDS_CUDA_VISIBLERANGES_H

#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/DeviceAttention.h"
#include "runtime/backends/cuda/DeviceSequence.h"
#include "runtime/backends/cuda/Launch.h"

#include <cstddef>
#include <cstdint>

namespace dtc::runtime::cuda {

inline constexpr int kSegmentThreads = 128;

/// findSegments() for each batch element, which a block has. Each thread has neighbouring
/// positions; where a segment begins before them, or ends after them, it learns from the others.
static __global__ void __launch_bounds__(kSegmentThreads)
    segmentsKernel(const int32_t *numbers, SegmentRange *ranges, int64_t batch, int64_t keys) {
  // Among the positions of each thread, the last at which a segment begins and the first at which
  // one ends; -1 if none does.
  __shared__ int32_t begins[kSegmentThreads], ends[kSegmentThreads];
  int thread = static_cast<int>(threadIdx.x), last = static_cast<int>(keys) - 1;
  int each = last / kSegmentThreads + 1, from = thread * each;
  int to = from > last - each ? last + 1 : from + each;
  for (int64_t b = blockIdx.x; b < batch; b += gridDim.x) {
    const int32_t *number = numbers + b * keys;
    SegmentRange *range = ranges + b * keys;
    __syncthreads(); // the earlier contents were read
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

/// The rules that decide which keys a query sees, as a parameter of kernels.
struct DeviceVisibility {
  int64_t batch, queries, keys, earlier, window, sequence;
  bool causal;
  DeviceSequence order, keyOrder;
  const SegmentRange *segments = nullptr; ///< of the keys of all batch elements
  const int32_t *positions = nullptr;     ///< instead of `earlier`, of each batch element

  explicit DeviceVisibility(const AttentionShape &shape)
      : batch(shape.batch), queries(shape.queries), keys(shape.keys), earlier(shape.earlier),
        window(shape.window), sequence(shape.sequence), causal(shape.causal), order(shape.order),
        keyOrder(shape.keyOrder) {}

  /// As AttentionShape::keysBefore().
  __device__ int64_t keysBefore(int64_t key) const {
    if (sequence != 0)
      return keyOrder.countBefore(key, keys);
    return key < 0 ? 0 : key < keys ? key : keys;
  }
  /// From AttentionShape::firstVisible() to visible(); begins at the end where it is empty.
  __device__ SegmentRange of(int64_t b, int64_t query) const {
    int64_t own = order.at(query) + (positions ? positions[b] : earlier);
    int64_t all = sequence == 0 ? keys : sequence;
    int64_t first = window ? own + 1 - window : 0, end = causal ? own + 1 : all;
    if (segments) {
      SegmentRange segment = segments[b * all + (own < 0 ? 0 : own < all ? own : all - 1)];
      first = first > segment.begin ? first : segment.begin;
      end = end < segment.end ? end : segment.end;
    }
    auto last = static_cast<int32_t>(keysBefore(end)),
         begin = static_cast<int32_t>(keysBefore(first));
    return {begin < last ? begin : last, last};
  }
};

static __global__ void __launch_bounds__(128)
    visibleRangesKernel(const DeviceVisibility visible, SegmentRange *ranges) {
  int64_t count = visible.batch * visible.queries, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    ranges[i] = visible.of(i / visible.queries, i % visible.queries);
}

/// The bytes of the workspace for the ranges of the segments of all batch elements.
inline size_t segmentBytes(const AttentionCall &call) {
  return call.segments ? arrayBytes<SegmentRange>(call.shape.batch * call.shape.allKeys()) : 0;
}
/// The bytes of the workspace for all ranges.
inline size_t rangeBytes(const AttentionCall &call) {
  return call.hasRanges()
             ? segmentBytes(call) + arrayBytes<SegmentRange>(call.shape.batch * call.shape.queries)
             : 0;
}

/// Enqueues the computation of the ranges that a call needs, and points `device` to them.
/// `workspace` has rangeBytes(call) bytes. `positions`, if it is not null, has the number of
/// earlier keys of each batch element.
inline MaybeError enqueueRanges(CudaQueue &queue, const AttentionCall &call,
                                const KernelArguments &args, void *workspace,
                                DeviceAttention &device, const int32_t *positions = nullptr) {
  AttentionShape shape = call.shapeAt(args.position);
  if (!call.hasRanges() || shape.batch == 0 || shape.keys == 0 || shape.queries == 0)
    return std::nullopt;
  DeviceVisibility visible(shape);
  visible.positions = positions;
  if (call.segments) {
    auto *segments = static_cast<SegmentRange *>(workspace);
    LaunchShape blocks = {static_cast<unsigned>(std::min<int64_t>(shape.batch, 65535)), 1,
                          kSegmentThreads};
    if (MaybeError error =
            launch(queue, blocks, segmentsKernel, input<int32_t>(args, *call.segments), segments,
                   shape.batch, shape.allKeys()))
      return *error;
    visible.segments = segments;
  }
  auto *ranges =
      reinterpret_cast<SegmentRange *>(static_cast<std::byte *>(workspace) + segmentBytes(call));
  device.ranges = ranges;
  device.areIncreasing = shape.order.isIncreasing(shape.queries);
  return launch(queue, gridStride(queue, shape.batch * shape.queries, 128), visibleRangesKernel,
                visible, ranges);
}

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_VISIBLERANGES_H
