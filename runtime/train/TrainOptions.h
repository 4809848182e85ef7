//===- TrainOptions.h - Options of training -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_TRAINOPTIONS_H
#define DTC_RUNTIME_TRAIN_TRAINOPTIONS_H

#include "runtime/data/Sampling.h"
#include "runtime/executor/Injection.h"
#include "runtime/executor/RunWatch.h"
#include "runtime/fabrics/processes/Processes.h"
#include "runtime/train/LearningRate.h"
#include "support/Error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dtc::runtime {

/// The steps of a training run that says nothing else.
inline constexpr int64_t kDefaultTrainSteps = 100;

/// The interval between checkpoints: a number of steps, or a number of seconds since the last one
/// was begun, rounded up to the end of a step. One of the two is 0.
struct CheckpointInterval {
  int64_t steps = 0;
  double seconds = 600;
};

/// "5" (steps), "30s", "10min", "2h".
Expected<CheckpointInterval> parseCheckpointInterval(std::string_view text);
/// "5 steps", "10m00s".
std::string formatInterval(const CheckpointInterval &interval);

/// The request to dtc-run. Empty paths mean that there is no such file.
struct TrainOptions {
  std::string planPath;
  std::vector<std::string> dataPaths; // the files of one data set
  std::string clientsPath;            // instead: clients with data of their own; see ClientsFile.h
  std::vector<std::string> initPaths; // weights to start from; see loadWeights
  bool allowUnusedAdapters = false;   // among those; see loadWeights
  std::vector<std::string> evalDataPaths; // held-out data
  std::string savePath;                   // where the weights go at the end
  std::string saveAdaptersPath;           // where the adapters alone go; see saveAdapters
  std::string saveMergedPath;             // where the weights with the adapters added to them go
  std::string metricsPath;                // a JSON object a step
  std::string tensorBoardPath;            // a folder for TensorBoard; see TensorBoardFile
  std::string metricsAddress;             // for Prometheus; see MetricsServer::open()
  std::string checkpointPath;             // a folder of checkpoints; see CheckpointedRun.h
  std::string tracePath; // what the devices did when, in the last steps; see ChromeTrace.h

  bool writesMetrics() const {
    return !metricsPath.empty() || !tensorBoardPath.empty() || !metricsAddress.empty();
  }

  /// Of checkpoints: how often, how many of them are kept (0: all), whether to go on from the
  /// newest, and which changes of the run are allowed then; see allowedChanges().
  CheckpointInterval checkpointEvery;
  int64_t keepCheckpoints = 2;
  bool resume = false;
  /// Without a checkpoint to go on from the run ends with an error, instead of starting anew.
  bool needsCheckpoint = false;
  std::set<std::string> allowedChanges = {};

  /// Batches per step, over which gradients are summed; see SessionOptions.
  int64_t batches = 1;
  /// Absent: defaultTrainSteps of training, one of a plan that only computes.
  std::optional<int64_t> steps;
  /// Instead of steps: passes over the data; the run takes as many samples as these have.
  std::optional<double> epochs;
  /// Of evaluations on held-out data: the steps from one to the next (absent: a tenth of all), and
  /// how many batches each takes (absent: all that the data have).
  std::optional<int64_t> evalEvery;
  std::optional<int64_t> evalBatches;
  /// The flag that gives evalDataPaths, in messages.
  const char *evalDataFlag = "--eval-data";
  /// Of a plan whose replicas differ: the steps from one outer step to the next.
  std::optional<int64_t> outerEvery;
  /// Of clients: instead, passes over the data of each; and instead of steps the rounds of the run.
  std::optional<double> localEpochs;
  std::optional<int64_t> rounds;
  /// For clients whose plan adds noise: the largest norm of a client's change, and the standard
  /// deviation of the noise in these norms.
  std::optional<double> clientClip, noiseMultiplier;
  double learningRate = 1e-3;
  /// Absent: 0. Not for a constant rate.
  std::optional<double> minLearningRate;
  /// Absent: a tenth of the steps, at most 100.
  std::optional<int64_t> warmupSteps;
  /// Instead of warmupSteps: the part of the steps, rounded up.
  std::optional<double> warmupRatio;
  LearningRateDecay decay = LearningRateDecay::Cosine;
  uint64_t seed = 0;
  /// Of the batches to train on.
  Sampling sampling = Sampling::Random;

  /// Of plans that scale their loss; see LossScaling. Absent: 65536 and 2000.
  std::optional<double> lossScale;
  std::optional<int64_t> lossScaleGrowthInterval;

  /// For the kernels of each device: one number for all processes, or one for each process. Empty:
  /// the cores of the machine divided by the devices, at least 1.
  std::vector<int> threadsPerDevice;
  bool profile = false;
  bool allowNonfinite = false;
  /// See SessionOptions; steps are those of the run.
  std::vector<Injection> injections = {};
  std::vector<InjectedDelay> delays = {};
  int64_t logEvery = 1;
  /// At least 1, if there is a tracePath.
  size_t traceSteps = 3;
  /// See SessionOptions.
  double stallTimeout = 60;
  bool marksCommunication = true;
  /// See SessionOptions.
  std::optional<bool> graphs = {};
  /// Those that run the plan together.
  Processes processes = {};
  /// Whether the output is a terminal, where the stream does not tell.
  std::optional<bool> outputIsTerminal = {};
  std::function<void(const Error &)> onHang = nullptr;
  /// Called after the first step of the process, with its number.
  std::function<void(int64_t)> onFirstStep = nullptr;
  std::shared_ptr<RunWatch> watch = nullptr;
  /// The network of one process; null: that of the processes.
  OpenFabric openFabric = nullptr;
};

/// The schedule of a run of `steps` steps. An error names the flag that does not fit, or that
/// contradicts another.
Expected<LearningRateSchedule> learningRateSchedule(const TrainOptions &options, int64_t steps);

/// The choices of a run about the factor that keeps small gradients within the range of a 16-bit
/// type. The step updates it: see dtc-build-train-step.
struct LossScaling {
  static constexpr double kLowest = 1;
  static constexpr double kHighest = 16777216; // 2^24

  double initial = 65536;        // from kLowest to kHighest
  int64_t growthInterval = 2000; // consecutive steps that are not skipped and double it; 1 or more
};

/// How the loss is scaled; nullopt for a plan that does not scale it. An error names the flag.
Expected<std::optional<LossScaling>> lossScaling(const TrainOptions &options, bool planScales);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_TRAINOPTIONS_H
