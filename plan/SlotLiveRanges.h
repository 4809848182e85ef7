//===- SlotLiveRanges.h - Live ranges of slots ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_SLOTLIVERANGES_H
#define DTC_PLAN_SLOTLIVERANGES_H

#include "plan/PlanChecks.h"

#include <optional>
#include <vector>

namespace dtc {

/// The lives of the values of buffers with slots: each from its write, or the start of its receive,
/// to its last read. Times are numbers of executed instructions, at most kMaxFollowedOperands.
class SlotLiveRanges {
public:
  explicit SlotLiveRanges(const PlanContext &context)
      : context(context), lives(context.copies.size()) {}

  /// A value of the buffer begins to live; its number among those of the buffer.
  int64_t begin(uint32_t buffer, int64_t time) {
    auto now = static_cast<uint32_t>(time);
    lives[buffer].push_back({now, now});
    return static_cast<int64_t>(lives[buffer].size()) - 1;
  }
  /// The buffer's value of that number is read; -1 is none.
  void read(uint32_t buffer, int64_t life, int64_t time) {
    if (life >= 0)
      lives[buffer][static_cast<size_t>(life)].end = static_cast<uint32_t>(time);
  }

  /// The buffer with the most values alive at one moment, if any has slots; those that share slots
  /// are one.
  std::optional<ProgramVerifierResult::Slots> liveliest() const;

private:
  // There may be one for every operand of every execution, so it is small.
  struct Life {
    uint32_t begin, end; // both included
  };

  uint32_t mostAlive(const std::vector<uint32_t> &buffers) const;

  const PlanContext &context;
  std::vector<std::vector<Life>> lives; // by buffer
};

} // namespace dtc

#endif // DTC_PLAN_SLOTLIVERANGES_H
