//===- Columns.h - Neighbouring elements of a row -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_COLUMNS_H
#define DTC_RUNTIME_BACKENDS_CUDA_COLUMNS_H

#include "runtime/backends/cuda/Elements.h"

namespace dtc::runtime::cuda {

/// V neighbouring elements of a row, from number `first` on; zeros where it has none.
template <int V, bool inVectors, typename F>
__device__ __forceinline__ Vector<F, V> loadColumns(const F *row, int64_t first, int64_t width) {
  Vector<F, V> value;
#pragma unroll
  for (int j = 0; j < V; ++j)
    value.at[j] = narrow<F>(Wide<F>(0));
  if constexpr (inVectors) {
    if (first < width)
      value = loadVector<V>(row + first);
  } else {
#pragma unroll
    for (int j = 0; j < V; ++j)
      if (first + j < width)
        value.at[j] = row[first + j];
  }
  return value;
}

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_COLUMNS_H
