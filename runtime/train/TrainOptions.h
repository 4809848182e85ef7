//===- TrainOptions.h - What dtc-run is asked to do -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_TRAINOPTIONS_H
#define DTC_RUNTIME_TRAIN_TRAINOPTIONS_H

#include "runtime/support/Error.h"
#include "runtime/train/LearningRate.h"
#include "runtime/train/LossScale.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace dtc::runtime {

/// What dtc-run is asked to do. Empty paths mean that there is no such file.
struct TrainOptions {
  std::string planPath;
  std::string dataPath;
  std::string initPath;    // weights to start from
  std::string savePath;    // where the weights go at the end
  std::string metricsPath; // a JSON object a step
  std::string tracePath;   // what the devices did when, in the last steps; see ChromeTrace.h

  /// Absent: 100 steps of training, one of a plan that only computes.
  std::optional<int64_t> steps;
  double learningRate = 1e-3;
  /// Absent: 0. Not for a constant rate.
  std::optional<double> minLearningRate;
  /// Absent: a tenth of the steps, at most 100.
  std::optional<int64_t> warmupSteps;
  LearningRateDecay decay = LearningRateDecay::Cosine;
  uint64_t seed = 0;

  /// Of plans that scale their loss; see LossScale.h. Absent: 65536 and 2000.
  std::optional<double> lossScale;
  std::optional<int64_t> lossScaleGrowthInterval;

  /// 0: the cores of the machine divided by the devices, at least 1.
  int threadsPerDevice = 0;
  bool profile = false;
  bool allowNonfinite = false;
  int64_t logEvery = 1;
  /// At least 1, if there is a tracePath.
  size_t traceSteps = 3;
  /// See SessionOptions.
  double stallTimeout = 60;
  std::function<void(const Error &)> onHang = nullptr;
};

/// The schedule of a run of so many steps. An error names the flag that does not fit, or that
/// contradicts another.
Expected<LearningRateSchedule> learningRateSchedule(const TrainOptions &options, int64_t steps);

/// How the loss is scaled; nullopt for a plan that does not scale it. An error names the flag.
Expected<std::optional<LossScale>> initialLossScale(const TrainOptions &options, bool planScales);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_TRAINOPTIONS_H
