//===- SkippedSteps.h - Consecutive skipped steps --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_SKIPPEDSTEPS_H
#define DTC_RUNTIME_TRAIN_SKIPPEDSTEPS_H

#include <cstdint>

namespace dtc::runtime {

/// Counts the consecutive steps that a program skipped because their gradient was not finite, and
/// decides when the run has to end.
class SkippedSteps {
public:
  /// After this many consecutive skipped steps that no smaller loss scale can avoid, the run ends.
  static constexpr int64_t mostInARow = 10;

  SkippedSteps() = default;
  /// Continues from the count of an earlier run.
  explicit SkippedSteps(int64_t inARow) : inARow(inARow) {}

  /// Takes in the outcome of a step; `scaleCanFall` where the next one has a smaller loss scale.
  void stepDone(bool skipped, bool scaleCanFall) {
    inARow = skipped && !scaleCanFall ? inARow + 1 : 0;
  }

  int64_t lastInARow() const { return inARow; }
  bool hopeless() const { return inARow >= mostInARow; }

private:
  int64_t inARow = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_SKIPPEDSTEPS_H
