//===- TrainLoop.h - Runs a plan over a data set --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_TRAINLOOP_H
#define DTC_RUNTIME_TRAIN_TRAINLOOP_H

#include "runtime/backends/Kernel.h"
#include "runtime/train/TrainOptions.h"
#include "support/Error.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>

namespace dtc::runtime {

/// How a run ended.
struct TrainResult {
  int64_t stepsDone = 0; // those that were skipped included
  int64_t stepsSkipped = 0;
  bool interrupted = false;
  std::optional<double> lastLoss;
};

/// Loads the plan, the data and the weights, runs the steps and saves. Everything that can be found
/// wrong before the first step is. Results go to `out`, notes to `notes`. When `stop` becomes true,
/// the run ends after the steps that have been started, two at most, and saves; before the first
/// one there is nothing to save.
///
/// A step is started before the one before is taken in, unless that is over already, as on a CPU,
/// or is followed by an evaluation or a checkpoint.
///
/// An error that comes later saves the states of the last complete step, unless it has left them
/// incomplete. The error says what became of them.
///
/// A step whose gradient has no finite norm was skipped by the program, which counts it in its step
/// state. SkippedSteps::mostInARow of them in succession are an error; so is a loss that is not
/// finite in a step that was not skipped. Both name the step, and nothing is saved then, nor is
/// anything told of a step that had been started. Neither is an error with
/// TrainOptions::allowNonfinite. Weights that are not finite at the end are an error, and are never
/// saved.
Expected<TrainResult> train(const TrainOptions &options, std::shared_ptr<const Backend> backend,
                            std::FILE *out, std::FILE *notes, const std::atomic<bool> &stop);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_TRAINLOOP_H
