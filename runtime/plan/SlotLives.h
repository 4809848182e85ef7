//===- SlotLives.h - How many microbatches are alive at once --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_PLAN_SLOTLIVES_H
#define DTC_RUNTIME_PLAN_SLOTLIVES_H

#include "runtime/plan/PlanChecks.h"

#include <optional>
#include <vector>

namespace dtc::runtime {

/// The lives of the values of buffers with slots: each from its write, or the start of its receive,
/// to its last read.
class SlotLives {
public:
  explicit SlotLives(const PlanContext &context) : context(context) {}

  /// A value of the buffer begins to live; its number.
  int64_t begin(uint32_t buffer, int64_t time) {
    lives.push_back({buffer, time, time});
    return static_cast<int64_t>(lives.size()) - 1;
  }
  /// The value of that number is read; -1 is none.
  void read(int64_t life, int64_t time) {
    if (life >= 0)
      lives[static_cast<size_t>(life)].end = time;
  }

  /// The buffer with the most values alive at one moment, if any has slots.
  std::optional<ProgramFacts::Slots> liveliest() const;

private:
  struct Life {
    uint32_t buffer;
    int64_t begin, end; // both included
  };

  const PlanContext &context;
  std::vector<Life> lives;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_PLAN_SLOTLIVES_H
