//===- Metrics.h - What is known after a step -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_METRICS_H
#define DTC_RUNTIME_TRAIN_METRICS_H

#include "support/Error.h"
#include "support/LockedFile.h"

#include <cstdint>
#include <optional>
#include <string>

namespace dtc::runtime {

/// One step's numbers; a value is absent if the plan does not compute it.
struct StepMetrics {
  int64_t step = 0; // 1 is the first
  std::optional<double> loss;
  std::optional<double> gradNorm;
  std::optional<double> learningRate;
  double seconds = 0;
  double tokensPerSecond = 0;
  uint64_t peakBytes = 0;
  int64_t skippedSteps = 0;        // up to this one, this one included
  std::optional<double> evalLoss;  // on held-out data, if it was computed after the step
  std::optional<double> lossScale; // of the step, if the plan scales its loss
  /// If a checkpoint was begun after the step: how long training waited for the one before to be
  /// written, and for the copy of the states.
  std::optional<double> checkpointWaitSeconds, checkpointCopySeconds;
};

/// The metrics as one line of JSON without its end. Absent and non-finite numbers are null; only a
/// plan that scales its loss has a "loss_scale", only a step after which there was an evaluation an
/// "eval_loss", only one after which a checkpoint was begun a "checkpoint_wait_seconds" and a
/// "checkpoint_copy_seconds".
std::string toJson(const StepMetrics &metrics);

/// Writes one JSON object a line. Every line reaches the file whole, when it is written.
class MetricsWriter {
public:
  /// Keeps other runs from writing to the file, and leaves what an earlier one wrote until begin().
  /// The error begins with the path.
  static Expected<MetricsWriter> open(const std::string &path);

  /// Removes from the file the lines of steps after `step`, and all that follows the first of them
  /// or a line that is none of metrics, unless that was done before. 0 empties the file.
  MaybeError begin(int64_t step = 0);
  /// After begin().
  MaybeError write(const StepMetrics &metrics);

private:
  MetricsWriter(LockedFile file, std::string path) : file(std::move(file)), path(std::move(path)) {}

  LockedFile file;
  std::string path;
  bool hasBegun = false;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_METRICS_H
