//===- MatrixUnits.h - Instructions of tensor cores -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Products of 16 x 16 and 16 x 8 matrices of 16-bit elements, which the lanes of a warp hold
// together. With g = lane / 4 and t = lane mod 4, a lane has of the left operand the words
//
//   (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8)
//
// each with the element of that row and column and its right neighbour; of the right operand the
// words (2t, g) and (2t + 8, g), each with the element and the one below it; and of the result
// (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
//
// Source: NVIDIA, "Parallel Thread Execution ISA", "Matrix Fragments for mma.m16n8k16" and
// "ldmatrix". Compiled as C++ for the tests, the instructions are functions of the stand-in of
// CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_MATRIXUNITS_H
#define DTC_RUNTIME_BACKENDS_CUDA_MATRIXUNITS_H

#include "runtime/backends/cuda/Elements.h"

#include <cstdint>
#include <type_traits>
#ifndef __CUDACC__
#include <mma.h>
#endif

namespace dtc::runtime::cuda {

__device__ __forceinline__ uint32_t bitsOf(__nv_bfloat16 value) {
  return __bfloat16_as_ushort(value);
}
__device__ __forceinline__ uint32_t bitsOf(__half value) { return __half_as_ushort(value); }

/// A word of two neighbours, `first` in its lower half.
template <typename F> __device__ __forceinline__ uint32_t packPair(F first, F second) {
  return bitsOf(first) | bitsOf(second) << 16;
}

#ifdef __CUDACC__

template <typename F>
__device__ __forceinline__ void multiplyAddOne(float &c0, float &c1, float &c2, float &c3,
                                               const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<F, __half>)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// c += a b for B right operands side by side. Of each row of c, the columns of a lane begin at
/// number `first`.
template <typename F, int C, int B>
__device__ __forceinline__ void multiplyAdd(float (&c)[2][C], int first, const uint32_t (&a)[4],
                                            const uint32_t (&b)[B][2]) {
#pragma unroll
  for (int n = 0; n < B; ++n)
    multiplyAddOne<F>(c[0][first + 2 * n], c[0][first + 2 * n + 1], c[1][first + 2 * n],
                      c[1][first + 2 * n + 1], a, b[n]);
}

/// Two right operands side by side, from 16 rows of 16 elements in shared memory that begin at
/// `tile`, a multiple of 16 bytes, and lie `pitch` words apart.
__device__ __forceinline__ void loadTransposed(const uint32_t *tile, int pitch, uint32_t (&b0)[2],
                                               uint32_t (&b1)[2]) {
  int lane = static_cast<int>(threadIdx.x % 32);
  auto row =
      static_cast<uint32_t>(__cvta_generic_to_shared(tile + lane % 16 * pitch + lane / 16 * 4));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(b0[0]), "=r"(b0[1]), "=r"(b1[0]), "=r"(b1[1])
               : "r"(row)
               : "memory");
}

#else

template <typename F, int C, int B>
void multiplyAdd(float (&c)[2][C], int first, const uint32_t (&a)[4], const uint32_t (&b)[B][2]) {
  for (int n = 0; n < B; ++n) {
    float sums[4] = {c[0][first + 2 * n], c[0][first + 2 * n + 1], c[1][first + 2 * n],
                     c[1][first + 2 * n + 1]};
    standin::multiplyAdd<F>(sums, a, b[n]);
    c[0][first + 2 * n] = sums[0];
    c[0][first + 2 * n + 1] = sums[1];
    c[1][first + 2 * n] = sums[2];
    c[1][first + 2 * n + 1] = sums[3];
  }
}

inline void loadTransposed(const uint32_t *tile, int pitch, uint32_t (&b0)[2], uint32_t (&b1)[2]) {
  standin::loadTransposed(tile, pitch, b0);
  standin::loadTransposed(tile + 4, pitch, b1);
}

#endif

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_MATRIXUNITS_H
