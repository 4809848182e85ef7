//===- OperandMemory.cpp - Memory for operands, used again ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/OperandMemory.h"

#include <algorithm>

namespace dtc::runtime {

/// Only pages that are touched take memory.
static constexpr size_t kChunkBytes = size_t{256} << 20;

Expected<std::byte *> OperandMemory::take(size_t bytes) {
  if (chunks.empty() || chunks.back().size() - used < bytes) {
    Expected<PageMemory> chunk = PageMemory::allocate(std::max(bytes, kChunkBytes));
    if (!chunk)
      return chunk.error();
    chunks.push_back(std::move(*chunk));
    used = 0;
  }
  std::byte *begin = chunks.back().data() + used;
  used = std::min(chunks.back().size(), used + (bytes + 63) / 64 * 64);
  return begin;
}

void OperandMemory::reset() {
  // What did not fit one chunk is rare, and not kept.
  if (chunks.size() > 1)
    chunks.resize(1);
  used = 0;
}

} // namespace dtc::runtime
