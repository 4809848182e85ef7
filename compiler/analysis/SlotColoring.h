//===- SlotColoring.h - Assignment of slots to microbatches ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_SLOTCOLORING_H
#define DTC_COMPILER_ANALYSIS_SLOTCOLORING_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace dtc {

/// The places in an order, both included, between which a value is in use; none if `last` is before
/// `first`.
struct SlotInterval {
  int first = 0;
  int last = -1;

  bool isEmpty() const { return last < first; }
};

/// The fewest slots so that value i can have slot i mod slots; at least 1. O(n log n).
int64_t countSlotsInTurn(llvm::ArrayRef<SlotInterval> intervals);

/// A slot for each value, so that no two values that are in use at one place have the same.
struct SlotColoring {
  int64_t slots = 1;
  std::vector<int64_t> slotOf; ///< 0 for a value that is never in use
};

/// Gives values the lowest slot that is free, in the order in which their use begins. That takes as
/// few slots as there can be, the most values in use at one place (and 1 where none is): a value
/// gets a new slot only while all others are in use. Values that begin at one place get theirs in
/// the order given. O(n log n).
SlotColoring colorSlots(llvm::ArrayRef<SlotInterval> intervals);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_SLOTCOLORING_H
