//===- TrainLoop.h - Runs a plan over a data set --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_TRAINLOOP_H
#define DTC_RUNTIME_TRAIN_TRAINLOOP_H

#include "runtime/backends/Kernel.h"
#include "runtime/support/Error.h"
#include "runtime/train/LearningRate.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
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
  double minLearningRate = 0;
  /// Absent: a tenth of the steps, at most 100.
  std::optional<int64_t> warmupSteps;
  LearningRateDecay decay = LearningRateDecay::Cosine;
  uint64_t seed = 0;

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

/// How a run ended.
struct TrainResult {
  int64_t stepsDone = 0;
  bool interrupted = false;
  std::optional<double> lastLoss;
};

/// Loads the plan, the data and the weights, runs the steps and saves. Everything that can be found
/// wrong before the first step is. Results go to `out`, notes to `notes`. When `stop` becomes true,
/// the run ends after the current step and saves. A loss that is not finite is an error that names
/// the step, unless allowed; nothing is saved then.
Expected<TrainResult> train(const TrainOptions &options, std::shared_ptr<const Backend> backend,
                            std::FILE *out, std::FILE *notes, const std::atomic<bool> &stop);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_TRAINLOOP_H
