//===- Elements.h - Element types on a GPU --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_ELEMENTS_H
#define DTC_RUNTIME_BACKENDS_CUDA_ELEMENTS_H

#include "support/Tensor.h"

#include <cstdint>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <type_traits>

namespace dtc::runtime::cuda {

/// An element of bool, whose byte may hold any value in a buffer that nobody has written.
struct BoolByte {
  uint8_t byte;
};

/// The type in which values of type T are computed with; that of wideType().
template <typename T> struct WideOf { using Type = T; };
template <> struct WideOf<__nv_bfloat16> { using Type = float; };
template <> struct WideOf<__half> { using Type = float; };
template <typename T> using Wide = typename WideOf<T>::Type;

template <typename T> __device__ __forceinline__ T widen(T value) { return value; }
__device__ __forceinline__ float widen(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ __forceinline__ float widen(__half value) { return __half2float(value); }

/// Rounds once, to the nearest, ties to even.
template <typename T> __device__ __forceinline__ T narrow(Wide<T> value) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16_rn(value);
  else if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(value);
  else
    return value;
}

/// N elements that are read and written together.
template <typename T, int N> struct alignas(sizeof(T) * N) Vector { T at[N]; };

/// Whether vectors of `bytes` bytes may be read and written at the address.
__host__ __device__ inline bool isAligned(const void *pointer, size_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

#ifdef __CUDACC__

/// Reads a vector at an aligned address of global memory: as instructions of as many bytes as can
/// be, since nvcc reads, and writes, the elements one by one where it can see them one by one.
template <int N, typename T> __device__ __forceinline__ Vector<T, N> loadVector(const T *from) {
  Vector<T, N> value;
  constexpr size_t bytes = sizeof(value);
  size_t at = __cvta_generic_to_global(from);
  if constexpr (bytes % 16 == 0) {
    uint32_t words[bytes / 4];
#pragma unroll
    for (size_t i = 0; i < bytes / 4; i += 4)
      asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(words[i]), "=r"(words[i + 1]), "=r"(words[i + 2]), "=r"(words[i + 3])
                   : "l"(at + 4 * i)
                   : "memory");
    memcpy(&value, words, bytes);
  } else if constexpr (bytes == 8) {
    uint32_t words[2];
    asm volatile("ld.global.v2.b32 {%0, %1}, [%2];"
                 : "=r"(words[0]), "=r"(words[1])
                 : "l"(at)
                 : "memory");
    memcpy(&value, words, bytes);
  } else if constexpr (bytes == 4) {
    uint32_t word;
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(word) : "l"(at) : "memory");
    memcpy(&value, &word, bytes);
  } else {
    value = *reinterpret_cast<const Vector<T, N> *>(from);
  }
  return value;
}

/// Writes a vector in the same way.
template <typename T, int N>
__device__ __forceinline__ void storeVector(T *to, const Vector<T, N> &value) {
  constexpr size_t bytes = sizeof(value);
  size_t at = __cvta_generic_to_global(to);
  if constexpr (bytes % 16 == 0) {
    uint32_t words[bytes / 4];
    memcpy(words, &value, bytes);
#pragma unroll
    for (size_t i = 0; i < bytes / 4; i += 4)
      asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
                   :
                   : "l"(at + 4 * i), "r"(words[i]), "r"(words[i + 1]), "r"(words[i + 2]),
                     "r"(words[i + 3])
                   : "memory");
  } else if constexpr (bytes == 8) {
    uint32_t words[2];
    memcpy(words, &value, bytes);
    asm volatile("st.global.v2.b32 [%0], {%1, %2};"
                 :
                 : "l"(at), "r"(words[0]), "r"(words[1])
                 : "memory");
  } else if constexpr (bytes == 4) {
    uint32_t word;
    memcpy(&word, &value, bytes);
    asm volatile("st.global.b32 [%0], %1;" : : "l"(at), "r"(word) : "memory");
  } else {
    *reinterpret_cast<Vector<T, N> *>(to) = value;
  }
}

#else

template <int N, typename T> Vector<T, N> loadVector(const T *from) {
  return *reinterpret_cast<const Vector<T, N> *>(from);
}
template <typename T, int N> void storeVector(T *to, const Vector<T, N> &value) {
  *reinterpret_cast<Vector<T, N> *>(to) = value;
}

#endif

/// Calls function(type) with the std::type_identity of the float type that `dtype` names.
template <typename Function> auto withFloatType(DType dtype, const Function &function) {
  switch (dtype) {
  case DType::F64:
    return function(std::type_identity<double>());
  case DType::BF16:
    return function(std::type_identity<__nv_bfloat16>());
  case DType::F16:
    return function(std::type_identity<__half>());
  default:
    return function(std::type_identity<float>());
  }
}

/// The same where `dtype` is f32 or f64.
template <typename Function> auto withWideType(DType dtype, const Function &function) {
  return dtype == DType::F64 ? function(std::type_identity<double>())
                             : function(std::type_identity<float>());
}

/// The same with an unsigned integer as wide as an element, for kernels that move elements.
template <typename Function> auto withElementBits(DType dtype, const Function &function) {
  switch (byteWidth(dtype)) {
  case 1:
    return function(std::type_identity<uint8_t>());
  case 2:
    return function(std::type_identity<uint16_t>());
  case 8:
    return function(std::type_identity<uint64_t>());
  default:
    return function(std::type_identity<uint32_t>());
  }
}

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_ELEMENTS_H
