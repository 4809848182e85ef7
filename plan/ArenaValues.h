//===- ArenaValues.h - Values in the bytes of an arena --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_ARENAVALUES_H
#define DTC_PLAN_ARENAVALUES_H

#include "plan/PlanChecks.h"

#include <cstdint>
#include <map>
#include <vector>

namespace dtc {

/// A value in the arena: the result of one execution of an instruction in one buffer.
struct ArenaValue {
  ByteRange range;
  uint32_t buffer = 0;
  uint32_t microbatch = 0; // of the execution that wrote it
  int repetition = 0;      // of the loop over microbatches, when it was written
  bool inLoop = false;     // written by an entry of the loop
  bool ofData =
      false;      // made outside of the loop from inputs that each repetition of the loop has anew
  int entry = -1; // of the schedule; -1: there before the step
  int instruction = 0;
  int64_t time = 0;  // when it was written
  int64_t life = -1; // for the user of this class
};

/// The values that the bytes of an arena hold, as disjoint intervals. All functions take a time
/// that is logarithmic in the number of intervals, for each interval that they meet; an interval is
/// met by a write that removes it at most twice.
class ArenaValues {
public:
  /// The value takes its range; the covered parts of other values are gone.
  void write(const ArenaValue &value);

  /// The values that have some byte of a range, in the order of their bytes; they are valid until
  /// the next write. False if some byte was never written.
  bool find(const ByteRange &range, std::vector<ArenaValue *> &found);

  size_t size() const { return intervals.size(); }
  /// Whether both hold values of the same buffers at the same places.
  bool holdsLike(const ArenaValues &other) const;
  /// The values that an entry of the schedule has written become those of another microbatch.
  void moveTo(uint32_t microbatch, int entry);

private:
  struct Interval {
    uint64_t end = 0;
    ArenaValue value;
  };

  std::map<uint64_t, Interval> intervals; // by their first bytes
};

} // namespace dtc

#endif // DTC_PLAN_ARENAVALUES_H
