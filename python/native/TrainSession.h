//===- TrainSession.h - Training steps in the process of the caller -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PYTHON_NATIVE_TRAINSESSION_H
#define DTC_PYTHON_NATIVE_TRAINSESSION_H

#include "plan/plan.pb.h"
#include "python/native/LaunchedProcesses.h"
#include "runtime/backends/Kernel.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/data/DataSource.h"
#include "runtime/data/WeightsFileShards.h"
#include "runtime/executor/Session.h"
#include "runtime/metrics/StepMetrics.h"
#include "runtime/train/MetricsSinks.h"
#include "runtime/train/StepOutcomes.h"
#include "runtime/train/TrainOptions.h"
#include "support/Error.h"
#include "support/Tensor.h"
#include "tools/dtc-run/Devices.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dtc::python {

/// Tensors of the caller by name, which stay for the call.
using Tensors = std::map<std::string, runtime::TensorInMemory>;

/// Flags of dtc-run about devices, without dashes, and their values: {"fabric", "nccl"}.
using DeviceFlagValues = std::vector<std::pair<std::string, std::string>>;

struct TrainSettings {
  int threads = 0;               // of the host for each device; 0: its cores divided by the devices
  uint64_t seed = 0;             // of initial values and random masks
  int64_t batches = 1;           // of a step, over which gradients are summed
  bool givesPartOfBatch = false; // each process gives an equal part of the samples of each batch
  DeviceFlagValues deviceFlags;  // those that are not given are as in dtc-run
  // The places to which metrics go, as of dtc-run --metrics, --tensorboard and --metrics-port;
  // empty: none.
  std::string metricsPath, tensorBoardPath, metricsAddress;
};

/// Reads them as dtc-run does. The error names the flag.
Expected<DeviceSelection> readDeviceFlags(const DeviceFlagValues &flags);

/// The inputs, the states and the steps of a plan on GPUs or on virtual devices of the CPU, in this
/// process or in all that a launcher has started. The caller gives the batches and the learning
/// rates, which dtc-run takes from files and flags. All else is done as dtc-run does, so that a
/// step has its bits. Thread-safe: one call at a time does its work.
///
/// Of several processes all make the same calls in the same order, with the same arguments. A call
/// that is not the same in all, or that one of them refuses, is an error in all, and does nothing.
class TrainSession {
public:
  /// Prepares the plan and allocates its memory.
  static Expected<std::unique_ptr<TrainSession>> open(const std::shared_ptr<const plan::Plan> &plan,
                                                      const TrainSettings &settings);
  /// What the plan runs on: "cpu" or "cuda".
  std::string device() const { return backend->name(); }
  /// Frees the devices and their memory. Any later call is an error.
  void close();

  /// The number of this process, and how many there are.
  int64_t process() const { return joined.processes.process(); }
  int64_t numProcesses() const { return joined.processes.count(); }
  /// Returns when all processes have made the call of this name. `error`: of this one; empty for
  /// none. That of any is that of all.
  MaybeError meet(const std::string &call, const std::string &error);

  /// Set parameters and their master weights; see loadWeights() of runtime/train/Weights.h. They
  /// return notes for the user. Messages call the weights in memory `name`.
  Expected<std::vector<std::string>> loadWeights(const std::string &name, Tensors weights);
  Expected<std::vector<std::string>> loadWeights(const std::vector<std::string> &paths);

  /// A train step at the learning rate, or, of a plan that does not train, its program once. There
  /// are as many batches as the session has in a step. Each has a tensor for each data input, whose
  /// first dimension is all samples of the batch, over all devices, or the part of this process:
  /// the batch has the parts in the order of the processes. Other tensors are not looked at.
  /// Integers become i32, floats the type of the input.
  Expected<runtime::StepMetrics> step(const std::vector<Tensors> &batches, double learningRate);
  /// The loss of a batch, without dropout and without an update.
  Expected<double> evaluate(const Tensors &batch);
  /// The steps that are done, skipped ones included.
  int64_t stepsDone() {
    std::lock_guard lock(mutex);
    return position.step;
  }

  /// The parameters, under their own names and as tensors of files: master weights where there are
  /// some.
  Expected<std::map<std::string, HostTensor>> weights();
  MaybeError saveWeights(const std::string &path);

  /// Writes a checkpoint that dtc-run --resume can go on from into the folder, and keeps the newest
  /// `keep` there (0: all). Returns its path. A folder with checkpoints that this session has
  /// neither written nor read is an error.
  Expected<std::string> saveCheckpoint(const std::string &folder, int64_t keep);
  /// Goes on from a checkpoint, or from the newest complete one of a folder. `allowedChanges`: see
  /// runtime/checkpoint/RunIdentity.h. Returns notes.
  Expected<std::vector<std::string>> loadCheckpoint(const std::string &path,
                                                    const std::set<std::string> &allowedChanges);

private:
  explicit TrainSession(const TrainSettings &settings)
      : seed(settings.seed), batches(settings.batches),
        givesPartOfBatch(settings.givesPartOfBatch) {}
  MaybeError writeMetrics(const runtime::StepMetrics &metrics);
  MaybeError openDevices(const DeviceSelection &wanted, runtime::TrainOptions &options);
  MaybeError checkOpen() const;
  MaybeError begin();
  MaybeError initialize();
  Expected<std::vector<std::string>> afterLoading(Expected<std::vector<std::string>> notes);
  bool hasParts() const { return givesPartOfBatch && joined.processes.areSeveral(); }
  MaybeError checkParts(const plan::Plan &plan) const;
  Alike describeAlike(const Tensors &tensors) const;
  Alike describeBatch(const Tensors &tensors) const;
  Expected<runtime::Batch> readBatch(const plan::Plan &plan, const Tensors &tensors) const;
  MaybeError gatherParts(const plan::Plan &plan, runtime::Batch &batch) const;
  MaybeError setInputs(runtime::Session &of, runtime::Batch batch, int64_t number = 0) const;
  MaybeError giveBatches(const std::vector<Tensors> &given, double learningRate);
  Expected<runtime::CheckpointFolder> openToSave(const std::string &path);
  Expected<runtime::Checkpoint> openToLoad(const std::string &path,
                                           std::vector<std::string> &notes);
  Expected<runtime::StepMetrics> metricsOf(double seconds, double learningRate);

  JoinedProcesses joined;
  std::shared_ptr<const runtime::Backend> backend;
  std::unique_ptr<runtime::Session> session; // null: closed
  uint64_t seed = 0;
  int64_t batches = 1;                           // of a step
  bool givesPartOfBatch = false;                 // see TrainSettings
  std::optional<runtime::LossScaling> lossScale; // none if the plan does not scale its loss
  runtime::RunPosition position;
  runtime::StepOutcomes outcomes;
  runtime::MetricsSinks metricsSinks;
  bool hasBegun = false;            // the states have values
  bool outerIsStale = true;         // the outer parameters are not those that were loaded last
  std::set<std::string> ownFolders; // of checkpoints that were written or read
  std::string lastRate;             // of the last step, for people
  std::mutex mutex;
};

} // namespace dtc::python

#endif // DTC_PYTHON_NATIVE_TRAINSESSION_H
