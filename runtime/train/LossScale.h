//===- LossScale.h - What the loss is multiplied by -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_LOSSSCALE_H
#define DTC_RUNTIME_TRAIN_LOSSSCALE_H

#include <cstdint>

namespace dtc::runtime {

/// The factor that keeps small gradients within the range of a 16-bit type. It falls by half after
/// each step that was skipped, because a gradient overflowed, and doubles after every
/// `growthInterval` steps in a row that were not. It stays within [lowest, highest].
///
/// Source: Micikevicius et al., "Mixed precision training" (ICLR 2018), section 3.2.
class LossScale {
public:
  static constexpr double lowest = 1;
  static constexpr double highest = 16777216; // 2^24

  /// `initial` lies within the bounds; `growthInterval` is at least 1.
  /// `goodSteps` in a row have gone well before.
  LossScale(double initial, int64_t growthInterval, int64_t goodSteps = 0)
      : scale(initial), growthInterval(growthInterval), goodSteps(goodSteps) {}

  /// The factor for the next step.
  double value() const { return scale; }
  int64_t getGoodSteps() const { return goodSteps; }
  int64_t getGrowthInterval() const { return growthInterval; }
  bool isLowest() const { return scale <= lowest; }

  /// Takes in the outcome of a step that ran with value().
  void stepDone(bool skipped);

private:
  double scale;
  int64_t growthInterval;
  int64_t goodSteps = 0; // in a row, since the scale changed
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_LOSSSCALE_H
