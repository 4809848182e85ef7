//===- ArenaOffsets.h - Offsets for buffers with known live ranges --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_ARENAOFFSETS_H
#define DTC_COMPILER_ANALYSIS_ARENAOFFSETS_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace dtc {

/// A buffer and the program points, both included, between which its bytes are in use.
struct LiveRange {
  int64_t bytes = 0; ///< a multiple of the alignment
  int first = 0;
  int last = 0;
};

struct ArenaOffsets {
  std::vector<int64_t> offsets;
  int64_t arenaBytes = 0;
  /// The most bytes alive at one program point: no assignment of offsets needs less.
  int64_t lowerBound = 0;
  /// The first program point at which that many are alive.
  int peak = 0;
};

/// Places buffers whose live ranges overlap at disjoint offsets. O(n log n): buffers in order of
/// their first program point go to the smallest free gap that holds them, longest-lived first among
/// those of one point. Where that needs more than the lower bound, it is done backwards in time,
/// and then, for up to 4096 buffers, the largest go first to the lowest offset that is free in all
/// of their live range, O(n^2); the smallest arena is taken. (Offline dynamic storage allocation is
/// NP-hard: Garey and Johnson 1979, problem SR2.)
ArenaOffsets assignOffsets(llvm::ArrayRef<LiveRange> ranges);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_ARENAOFFSETS_H
