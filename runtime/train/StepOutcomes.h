//===- StepOutcomes.h - What becomes of a run's steps ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_STEPOUTCOMES_H
#define DTC_RUNTIME_TRAIN_STEPOUTCOMES_H

#include "runtime/checkpoint/Manifest.h"
#include "runtime/train/LossScale.h"
#include "runtime/train/Metrics.h"
#include "runtime/train/SkippedSteps.h"
#include "support/Error.h"

#include <cstdint>
#include <optional>

namespace dtc::runtime {

/// Follows which steps a program skipped, and the loss scale with them. Its optimizers skip a step,
/// on all devices, whose gradient has no finite norm.
class StepOutcomes {
public:
  StepOutcomes() = default;
  /// `lossScale` is absent where the plan does not scale its loss.
  explicit StepOutcomes(std::optional<LossScale> lossScale) : scale(lossScale) {}

  /// Of a run that goes on after the position of another. The scale is that of the position, where
  /// both have one.
  StepOutcomes(std::optional<LossScale> lossScale, const RunPosition &position);
  /// Puts what a run needs to go on into its position.
  void addTo(RunPosition &position) const;

  /// The scale for the next step, if the plan scales its loss.
  std::optional<double> lossScale() const;
  int64_t skippedSteps() const { return skipped.total(); }
  /// The last step whose loss and gradient were finite, 0 if none were: the weights that it began
  /// with were.
  int64_t lastFiniteStep() const { return lastFinite; }

  /// Takes in a step that ran with lossScale(), and completes its metrics.
  void stepDone(StepMetrics &metrics);

  /// Why a run should not go on after this step, the last one that stepDone() got: too many were
  /// skipped in a row, or one was not although its loss is not finite. `learningRate` is that of
  /// --lr, for the message.
  MaybeError check(const StepMetrics &metrics, double learningRate) const;

private:
  std::optional<LossScale> scale;
  SkippedSteps skipped;
  int64_t lastFinite = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_STEPOUTCOMES_H
