//===- CheckpointedRun.h - Saving and resuming a training run -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_CHECKPOINTEDRUN_H
#define DTC_RUNTIME_TRAIN_CHECKPOINTEDRUN_H

#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/CheckpointSaver.h"
#include "runtime/data/DataSource.h"
#include "runtime/executor/Session.h"
#include "runtime/metrics/StepMetrics.h"
#include "runtime/train/LearningRate.h"
#include "runtime/train/StepOutcomes.h"
#include "runtime/train/TrainOptions.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace dtc::runtime {

/// The checkpoints of one call of train(): the one that it goes on from, and those that it writes.
class CheckpointedRun {
public:
  using Note = std::function<void(const std::string &)>;

  /// Opens the folder and, with TrainOptions::resume, the newest checkpoint that is complete; notes
  /// say which were refused and why. Null where the options name no folder. Without resume, a
  /// folder that has checkpoints is an error, and so is a plan that does not train. `steps`: those
  /// of the run, where they are known. If it resumes after all of them, the folder is only read: it
  /// may be read-only, or belong to another run.
  static Expected<std::unique_ptr<CheckpointedRun>> open(const plan::Plan &plan,
                                                         const TrainOptions &options,
                                                         std::optional<int64_t> steps, Note note);

  /// Where the run begins, in batches of its plan: zeros for one that starts anew.
  const RunPosition &begin() const { return start; }
  /// Whether there are steps to do, for a run of `steps` steps in all.
  bool hasSteps(int64_t steps) const { return start.step < steps; }
  /// Whether the run that load() goes on from did something else to gradients and parameters.
  bool changesUpdates() const {
    return source && source->manifest().identity.updateSettings != identity.updateSettings;
  }
  /// The last step after which nothing is applied that was sent before: that of a run with another
  /// schedule of outer steps.
  int64_t outerForgotten() const { return changesUpdates() ? start.step : start.outerForgotten; }

  /// Compares the run with the one that was saved, and sets the states that the checkpoint has; the
  /// others are for Session::initializeOtherStates(). Without steps to do, only the parameters must
  /// be the same.
  MaybeError load(Session &session, const RunIdentity &identity,
                  const LearningRateSchedule &schedule, bool hasSteps);
  /// Takes the memory for the copy of the states. Of a run that has steps; another one saves
  /// nothing.
  MaybeError prepareToSave(Session &session);

  /// "checkpoints: ckpt, every 5 steps, the newest 2 are kept; 1.4 GiB each, ...".
  std::string describe() const;

  /// Whether a checkpoint is due after the step.
  Expected<bool> isDue(int64_t step) const;
  /// Whether that goes by the clock, and whether the time has come by the one of this process.
  bool goesByClock() const { return options.checkpointEvery.steps == 0; }
  bool isDueByClock() const;
  /// Copies the states after a step, and puts into its metrics how long that took.
  MaybeError copy(StepMetrics &metrics);
  /// Begins to write what was copied, after the step and the batches that have been used up.
  void write(int64_t step, const StepOutcomes &outcomes);
  /// The error of a checkpoint that has been written in the meantime.
  MaybeError poll() { return saver->poll(); }
  /// Whether poll() asks the other processes.
  bool pollAgrees() const { return saver->isUnderWay(); }
  /// Waits for the last one. Returns its path, empty if the run has written none.
  Expected<std::string> finish();

  /// The number of the first batch of a step, from 0.
  int64_t firstBatch(int64_t step) const {
    return start.nextBatch + (step - 1 - start.step) * batches;
  }
  /// The last step that was copied, or with which the run began.
  int64_t lastStep() const { return copiedStep; }
  bool hasFailed() const { return saver && saver->hasFailed(); }

private:
  using Clock = std::chrono::steady_clock;

  CheckpointedRun(CheckpointFolder folder, const TrainOptions &options, Note note)
      : folder(std::move(folder)), options(options), note(std::move(note)),
        batches(options.batches) {}
  static Expected<CheckpointFolder> openFolder(const TrainOptions &options,
                                               std::optional<int64_t> steps);
  /// The flag that messages name.
  const char *flag() const { return options.needsCheckpoint ? "--checkpoint" : "--resume"; }
  MaybeError checkMemory(const Session &session) const;
  MaybeError findNewest();
  MaybeError followFirst();
  void findStart(int64_t samples);

  CheckpointFolder folder;
  const TrainOptions &options;
  Note note;
  int64_t batches; // of a step
  std::optional<Checkpoint> source;
  RunPosition start;
  std::string positionNote; // what does not come out even; empty: all does
  RunIdentity identity;
  std::string learningRate;
  int64_t copiedStep = 0;
  Clock::time_point lastBegun = Clock::now();
  std::unique_ptr<CheckpointSaver> saver; // last: it uses the others
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_CHECKPOINTEDRUN_H
