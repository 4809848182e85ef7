//===- TrainingRun.h - One call of train() ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_TRAININGRUN_H
#define DTC_RUNTIME_TRAIN_TRAININGRUN_H

#include "plan/PlanTypes.h"
#include "runtime/data/BatchLoader.h"
#include "runtime/data/DataSource.h"
#include "runtime/executor/Session.h"
#include "runtime/train/CheckpointedRun.h"
#include "runtime/train/ClientTraining.h"
#include "runtime/train/Evaluation.h"
#include "runtime/train/MetricsSinks.h"
#include "runtime/train/OuterSteps.h"
#include "runtime/train/ProgressReport.h"
#include "runtime/train/SavedFiles.h"
#include "runtime/train/StepAgreement.h"
#include "runtime/train/StepOutcomes.h"
#include "runtime/train/StepState.h"
#include "runtime/train/TrainLoop.h"
#include "support/Print.h"
#include "support/Printable.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtc::runtime {

/// One call of train(). StartTraining.cpp has the work before the first step, EndTraining.cpp the
/// work after the last one.
class TrainingRun {
public:
  TrainingRun(const TrainOptions &options, std::FILE *out, std::FILE *notes,
              const std::atomic<bool> &stop)
      : options(options), out(out), notes(notes), stop(stop) {}

  Expected<TrainResult> run(std::shared_ptr<const Backend> backend);

private:
  MaybeError prepare(std::shared_ptr<const Backend> backend);
  int64_t defaultSteps() const;
  int64_t stepsOfEpochs() const;
  MaybeError openCheckpoints();
  MaybeError openData();
  Expected<std::unique_ptr<DataSource>> openSource(const std::vector<DataInput> &inputs);
  Expected<std::unique_ptr<DataSource>> openClients(const std::vector<DataInput> &inputs);
  MaybeError checkClients() const;
  MaybeError checkClientNoise() const;
  std::optional<ClientNoise> clientNoise() const;
  std::string describeData() const {
    return options.clientsPath.empty() ? describeFiles(options.dataPaths) : options.clientsPath;
  }
  const char *dataFlag() const { return options.clientsPath.empty() ? "--data" : "--clients"; }
  MaybeError loadCheckpoint();
  MaybeError checkSameData() const;
  MaybeError checkOptions();
  MaybeError beginOutcomes();
  MaybeError startLoader();
  MaybeError openOuterSteps();
  bool outerStepIsDue(int64_t step) const { return outerSteps && outerSteps->isDue(step); }
  MaybeError takeOuterStep(StepMetrics &metrics, ProgressReport &report);
  MaybeError reportSkipped();
  void reportRound(const StepMetrics &metrics, ProgressReport &report);
  Expected<bool> checkData(const DataSource &source, const std::string &name);
  std::string describeEpochs() const;
  void describe() const;
  MaybeError runSteps();
  MaybeError evaluate(StepMetrics &metrics, ProgressReport &report);
  MaybeError beginMetrics();
  MaybeError takeSteps(ProgressReport &report);
  MaybeError startStep(int64_t step);
  Expected<StepMetrics> finishStep();
  MaybeError addWaits(StepMetrics &metrics);
  MaybeError reportWaits() const;
  MaybeError endStep(ProgressReport &report, bool hasFailed);
  Expected<bool> mayStart(int64_t step);
  Expected<bool> checkpointIsDue(int64_t step) const;
  bool leavesInFlight() const;
  MaybeError giveLearningRates(int64_t step);
  MaybeError giveInputs(int64_t step);
  MaybeError saveCheckpoint(MaybeError failure);
  MaybeError copyCheckpoint(StepMetrics &metrics);
  MaybeError save(MaybeError failure);
  MaybeError checkWeights() const;
  MaybeError finish();
  Expected<std::optional<double>> scalarOutput(const std::string &name) const;
  bool trains() const { return dtc::trains(*plan); }
  /// Whether it holds in some process; the same in all.
  Expected<bool> inAny(bool holds);
  /// Whether some process was asked to stop; the same in all.
  Expected<bool> stops() { return inAny(stop); }
  void noteNoLabelCounts();
  MaybeError noteFrom(const DataSource &source, const char *flag) const;
  void note(const std::string &text) const {
    printTo(notes, "note: {}\n", printableMessage(text));
    std::fflush(notes);
  }

  const TrainOptions &options;
  std::FILE *out;
  std::FILE *notes;
  const std::atomic<bool> &stop;

  std::shared_ptr<const plan::Plan> plan;
  std::unique_ptr<Session> session;
  std::unique_ptr<OuterSteps> outerSteps;       // null if replicas do not differ
  std::unique_ptr<StepAgreement> beside;        // null if steps wait for other processes
  std::unique_ptr<DataSource> data;             // null if the plan needs none
  const ClientsSource *clientsData = nullptr;   // the data, if they are those of clients
  std::unique_ptr<ClientTraining> clients;      // null if replicas train for none
  std::unique_ptr<BatchLoader> loader;          // of the data
  std::unique_ptr<Evaluation> evaluation;       // null if nobody asked for it
  std::unique_ptr<CheckpointedRun> checkpoints; // null likewise
  RunPosition begin;                            // of this process's part of the run
  SavedFiles savedFiles;
  MetricsSinks metricsSinks;
  LearningRateSchedule schedule;
  std::optional<LossScaling> lossScale; // none if the plan does not scale its loss
  StepOutcomes outcomes;
  bool saidNoLabelCounts = false;
  int64_t steps = 0;
  int64_t outerEvery = 0;   // steps from one outer step to the next; 0: not known
  int64_t unitsPerStep = 0; // tokens or samples
  std::string unit = "steps";
  TrainResult result;
  struct StartedStep {
    int64_t number = 0;
    std::chrono::steady_clock::time_point begin; // before its batch was read
  };
  bool runsBesideHost = false;                       // on a device of some process
  std::deque<StartedStep> inFlight;                  // the oldest first
  std::chrono::steady_clock::time_point lastStepEnd; // of the last one that is not in flight
  bool statesAreWhole = true;                        // those of the last complete step
  bool hasDiverged = false;
  double waitedSeconds = 0, stepSeconds = 0; // of this process, in all its steps
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_TRAININGRUN_H
