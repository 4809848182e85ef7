//===- DeviceSequence.h - Places in a sequence, on a GPU ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_DEVICESEQUENCE_H
#define DTC_RUNTIME_BACKENDS_CUDA_DEVICESEQUENCE_H

#include "calls/AttentionCalls.h"
#include "runtime/backends/cuda/CudaKernel.h"

#include <cstdint>

namespace dtc::runtime::cuda {

/// A SequenceOrder as a parameter of kernels.
struct DeviceSequence {
  int64_t offset, chunk, parts, held;

  explicit DeviceSequence(const SequenceOrder &order)
      : offset(order.offset), chunk(order.chunk), parts(order.parts), held(order.held) {}

  /// The place of element `i`.
  __device__ __forceinline__ int64_t at(int64_t i) const {
    int64_t place = offset + i;
    if (chunk == 0)
      return place;
    int64_t part = place / (2 * chunk), rest = place % (2 * chunk);
    return rest < chunk ? part * chunk + rest : (2 * parts - 2 - part) * chunk + rest;
  }
  /// The end of the elements from `i` on, `end` at most, whose places follow each other.
  __device__ __forceinline__ int64_t endOfRun(int64_t i, int64_t end) const {
    if (chunk == 0)
      return end;
    int64_t last = ((offset + i) / chunk + 1) * chunk - offset;
    return last < end ? last : end;
  }
  /// How many of `count` elements that exist and are increasing lie before `place`.
  __device__ __forceinline__ int64_t countBefore(int64_t place, int64_t count) const {
    count = count < held ? count : held;
    int64_t run = endOfRun(0, count), before = place - at(0);
    if (before > run && run < count) {
      int64_t more = place - at(run);
      before = run + (more > 0 ? more : 0);
    }
    return before < 0 ? 0 : before < count ? before : count;
  }
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_DEVICESEQUENCE_H
