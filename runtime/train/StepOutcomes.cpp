//===- StepOutcomes.cpp - What becomes of a run's steps -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/StepOutcomes.h"

#include <cmath>
#include <fmt/format.h>

namespace dtc::runtime {

/// Only a plan that trains has a learning rate, and updates that it can skip.
static bool wasSkipped(const StepMetrics &metrics) {
  return metrics.learningRate && metrics.gradNorm && !std::isfinite(*metrics.gradNorm);
}

StepOutcomes::StepOutcomes(std::optional<LossScale> lossScale, const RunPosition &position)
    : scale(lossScale), skipped(position.skippedSteps, position.skippedInARow),
      lastFinite(position.lastFiniteStep) {
  if (scale && position.lossScale)
    scale = LossScale(*position.lossScale, scale->getGrowthInterval(), position.goodSteps);
}

void StepOutcomes::addTo(RunPosition &position) const {
  position.skippedSteps = skipped.total();
  position.skippedInARow = skipped.lastInARow();
  position.lastFiniteStep = lastFinite;
  position.lossScale = lossScale();
  position.goodSteps = scale ? scale->getGoodSteps() : 0;
}

std::optional<double> StepOutcomes::lossScale() const {
  return scale ? std::optional<double>(scale->value()) : std::nullopt;
}

void StepOutcomes::stepDone(StepMetrics &metrics) {
  metrics.lossScale = lossScale();
  skipped.stepDone(wasSkipped(metrics), scale && !scale->isLowest());
  metrics.skippedSteps = skipped.total();
  if (std::isfinite(metrics.loss.value_or(0)) && std::isfinite(metrics.gradNorm.value_or(0)))
    lastFinite = metrics.step;
  if (scale)
    scale->stepDone(wasSkipped(metrics));
}

MaybeError StepOutcomes::check(const StepMetrics &metrics, double learningRate) const {
  if (wasSkipped(metrics)) {
    if (!skipped.hopeless())
      return std::nullopt;
    std::string loss = metrics.loss ? fmt::format(" and the loss is {}", *metrics.loss) : "";
    std::string atMinimum, remedy;
    if (scale) {
      atMinimum =
          fmt::format(" although the loss scale is at its minimum of {}", LossScale::lowest);
      remedy = ", compile with --dtype bf16, which has the range of f32";
    }
    return Error{fmt::format("the norm of the gradient is {}{} at step {}, and {} steps in a row "
                             "were skipped because of such gradients{}; lower the learning rate "
                             "(--lr {}), look for values in the data or the initial weights that "
                             "are not finite or very large{}, or pass --allow-nonfinite to go on",
                             *metrics.gradNorm, loss, metrics.step, SkippedSteps::mostInARow,
                             atMinimum, learningRate, remedy)};
  }
  if (!metrics.loss || std::isfinite(*metrics.loss))
    return std::nullopt;
  return Error{fmt::format("the loss is {} at step {}; lower the learning rate (--lr {}), or pass "
                           "--allow-nonfinite to go on",
                           *metrics.loss, metrics.step, learningRate)};
}

} // namespace dtc::runtime
