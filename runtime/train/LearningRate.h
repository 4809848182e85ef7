//===- LearningRate.h - The learning rate over the steps ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_LEARNINGRATE_H
#define DTC_RUNTIME_TRAIN_LEARNINGRATE_H

#include <cstdint>

namespace dtc::runtime {

enum class LearningRateDecay { Constant, Linear, Cosine };

/// A linear rise from peak / warmupSteps to `peak`, then the decay to `minimum`, which the last
/// step reaches.
struct LearningRateSchedule {
  LearningRateDecay decay = LearningRateDecay::Cosine;
  double peak = 0;
  double minimum = 0;
  int64_t warmupSteps = 0;
  int64_t totalSteps = 0;

  /// The rate of a step; 1 is the first. Steps after the last keep its rate.
  double at(int64_t step) const;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_LEARNINGRATE_H
