//===- TrainOptions.cpp - Options of training -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainOptions.h"

#include "support/Format.h"
#include "support/Quantity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace dtc::runtime {

Expected<CheckpointInterval> parseCheckpointInterval(std::string_view text) {
  static constexpr Unit kUnits[] = {{"s", 1}, {"min", 60}, {"h", 3600}};
  CheckpointInterval interval{0, 0};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), interval.steps);
  if (error == std::errc() && end == text.data() + text.size() && interval.steps > 0)
    return interval;
  if (std::optional<double> seconds = parseQuantity(text, kUnits); seconds && *seconds > 0)
    return CheckpointInterval{0, *seconds};
  return Error{fmt::format("found \"{}\", expected a number of steps such as 5, or a time with s, "
                           "min or h such as 10min; more than 0",
                           text)};
}

std::string formatInterval(const CheckpointInterval &interval) {
  if (interval.steps == 0)
    return formatSeconds(interval.seconds);
  return interval.steps == 1 ? "step" : fmt::format("{} steps", interval.steps);
}

Expected<LearningRateSchedule> learningRateSchedule(const TrainOptions &options, int64_t steps) {
  int64_t warmup = options.warmupSteps.value_or(std::min<int64_t>(steps / 10, 100));
  if (options.warmupRatio) {
    if (!(*options.warmupRatio >= 0 && *options.warmupRatio <= 1))
      return Error{fmt::format("--warmup-ratio is {}, expected 0 to 1, a part of the steps",
                               *options.warmupRatio)};
    warmup = static_cast<int64_t>(std::ceil(*options.warmupRatio * static_cast<double>(steps)));
  }
  if (steps < 0)
    return Error{fmt::format("--steps is {}; expected 0 or more", steps)};
  if (warmup < 0 || warmup > steps)
    return Error{
        fmt::format("--warmup is {}; expected 0 to the {} steps of the run", warmup, steps)};
  if (!(std::isfinite(options.learningRate) && options.learningRate >= 0))
    return Error{fmt::format("--lr is {}; expected a finite number that is not negative",
                             options.learningRate)};
  if (options.minLearningRate && options.decay == LearningRateDecay::Constant)
    return Error{fmt::format("--min-lr is {}, but with --lr-schedule constant the rate does not "
                             "fall; leave one of them out",
                             *options.minLearningRate)};
  double minimum = options.minLearningRate.value_or(0);
  if (!(minimum >= 0 && minimum <= options.learningRate))
    return Error{fmt::format("--min-lr is {}; expected 0 to the learning rate of {}", minimum,
                             options.learningRate)};
  return LearningRateSchedule{options.decay, options.learningRate, minimum, warmup, steps};
}

Expected<std::optional<LossScaling>> lossScaling(const TrainOptions &options, bool planScales) {
  const char *given = options.lossScale                 ? "--loss-scale"
                      : options.lossScaleGrowthInterval ? "--loss-scale-growth-interval"
                                                        : nullptr;
  if (!planScales) {
    if (given)
      return Error{fmt::format("{}: the plan does not scale its loss; compile with --dtype f16 for "
                               "one that does, or leave the flag out",
                               given)};
    return std::optional<LossScaling>();
  }
  LossScaling scaling;
  scaling.initial = options.lossScale.value_or(scaling.initial);
  if (!(scaling.initial >= LossScaling::kLowest && scaling.initial <= LossScaling::kHighest))
    return Error{fmt::format("--loss-scale is {}; expected a number from {} to {}", scaling.initial,
                             LossScaling::kLowest, LossScaling::kHighest)};
  scaling.growthInterval = options.lossScaleGrowthInterval.value_or(scaling.growthInterval);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (scaling.growthInterval < 1 || scaling.growthInterval > kMost)
    return Error{fmt::format("--loss-scale-growth-interval is {}; expected 1 to {}",
                             scaling.growthInterval, kMost)};
  return std::optional<LossScaling>(scaling);
}

} // namespace dtc::runtime
