//===- PanelProducts.h - Products with an operand in panels ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Products of blocks that stay in the caches, of operands that take part in many of them: a library
// would pack its operands again at every call. The right operand lies in panels of one cache line's
// columns, which are zero beyond its end: element (l, j) is at [j / kPanel][l][j % kPanel].
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_PANELPRODUCTS_H
#define DTC_RUNTIME_BACKENDS_CPU_PANELPRODUCTS_H

#include "calls/GemmShape.h"

#include <cstdint>

namespace dtc::runtime::cpu {

/// Columns of a panel.
template <typename W> inline constexpr int64_t kPanel = 64 / static_cast<int64_t>(sizeof(W));

inline int64_t roundUp(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

/// The elements of a right operand of `depth` rows.
template <typename W> int64_t panelElements(int64_t depth, int64_t columns) {
  return depth * roundUp(columns, kPanel<W>);
}

/// Packs (depth, columns) with contiguous rows.
template <typename W>
void packRows(const W *from, int64_t stride, int64_t depth, int64_t columns, W *panels);
/// Packs the transpose of (columns, depth) with contiguous rows.
template <typename W>
void packTransposed(const W *from, int64_t stride, int64_t depth, int64_t columns, W *panels);

/// A block of a right operand in panels. `panels` points to its first row in its first panel,
/// `panelStride` elements before the one in the second.
template <typename W> struct PanelBlock {
  const W *panels;
  int64_t panelStride;
};

/// c = a b, or c += a b: (m, k) by (k, n). Rows of c are contiguous. One thread.
template <typename W>
void multiplyPanels(int64_t m, int64_t n, int64_t k, const W *a, MatrixStrides aStrides,
                    PanelBlock<W> b, bool accumulate, W *c, int64_t cStride);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_PANELPRODUCTS_H
