//===- StepOutcomes.h - Applied and skipped steps of a run ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_STEPOUTCOMES_H
#define DTC_RUNTIME_TRAIN_STEPOUTCOMES_H

#include "runtime/checkpoint/Manifest.h"
#include "runtime/metrics/StepMetrics.h"
#include "runtime/train/SkippedSteps.h"
#include "runtime/train/StepState.h"
#include "support/Error.h"

#include <cstdint>
#include <optional>

namespace dtc::runtime {

/// Follows which steps a program skipped, by its step state. Its optimizers skip a step, on all
/// devices, whose gradient has no finite norm; of replicas that differ each decides for itself, and
/// a step counts as skipped where one of them has skipped it.
class StepOutcomes {
public:
  StepOutcomes() = default;
  /// Of a run whose step state is `state` before its next step, which goes on after `position`.
  StepOutcomes(const StepState &state, const RunPosition &position)
      : state(state), skipped(position.skippedInARow), lastFinite(position.lastFiniteStep) {}

  /// Puts what a run needs to go on into its position, besides the states.
  void addTo(RunPosition &position) const;

  /// Where replicas decide for themselves, of all that are read together.
  int64_t skippedSteps() const { return state.skippedSteps; }
  int64_t replicas() const { return state.replicas; }
  /// The last step whose loss and gradient were finite, 0 if none were: the weights that it began
  /// with were.
  int64_t lastFiniteStep() const { return lastFinite; }

  /// Takes in a step, after which the step state is `after`, and completes its metrics.
  void stepDone(StepMetrics &metrics, const StepState &after);

  /// Why a run should not go on after this step, the last one that stepDone() got: too many were
  /// skipped in succession, or one was not although its loss is not finite. `learningRate` is that
  /// of --lr, for the message.
  MaybeError check(const StepMetrics &metrics, double learningRate) const;

private:
  StepState state; // after the last step
  bool wasSkipped = false;
  /// With which the last step ran.
  std::optional<double> lossScale;
  SkippedSteps skipped;
  int64_t lastFinite = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_STEPOUTCOMES_H
