//===- ArenaValues.h - What the bytes of an arena hold --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_PLAN_ARENAVALUES_H
#define DTC_RUNTIME_PLAN_ARENAVALUES_H

#include "runtime/plan/PlanChecks.h"

#include <cstdint>
#include <map>
#include <vector>

namespace dtc::runtime {

/// A value in the arena: what one instruction wrote to one buffer.
struct ArenaValue {
  ByteRange range;
  uint32_t buffer = 0;
  uint32_t microbatch = 0; // of the execution that wrote it
  int entry = -1;          // of the schedule; -1: there before the step
  int instruction = 0;
  int64_t time = 0;  // when it was written
  int64_t life = -1; // for the user of this class
};

/// The values that the bytes of an arena hold, as disjoint pieces. All functions take a time that
/// is logarithmic in the number of pieces, for each piece that they meet; a piece is met by a write
/// that removes it at most twice.
class ArenaValues {
public:
  /// The value takes its range; what it covers of others is gone.
  void write(const ArenaValue &value);
  /// The value that is in exactly that range and whole, or null.
  ArenaValue *findExactly(const ByteRange &range);

  enum class Holds {
    Whole,   // the range is one value, a part of one, or several whole ones
    Nothing, // some byte was never written
    Broken,  // some value in the range has lost a part, or reaches beyond its end
  };
  /// The values in a range that is not empty, in the order of their bytes; they are valid until the
  /// next write.
  Holds find(const ByteRange &range, std::vector<ArenaValue *> &found);

  size_t size() const { return pieces.size(); }
  /// Whether both hold values of the same buffers at the same places.
  bool holdsLike(const ArenaValues &other) const;

private:
  struct Piece {
    uint64_t end = 0;
    ArenaValue value;
  };
  static bool isWhole(uint64_t begin, const Piece &piece) {
    return piece.value.range == ByteRange{begin, piece.end};
  }

  std::map<uint64_t, Piece> pieces; // by their first bytes
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_PLAN_ARENAVALUES_H
