//===- PackedVector.h - Elements of a row in few registers ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_PACKEDVECTOR_H
#define DTC_RUNTIME_BACKENDS_CUDA_PACKEDVECTOR_H

#include "runtime/backends/cuda/Columns.h"

namespace dtc::runtime::cuda {

/// V neighbouring elements as words, which are taken apart where an element is needed: elements of
/// 16 bits that are taken apart when they are loaded have a register each, and are waited for
/// there.
template <typename F, int V> struct PackedVector {
  static_assert(V * sizeof(F) % 16 == 0);
  static constexpr int kWords = V * sizeof(F) / 4;
  uint32_t words[kWords];

  /// Those from number `first` of a row on; zeros where it has none. `inVectors`: it has all or
  /// none of them, at an aligned address.
  template <bool inVectors>
  static __device__ __forceinline__ PackedVector load(const F *row, int64_t first, int64_t width) {
    PackedVector value;
    if constexpr (inVectors) {
#pragma unroll
      for (uint32_t &word : value.words)
        word = 0;
      if (first < width)
        value.loadAll(row + first);
    } else {
      Vector<F, V> elements = loadColumns<V, false>(row, first, width);
      memcpy(value.words, &elements, sizeof(words));
    }
    return value;
  }

  __device__ __forceinline__ Vector<F, V> unpacked() const {
    Vector<F, V> elements;
    memcpy(&elements, words, sizeof(words));
    return elements;
  }

  __device__ __forceinline__ Wide<F> widened(int j) const {
    if constexpr (std::is_same_v<F, __nv_bfloat16>) {
      uint32_t word = words[j / 2];
      return __uint_as_float(j % 2 ? word & 0xFFFF0000u : word << 16);
    } else {
      return widen(unpacked().at[j]);
    }
  }

  /// Each rounded once.
  static __device__ __forceinline__ PackedVector narrowed(const Wide<F> (&values)[V]) {
    PackedVector value;
    Vector<F, V> elements;
#pragma unroll
    for (int j = 0; j < V; ++j)
      elements.at[j] = narrow<F>(values[j]);
    memcpy(value.words, &elements, sizeof(words));
#ifdef __CUDACC__
    if constexpr (sizeof(F) == 2) // two at a time
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        auto pair = pairOf(values[2 * i], values[2 * i + 1]);
        memcpy(&value.words[i], &pair, 4);
      }
#endif
    return value;
  }

  /// Writes them where the row has such columns.
  template <bool inVectors>
  __device__ __forceinline__ void store(F *row, int64_t first, int64_t width) const {
    Vector<F, V> elements = unpacked();
    if constexpr (inVectors) {
      if (first < width)
        storeVector(row + first, elements);
    } else {
#pragma unroll
      for (int j = 0; j < V; ++j)
        if (first + j < width)
          row[first + j] = elements.at[j];
    }
  }

  /// Makes the compiler compute values of the elements again at their next use, rather than keep
  /// them in registers.
  __device__ __forceinline__ void forgetResults() {
#ifdef __CUDACC__
#pragma unroll
    for (uint32_t &word : words)
      asm volatile("" : "+r"(word));
#endif
  }

private:
#ifdef __CUDACC__
  static __device__ __forceinline__ auto pairOf(float a, float b) {
    if constexpr (std::is_same_v<F, __nv_bfloat16>)
      return __floats2bfloat162_rn(a, b);
    else
      return __floats2half2_rn(a, b);
  }
#endif
  __device__ __forceinline__ void loadAll(const F *from) {
#ifdef __CUDACC__
    auto loaded = loadVector<kWords>(reinterpret_cast<const uint32_t *>(from));
    memcpy(words, &loaded, sizeof(words));
#else
    memcpy(words, from, sizeof(words));
#endif
  }
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_PACKEDVECTOR_H
