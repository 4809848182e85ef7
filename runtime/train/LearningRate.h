//===- LearningRate.h - The learning rate over the steps ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_LEARNINGRATE_H
#define DTC_RUNTIME_TRAIN_LEARNINGRATE_H

#include <cstdint>
#include <string>

namespace dtc::runtime {

enum class LearningRateDecay { Constant, Linear, Cosine };

/// A linear rise from peak / warmupSteps to `peak`, then the decay to `minimum`, which the last
/// step reaches. With peak P, minimum M, W warm-up steps and N steps in all, the rate of step s, 1
/// being the first, is
///
///   P * s / W                          for s <= W
///   P                                  after that, Constant
///   P + (M - P) * p                    Linear
///   M + (P - M) * (1 + cos(pi p)) / 2  Cosine
///
/// with p = (s - W - 1) / (N - W - 1), which is 0 at the first step after the warm-up and 1 at the
/// last step. p is at most 1, and 0 where only one step follows the warm-up.
///
/// Source of the cosine: Loshchilov and Hutter, "SGDR: Stochastic gradient descent with warm
/// restarts" (ICLR 2017), without restarts.
struct LearningRateSchedule {
  LearningRateDecay decay = LearningRateDecay::Cosine;
  double peak = 0;
  double minimum = 0;
  int64_t warmupSteps = 0;
  int64_t totalSteps = 0;

  /// The rate of a step; 1 is the first. Steps after the last keep its rate.
  double at(int64_t step) const;
  /// "cosine from 0.001 to 0 in 100 steps, the first 10 of them warm-up".
  std::string str() const;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_LEARNINGRATE_H
