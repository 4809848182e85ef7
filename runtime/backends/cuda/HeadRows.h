//===- HeadRows.h - Rows of one head of attention -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_HEADROWS_H
#define DTC_RUNTIME_BACKENDS_CUDA_HEADROWS_H

#include <cstdint>

namespace dtc::runtime::cuda {

/// Rows of one head in memory: `rows` of them, `width` elements each, `stride` elements apart. The
/// tiles that they are read
/// into have zeros beyond.
template <typename F> struct HeadRows {
  const F *data;
  int stride, rows, width;

  /// Elements [first, first + count) of the rows, or fewer where they end.
  __device__ __forceinline__ HeadRows columns(int first, int count) const {
    int left = width - first;
    return {data + first, stride, rows, left < count ? left : count};
  }
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_HEADROWS_H
