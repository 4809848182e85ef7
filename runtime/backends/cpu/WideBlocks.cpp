//===- WideBlocks.cpp - Conversion of 16-bit elements in blocks -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/WideBlocks.h"

#include "runtime/backends/cpu/Simd.h"

#if DTC_SIMD_VERSIONS
#include <immintrin.h>
#endif

namespace dtc::runtime::cpu {

template <typename To, typename From>
static void convertBlock(const From *from, To *to, int64_t count) {
  // Elements of a cache line of 16-bit elements.
  constexpr int64_t line = 32;
  simd([=] {
    int64_t i = 0;
    for (; i + line <= count; i += line) {
      // The memory is read for the next block while the kernel computes with this one.
      if constexpr (kIsWide<To>)
        __builtin_prefetch(from + i + kWideBlock);
        // Not `omp simd`, which would give the temporary object an array of its own.
#pragma GCC ivdep
      for (int64_t k = i; k < i + line; ++k)
        to[k] = static_cast<To>(from[k]);
    }
    for (; i < count; ++i)
      to[i] = static_cast<To>(from[i]);
  });
}

#if DTC_SIMD_VERSIONS
// The processor's own conversions of f16 give the same bits. Its conversion to bf16 does not: it
// takes subnormal numbers for zeros. There it is the packing of 32-bit numbers that counts.

[[gnu::target("arch=x86-64-v4")]] static int64_t widenV4(const Float16 *from, float *to,
                                                         int64_t count) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    __builtin_prefetch(from + i + kWideBlock);
    __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from + i));
    _mm512_storeu_ps(to + i, _mm512_maskz_cvtph_ps(0xFFFF, half));
  }
  return i;
}
[[gnu::target("arch=x86-64-v3")]] static int64_t widenV3(const Float16 *from, float *to,
                                                         int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __builtin_prefetch(from + i + kWideBlock);
    __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
  }
  return i;
}
[[gnu::target("arch=x86-64-v4")]] static int64_t narrowV4(const float *from, Float16 *to,
                                                          int64_t count) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    __m256i half =
        _mm512_maskz_cvtps_ph(0xFFFF, _mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to + i), half);
  }
  return i;
}
[[gnu::target("arch=x86-64-v3")]] static int64_t narrowV3(const float *from, Float16 *to,
                                                          int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i), half);
  }
  return i;
}

/// Rounds as the constructor of BFloat16 does.
[[gnu::target("arch=x86-64-v4")]] static int64_t narrowV4(const float *from, BFloat16 *to,
                                                          int64_t count) {
  const __m512i one = _mm512_set1_epi32(1), half = _mm512_set1_epi32(0x7FFF);
  const __m512i quiet = _mm512_set1_epi32(0x400000);
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    __m512 value = _mm512_loadu_ps(from + i);
    __m512i wide = _mm512_castps_si512(value);
    __mmask16 isNaN = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    __m512i odd = _mm512_and_si512(_mm512_maskz_srli_epi32(0xFFFF, wide, 16), one);
    __m512i rounded = _mm512_add_epi32(wide, _mm512_add_epi32(odd, half));
    __m512i result = _mm512_mask_or_epi32(rounded, isNaN, wide, quiet);
    __m256i packed =
        _mm512_maskz_cvtepi32_epi16(0xFFFF, _mm512_maskz_srli_epi32(0xFFFF, result, 16));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to + i), packed);
  }
  return i;
}
#endif

void widen(const BFloat16 *from, float *to, int64_t count) { convertBlock(from, to, count); }
void narrow(const float *from, BFloat16 *to, int64_t count) {
  int64_t done = 0;
#if DTC_SIMD_VERSIONS
  if (detail::instructionSet() == detail::InstructionSet::V4)
    done = narrowV4(from, to, count);
#endif
  if (done < count)
    convertBlock(from + done, to + done, count - done);
}

void widen(const Float16 *from, float *to, int64_t count) {
  int64_t done = 0;
#if DTC_SIMD_VERSIONS
  detail::InstructionSet set = detail::instructionSet();
  done = set == detail::InstructionSet::V4   ? widenV4(from, to, count)
         : set == detail::InstructionSet::V3 ? widenV3(from, to, count)
                                             : 0;
#endif
  if (done < count)
    convertBlock(from + done, to + done, count - done);
}
void narrow(const float *from, Float16 *to, int64_t count) {
  int64_t done = 0;
#if DTC_SIMD_VERSIONS
  detail::InstructionSet set = detail::instructionSet();
  done = set == detail::InstructionSet::V4   ? narrowV4(from, to, count)
         : set == detail::InstructionSet::V3 ? narrowV3(from, to, count)
                                             : 0;
#endif
  if (done < count)
    convertBlock(from + done, to + done, count - done);
}

} // namespace dtc::runtime::cpu
