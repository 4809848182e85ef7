//===- Tiles.h - Products of blocks of bf16 -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Products of blocks that stay in the caches, as PanelProducts.h has them for f32: the right
// operand lies in panels of 16 columns, and in them the elements (l, j) and (l + 1, j) in one word,
// as the tiles take them: at [j / 16][l / 2][j % 16]. Sums are those of f32. A tile has 16 rows of
// 64 bytes, so rows and columns of the result come in multiples of 16 and the depth in multiples of
// 32; the padding of an operand is zero. Dot products of AVX-512 take the same words: a panel has
// 16 columns because a register has.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_TILES_H
#define DTC_RUNTIME_BACKENDS_CPU_TILES_H

#include "support/Float16.h"

#include <cstdint>

#if defined(__x86_64__) && defined(__linux__) && (defined(__clang__) || __GNUC__ >= 12)
#define DTC_TILES 1
#else
#define DTC_TILES 0
#endif

namespace dtc::runtime::cpu {

inline constexpr int64_t kTileRows = 16, kTileDepth = 32;

/// The tiles of this thread, while it computes with them, where the processor's unit are tiles.
class TileScope {
public:
  TileScope();
  ~TileScope();
  TileScope(const TileScope &) = delete;
  TileScope &operator=(const TileScope &) = delete;
};

/// The words of a right operand.
inline int64_t tileWords(int64_t depth, int64_t columns) {
  return (depth + kTileDepth - 1) / kTileDepth * (kTileDepth / 2) *
         ((columns + kTileRows - 1) / kTileRows * kTileRows);
}

/// Packs `depth` contiguous rows of `columns` elements, a multiple of 8, as a right operand of
/// `paddedDepth` rows.
void packTileRows(const BFloat16 *from, int64_t stride, int64_t depth, int64_t columns,
                  int64_t paddedDepth, uint32_t *words);
/// Packs the transpose of `columns` contiguous rows of `depth` elements, a multiple of 8.
void packTilesTransposed(const BFloat16 *from, int64_t stride, int64_t depth, int64_t columns,
                         uint32_t *words);
/// A block of a right operand: its first word, and the words from one panel to the next.
struct TileBlock {
  const uint32_t *words;
  int64_t panelStride;
};

/// c = a b, or c += a b: (m, k) by (k, n), in a TileScope, by the unit that bf16Unit() names.
void multiplyTiles(int64_t m, int64_t n, int64_t k, const BFloat16 *a, int64_t aStride, TileBlock b,
                   bool accumulate, float *c, int64_t cStride);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_TILES_H
