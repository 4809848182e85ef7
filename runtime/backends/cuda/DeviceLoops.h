//===- DeviceLoops.h - Strided loops over several arrays, on a GPU --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_DEVICELOOPS_H
#define DTC_RUNTIME_BACKENDS_CUDA_DEVICELOOPS_H

#include "calls/LoopNest.h"
#include "support/Error.h"

#include <cstdint>
#include <cuda_runtime.h>
#include <limits>
#include <string>

namespace dtc::runtime::cuda {

/// A LoopNest as a parameter of kernels. Outermost first; N arrays.
template <int N> struct DeviceLoops {
  static constexpr int maxDims = 8;
  static constexpr int arrays = N == 0 ? 1 : N;

  int64_t count = 0;
  int dims = 1;
  /// Whether all indices fit 32 bits, in which divisions are several times faster.
  bool fitsWord = true;
  int64_t sizes[maxDims] = {};
  int64_t strides[arrays][maxDims] = {};

  /// `count` elements that follow each other in every array.
  static DeviceLoops contiguous(int64_t count) {
    DeviceLoops loops;
    loops.setCount(count);
    loops.sizes[0] = count;
    for (auto &stride : loops.strides)
      stride[0] = 1;
    return loops;
  }

  /// The arrays of the nest from number `first` on. An error if too many dimensions are left after
  /// merging.
  template <size_t M> static Expected<DeviceLoops> from(const LoopNest<M> &nest, size_t first = 0) {
    static_assert(M >= N);
    if (nest.dims().size() > maxDims)
      return Error{"a loop nest of " + std::to_string(nest.dims().size()) +
                   " dimensions that do not merge is unsupported by the cuda backend, expected at "
                   "most " +
                   std::to_string(maxDims)};
    DeviceLoops loops;
    loops.setCount(nest.elements());
    loops.dims = static_cast<int>(nest.dims().size());
    for (size_t dim = 0; dim < nest.dims().size(); ++dim) {
      loops.sizes[dim] = nest.dims()[dim].size;
      for (size_t i = 0; i < N; ++i)
        loops.strides[i][dim] = nest.dims()[dim].strides[first + i];
    }
    return loops;
  }

  int64_t innerSize() const { return sizes[dims - 1]; }
  __host__ __device__ int64_t innerStride(int array) const { return strides[array][dims - 1]; }

  /// The places of the arrays' elements `index`.
  __device__ __forceinline__ void offsetsAt(int64_t index, int64_t (&offsets)[arrays]) const {
    if (fitsWord)
      split(static_cast<uint32_t>(index), offsets);
    else
      split(static_cast<uint64_t>(index), offsets);
  }

private:
  void setCount(int64_t elements) {
    count = elements;
    fitsWord = elements <= std::numeric_limits<uint32_t>::max();
  }

  template <typename Index>
  __device__ __forceinline__ void split(Index rest, int64_t (&offsets)[arrays]) const {
    for (int i = 0; i < arrays; ++i)
      offsets[i] = 0;
    for (int dim = dims - 1; dim > 0; --dim) {
      Index size = static_cast<Index>(sizes[dim]);
      Index quotient = rest / size, remainder = rest - quotient * size;
      for (int i = 0; i < arrays; ++i)
        offsets[i] += static_cast<int64_t>(remainder) * strides[i][dim];
      rest = quotient;
    }
    for (int i = 0; i < arrays; ++i)
      offsets[i] += static_cast<int64_t>(rest) * strides[i][0];
  }
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_DEVICELOOPS_H
