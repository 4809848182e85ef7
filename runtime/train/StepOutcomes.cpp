//===- StepOutcomes.cpp - Applied and skipped steps of a run --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/StepOutcomes.h"

#include <cmath>
#include <fmt/format.h>

namespace dtc::runtime {

void StepOutcomes::addTo(RunPosition &position) const {
  position.skippedInARow = skipped.lastInARow();
  position.lastFiniteStep = lastFinite;
}

void StepOutcomes::stepDone(StepMetrics &metrics, const StepState &after) {
  wasSkipped = after.skippedSteps > state.skippedSteps;
  lossScale = state.lossScale;
  state = after;
  skipped.stepDone(wasSkipped, lossScale && *lossScale > LossScaling::kLowest);
  metrics.lossScale = lossScale;
  metrics.skippedSteps = after.skippedSteps;
  if (std::isfinite(metrics.loss.value_or(0)) && std::isfinite(metrics.gradNorm.value_or(0)))
    lastFinite = metrics.step;
}

MaybeError StepOutcomes::check(const StepMetrics &metrics, double learningRate) const {
  if (wasSkipped) {
    if (!skipped.hopeless())
      return std::nullopt;
    std::string loss = metrics.loss ? fmt::format(" and the loss is {}", *metrics.loss) : "";
    std::string atMinimum, remedy;
    if (lossScale) {
      atMinimum =
          fmt::format(" although the loss scale is at its minimum of {}", LossScaling::kLowest);
      remedy = ", compile with --dtype bf16, which has the range of f32";
    }
    return Error{
        fmt::format("the norm of the gradient is {}{} at step {}, and {} consecutive steps "
                    "were skipped because of such gradients{}; lower the learning rate "
                    "(--lr {}), look for values in the data or the initial parameters that "
                    "are not finite or very large{}, or pass --allow-nonfinite to go on",
                    metrics.gradNorm.value_or(NAN), loss, metrics.step, SkippedSteps::mostInARow,
                    atMinimum, learningRate, remedy)};
  }
  if (!metrics.loss || std::isfinite(*metrics.loss))
    return std::nullopt;
  return Error{fmt::format("the loss is {} at step {}; lower the learning rate (--lr {}), or pass "
                           "--allow-nonfinite to go on",
                           *metrics.loss, metrics.step, learningRate)};
}

} // namespace dtc::runtime
