//===- LearningRate.cpp - The learning rate over the steps ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/LearningRate.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numbers>

namespace dtc::runtime {

double LearningRateSchedule::at(int64_t step) const {
  if (step <= warmupSteps)
    return peak * static_cast<double>(step) / static_cast<double>(warmupSteps);
  if (decay == LearningRateDecay::Constant)
    return peak;
  // 0 at the first step after the warm-up, 1 at the last step.
  int64_t steps = totalSteps - warmupSteps - 1;
  double progress =
      steps > 0 ? static_cast<double>(step - warmupSteps - 1) / static_cast<double>(steps) : 0;
  progress = std::min(progress, 1.0);
  if (decay == LearningRateDecay::Linear)
    return peak + (minimum - peak) * progress;
  return minimum + 0.5 * (peak - minimum) * (1 + std::cos(std::numbers::pi * progress));
}

std::string LearningRateSchedule::str() const {
  const char *name = decay == LearningRateDecay::Constant ? "constant"
                     : decay == LearningRateDecay::Linear ? "linear"
                                                          : "cosine";
  std::string rates =
      decay == LearningRateDecay::Constant
          ? fmt::format("{} at {}", name, peak)
          : fmt::format("{} from {} to {} in {} steps", name, peak, minimum, totalSteps);
  return fmt::format("{}, the first {} of them warm-up", rates, warmupSteps);
}

} // namespace dtc::runtime
