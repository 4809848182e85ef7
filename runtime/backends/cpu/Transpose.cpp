//===- Transpose.cpp - Transposed copies of matrices ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Transpose.h"

#include <algorithm>

#ifdef __x86_64__
#include <emmintrin.h>
#endif

namespace dtc::runtime::cpu {

#ifdef __x86_64__
static constexpr int64_t kFloatBlock = 4, kHalfBlock = 8;

// 4 by 4 words, and 8 by 8 halves of them: instructions that every x86-64 has.

static void transposeBlock(const float *from, int64_t stride, float *to, int64_t toStride) {
  __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + stride),
         c = _mm_loadu_ps(from + 2 * stride), d = _mm_loadu_ps(from + 3 * stride);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(to, a);
  _mm_storeu_ps(to + toStride, b);
  _mm_storeu_ps(to + 2 * toStride, c);
  _mm_storeu_ps(to + 3 * toStride, d);
}

static void transposeBlock(const BFloat16 *from, int64_t stride, BFloat16 *to, int64_t toStride) {
  __m128i rows[8], pairs[8], fours[8];
  for (int i = 0; i < 8; ++i)
    rows[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i * stride));
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = _mm_unpacklo_epi16(rows[2 * i], rows[2 * i + 1]);
    pairs[2 * i + 1] = _mm_unpackhi_epi16(rows[2 * i], rows[2 * i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int half = 0; half < 2; ++half) {
      fours[i + 2 * half] = _mm_unpacklo_epi32(pairs[i + half], pairs[i + 2 + half]);
      fours[i + 2 * half + 1] = _mm_unpackhi_epi32(pairs[i + half], pairs[i + 2 + half]);
    }
  for (int i = 0; i < 4; ++i) {
    auto *low = reinterpret_cast<__m128i *>(to + 2 * i * toStride);
    auto *high = reinterpret_cast<__m128i *>(to + (2 * i + 1) * toStride);
    _mm_storeu_si128(low, _mm_unpacklo_epi64(fours[i], fours[i + 4]));
    _mm_storeu_si128(high, _mm_unpackhi_epi64(fours[i], fours[i + 4]));
  }
}

#else
static constexpr int64_t kFloatBlock = 1, kHalfBlock = 1;

template <typename T> static void transposeBlock(const T *from, int64_t, T *to, int64_t) {
  *to = *from;
}
#endif

/// In blocks of `size` by `size`, and the rest element by element. Blocks are done in squares,
/// so that a cache line of the result is written at once.
template <typename T>
static void transposeInBlocks(const T *from, int64_t stride, int64_t rows, int64_t columns, T *to,
                              int64_t toStride, int64_t size) {
  constexpr int64_t square = 32;
  int64_t wholeRows = rows / size * size, wholeColumns = columns / size * size;
  for (int64_t column = 0; column < wholeColumns; column += square)
    for (int64_t row = 0; row < wholeRows; row += square)
      for (int64_t j = column; j < std::min(column + square, wholeColumns); j += size)
        for (int64_t i = row; i < std::min(row + square, wholeRows); i += size)
          transposeBlock(from + i * stride + j, stride, to + j * toStride + i, toStride);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i < wholeRows ? wholeColumns : 0; j < columns; ++j)
      to[j * toStride + i] = from[i * stride + j];
}

void transpose(const float *from, int64_t stride, int64_t rows, int64_t columns, float *to,
               int64_t toStride) {
  transposeInBlocks(from, stride, rows, columns, to, toStride, kFloatBlock);
}

void transpose(const BFloat16 *from, int64_t stride, int64_t rows, int64_t columns,
               int64_t paddedRows, BFloat16 *to) {
  transposeInBlocks(from, stride, rows, columns, to, paddedRows, kHalfBlock);
  for (int64_t j = 0; j < columns; ++j)
    std::fill(to + j * paddedRows + rows, to + (j + 1) * paddedRows, BFloat16());
}

} // namespace dtc::runtime::cpu
