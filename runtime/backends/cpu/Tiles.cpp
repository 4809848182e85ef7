//===- Tiles.cpp - Products of blocks of bf16 -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Tiles.h"

#include "runtime/backends/cpu/Bf16Unit.h"

#include <algorithm>
#include <cstring>

#if DTC_TILES
#include <immintrin.h>
#endif

namespace dtc::runtime::cpu {

#if DTC_TILES

TileScope::TileScope() {
  if (bf16Unit() != Bf16Unit::Tiles)
    return;
  struct alignas(64) {
    uint8_t palette = 1, startRow = 0, reserved[14] = {};
    uint16_t rowBytes[16] = {};
    uint8_t rows[16] = {};
  } config;
  for (int tile = 0; tile < 8; ++tile) {
    config.rowBytes[tile] = 64;
    config.rows[tile] = kTileRows;
  }
  // The intrinsic is an instruction whose operand GCC 12 does not take to be read.
  asm volatile("ldtilecfg %0" : : "m"(config));
}
TileScope::~TileScope() {
  if (bf16Unit() == Bf16Unit::Tiles)
    asm volatile("tilerelease");
}

void packTileRows(const BFloat16 *from, int64_t stride, int64_t depth, int64_t columns,
                  int64_t paddedDepth, uint32_t *words) {
  int64_t panels = (columns + kTileRows - 1) / kTileRows, panelWords = paddedDepth / 2 * kTileRows;
  std::fill_n(words, panels * panelWords, 0u);
  for (int64_t l = 0; l < depth; l += 2)
    for (int64_t j = 0; j < columns; j += 8) {
      auto load = [&](int64_t row) {
        return row < depth
                   ? _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + row * stride + j))
                   : _mm_setzero_si128();
      };
      __m128i even = load(l), odd = load(l + 1);
      auto *to = reinterpret_cast<__m128i *>(words + j / kTileRows * panelWords +
                                             l / 2 * kTileRows + j % kTileRows);
      _mm_storeu_si128(to, _mm_unpacklo_epi16(even, odd));
      _mm_storeu_si128(to + 1, _mm_unpackhi_epi16(even, odd));
    }
}

/// 4 rows of 4 pairs become 4 rows of a panel.
static void transposePairs(const BFloat16 *from, int64_t stride, uint32_t *to) {
  auto load = [=](int64_t row) {
    return _mm_castsi128_ps(
        _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + row * stride)));
  };
  __m128 rows[4] = {load(0), load(1), load(2), load(3)};
  _MM_TRANSPOSE4_PS(rows[0], rows[1], rows[2], rows[3]);
  for (int row = 0; row < 4; ++row)
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + row * kTileRows),
                     _mm_castps_si128(rows[row]));
}

void packTilesTransposed(const BFloat16 *from, int64_t stride, int64_t depth, int64_t columns,
                         uint32_t *words) {
  int64_t pairs = (depth + kTileDepth - 1) / kTileDepth * (kTileDepth / 2);
  for (int64_t j = 0; j < columns; j += kTileRows, words += pairs * kTileRows) {
    int64_t count = std::min(kTileRows, columns - j);
    if (count < kTileRows || pairs * 2 > depth)
      std::fill_n(words, pairs * kTileRows, 0u);
    for (int64_t l = 0; l < depth; l += 8) {
      int64_t e = 0;
      for (; e + 4 <= count; e += 4)
        transposePairs(from + (j + e) * stride + l, stride, words + l / 2 * kTileRows + e);
      for (; e < count; ++e)
        for (int64_t pair = 0; pair < 4; ++pair)
          std::memcpy(words + (l / 2 + pair) * kTileRows + e,
                      from + (j + e) * stride + l + 2 * pair, sizeof(uint32_t));
    }
  }
}

namespace {

/// Two by two tiles of the result, in 0 to 3; 4 and 5 are of a, 6 and 7 of b. Of fewer, a tile is
/// computed alone.
template <int Rows, int Columns>
[[gnu::target("amx-tile,amx-bf16"), gnu::noinline]] void
multiplySquare(int64_t k, const BFloat16 *a, int64_t aStride, TileBlock b, bool accumulate,
               float *c, int64_t cStride) {
  int64_t aBytes = aStride * 2, cBytes = cStride * 4;
  const BFloat16 *a1 = a + kTileRows * aStride;
  float *c1 = c + kTileRows * cStride;
  constexpr bool twoRows = Rows == 2, twoColumns = Columns == 2;
  if (accumulate) {
    _tile_loadd(0, c, cBytes);
    if constexpr (twoColumns)
      _tile_loadd(1, c + kTileRows, cBytes);
    if constexpr (twoRows)
      _tile_loadd(2, c1, cBytes);
    if constexpr (twoRows && twoColumns)
      _tile_loadd(3, c1 + kTileRows, cBytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const uint32_t *words = b.words;
  for (int64_t l = 0; l < k; l += kTileDepth, words += kTileDepth / 2 * kTileRows) {
    _tile_loadd(6, words, 64);
    _tile_loadd(4, a + l, aBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (twoColumns) {
      _tile_loadd(7, words + b.panelStride, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (twoRows) {
      _tile_loadd(5, a1 + l, aBytes);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (twoColumns)
        _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, cBytes);
  if constexpr (twoColumns)
    _tile_stored(1, c + kTileRows, cBytes);
  if constexpr (twoRows)
    _tile_stored(2, c1, cBytes);
  if constexpr (twoRows && twoColumns)
    _tile_stored(3, c1 + kTileRows, cBytes);
}

void multiplySquares(int64_t m, int64_t n, int64_t k, const BFloat16 *a, int64_t aStride,
                     TileBlock b, bool accumulate, float *c, int64_t cStride) {
  for (int64_t j = 0; j < n; j += 2 * kTileRows) {
    bool two = n - j > kTileRows;
    TileBlock columns{b.words + j / kTileRows * b.panelStride, b.panelStride};
    for (int64_t i = 0; i < m; i += 2 * kTileRows) {
      const BFloat16 *from = a + i * aStride;
      float *to = c + i * cStride + j;
      if (m - i > kTileRows)
        (two ? multiplySquare<2, 2> : multiplySquare<2, 1>)(k, from, aStride, columns, accumulate,
                                                            to, cStride);
      else
        (two ? multiplySquare<1, 2> : multiplySquare<1, 1>)(k, from, aStride, columns, accumulate,
                                                            to, cStride);
    }
  }
}

/// Rows times Panels registers of the result.
template <int Rows, int Panels>
[[gnu::target("avx512f,avx512bf16"), gnu::noinline]] void
multiplyLines(int64_t k, const BFloat16 *a, int64_t aStride, TileBlock b, bool accumulate, float *c,
              int64_t cStride) {
  __m512 sums[Rows][Panels];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < Panels; ++j)
      sums[i][j] =
          accumulate ? _mm512_loadu_ps(c + i * cStride + j * kTileRows) : _mm512_setzero_ps();
  const uint32_t *words = b.words;
  for (int64_t l = 0; l < k; l += 2, words += kTileRows) {
    __m512bh line[Panels];
#pragma GCC unroll 16
    for (int j = 0; j < Panels; ++j)
      line[j] = (__m512bh)_mm512_loadu_si512(words + j * b.panelStride);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      int pair;
      std::memcpy(&pair, a + i * aStride + l, sizeof(pair));
      auto pairs = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 16
      for (int j = 0; j < Panels; ++j)
        sums[i][j] = _mm512_dpbf16_ps(sums[i][j], pairs, line[j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < Panels; ++j)
      _mm512_storeu_ps(c + i * cStride + j * kTileRows, sums[i][j]);
}

/// By dot products. 16 sums in registers hide the latency of an instruction.
void multiplyDots(int64_t m, int64_t n, int64_t k, const BFloat16 *a, int64_t aStride, TileBlock b,
                  bool accumulate, float *c, int64_t cStride) {
  for (int64_t j = 0; j < n; j += 2 * kTileRows) {
    bool two = n - j > kTileRows;
    int64_t rows = two ? kTileRows / 2 : kTileRows;
    TileBlock columns{b.words + j / kTileRows * b.panelStride, b.panelStride};
    for (int64_t i = 0; i < m; i += rows)
      (two ? multiplyLines<kTileRows / 2, 2>
           : multiplyLines<kTileRows, 1>)(k, a + i * aStride, aStride, columns, accumulate,
                                          c + i * cStride + j, cStride);
  }
}

/// What dot products give, on processors that have none: for tests.
void multiplyPlainly(int64_t m, int64_t n, int64_t k, const BFloat16 *a, int64_t aStride,
                     TileBlock b, bool accumulate, float *c, int64_t cStride) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const uint32_t *words = b.words + j / kTileRows * b.panelStride + j % kTileRows;
      float &to = c[i * cStride + j], sum = accumulate ? to : 0;
      for (int64_t l = 0; l < k; ++l) {
        BFloat16 factor;
        factor.bits = static_cast<uint16_t>(words[l / 2 * kTileRows] >> (l % 2 * 16));
        sum += static_cast<float>(a[i * aStride + l]) * static_cast<float>(factor);
      }
      to = sum;
    }
}

} // namespace

void multiplyTiles(int64_t m, int64_t n, int64_t k, const BFloat16 *a, int64_t aStride, TileBlock b,
                   bool accumulate, float *c, int64_t cStride) {
  static const bool hasDots = __builtin_cpu_supports("avx512bf16");
  auto multiply = bf16Unit() == Bf16Unit::Tiles ? multiplySquares
                  : hasDots                     ? multiplyDots
                                                : multiplyPlainly;
  multiply(m, n, k, a, aStride, b, accumulate, c, cStride);
}

#else

// Never called: bf16Unit() is None.
TileScope::TileScope() = default;
TileScope::~TileScope() = default;
void packTileRows(const BFloat16 *, int64_t, int64_t, int64_t, int64_t, uint32_t *) {}
void packTilesTransposed(const BFloat16 *, int64_t, int64_t, int64_t, uint32_t *) {}
void multiplyTiles(int64_t, int64_t, int64_t, const BFloat16 *, int64_t, TileBlock, bool, float *,
                   int64_t) {}

#endif

} // namespace dtc::runtime::cpu
