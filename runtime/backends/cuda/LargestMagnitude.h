//===- LargestMagnitude.h - The largest magnitude of what a kernel writes -===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A kernel that writes a tensor finds its largest absolute value while it has the elements at hand.
// The blocks of the kernel raise one number on the device, which was 0 before: the bits of numbers
// that are not negative have their order, and those of a NaN come after all. So the result does not
// depend on the order of the blocks.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_LARGESTMAGNITUDE_H
#define DTC_RUNTIME_BACKENDS_CUDA_LARGESTMAGNITUDE_H

#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/Elements.h"

#include <initializer_list>

namespace dtc::runtime::cuda {

/// The largest of `most` and the absolute values of the elements; a NaN where one is.
template <typename T, int V>
__device__ __forceinline__ Wide<T> largestOf(Wide<T> most, const Vector<T, V> &elements) {
#pragma unroll
  for (int j = 0; j < V; ++j) {
    Wide<T> value = widen(elements.at[j]);
    most = MaxOf::combine(most, value < 0 ? -value : value);
  }
  return most;
}

/// Raises the number to the largest value of a block, whose threads all call it. Null: nothing to
/// do.
template <typename W> __device__ __forceinline__ void raiseLargest(float *number, W most) {
  if (!number)
    return;
  most = reduceBlock<MaxOf>(most);
  if (threadIdx.x == 0)
    atomicMax(reinterpret_cast<unsigned *>(number),
              __float_as_uint(static_cast<float>(most)) & 0x7FFFFFFFu);
}

/// Enqueues that the numbers that are there become 0.
inline MaybeError clearLargest(CudaQueue &queue, std::initializer_list<float *> numbers) {
  for (float *number : numbers)
    if (number)
      if (MaybeError error = queue.clear(reinterpret_cast<std::byte *>(number), sizeof(float)))
        return error;
  return std::nullopt;
}

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_LARGESTMAGNITUDE_H
