//===- StepState.h - The step state of a plan, on the host ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The step updates its state itself; the host gives it the values that a run starts with and reads
// what has become of it, for metrics. Which states there are is said in plan.proto.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_STEPSTATE_H
#define DTC_RUNTIME_TRAIN_STEPSTATE_H

#include "runtime/executor/Session.h"
#include "runtime/train/TrainOptions.h"
#include "support/Error.h"

#include <cstdint>
#include <optional>

namespace dtc::runtime {

/// The counters of a run; zeros for a plan that does not train.
struct StepState {
  /// Where replicas decide for themselves, each is the sum of these replicas' counters.
  int64_t appliedSteps = 0;
  int64_t skippedSteps = 0;
  std::optional<double> lossScale; // of the next step, if the plan scales its loss; the lowest
  int64_t replicas = 1;

  int64_t stepsDone() const { return (appliedSteps + skippedSteps) / replicas; }
};

/// Sets what the options decide: the loss scale, if the plan has one, and the key of random masks,
/// if it draws some. `nextBatch` is the number of the first batch that the run takes. The states
/// have initial values.
MaybeError startStepState(Session &session, const std::optional<LossScaling> &scaling,
                          uint64_t seed, int64_t nextBatch);

/// Reads the counters after a step, or before the first: those of the replicas that
/// Session::getStateOfReplicas() gives; `ofAll`: those of Session::getStateOfAllReplicas().
Expected<StepState> readStepState(const Session &session, bool ofAll = false);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_STEPSTATE_H
