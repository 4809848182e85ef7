//===- QuantizedBlocks.h - The size of blocks of integers with a scale ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_QUANTIZEDBLOCKS_H
#define DTC_SUPPORT_QUANTIZEDBLOCKS_H

#include <cstdint>

namespace dtc {

/// The most elements of a block of quantize_blocks.
inline constexpr int64_t kMaxQuantizedBlock = int64_t{1} << 20;

/// Describes how `elements` floats become blocks of integers. The tensor is divided into `parts`
/// equal parts, and each part into blocks of `block` elements; the last block of a part may be
/// shorter. A block is a row of 32-bit words: its f32 scale, then its integers of 4 or 8 `bits`.
struct QuantizedBlocks {
  int64_t bits = 8, block = 1, parts = 1, elements = 0;

  /// Elements and blocks of one part.
  int64_t partElements() const { return elements / parts; }
  int64_t partBlocks() const { return (partElements() + block - 1) / block; }
  /// Rows of all parts, and words of one row.
  int64_t rows() const { return parts * partBlocks(); }
  int64_t words() const { return 1 + (block * bits + 31) / 32; }
  /// The largest integer.
  int64_t limit() const { return (int64_t{1} << (bits - 1)) - 1; }
};

} // namespace dtc

#endif // DTC_SUPPORT_QUANTIZEDBLOCKS_H
