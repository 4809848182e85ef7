//===- TrainLoop.cpp - The steps of a training run -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Guarded.h"
#include "runtime/train/ModelMetrics.h"
#include "runtime/train/TrainingRun.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <utility>

namespace dtc::runtime {

Expected<TrainResult> TrainingRun::run(std::shared_ptr<const Backend> backend) {
  if (MaybeError error = prepare(std::move(backend)))
    return *error;
  describe();
  Expected<bool> stopped = stops();
  if (!stopped)
    return stopped.error();
  if (*stopped) {
    printTo(out, "interrupted before the first step\n");
    result.interrupted = true;
    return result;
  }
  MaybeError failure = guarded([&] { return runSteps(); });
  // Several processes can only save their states together.
  if (failure && options.processes.areSeveral())
    return *failure;
  if (MaybeError error = save(saveCheckpoint(std::move(failure))))
    return *error;
  if (MaybeError error = guarded([&] { return finish(); }))
    return *error;
  return result;
}

Expected<std::optional<double>> TrainingRun::scalarOutput(const std::string &name) const {
  const plan::Output *output = session->findOutput(name);
  if (!output || output->shape_size() != 0 || !isFloat(toDType(output->dtype())))
    return std::optional<double>();
  Expected<HostTensor> value = session->getOutput(name);
  if (!value)
    return value.error();
  return std::optional<double>(elementAt(*value, 0));
}

/// Those of this step and the next ones, once for as many steps as the plan takes.
MaybeError TrainingRun::giveLearningRates(int64_t step) {
  if (session->learningRatesLeft() > 0)
    return std::nullopt;
  std::vector<double> rates;
  for (int64_t i = 0; i < std::min(session->numLearningRates(), steps - step + 1); ++i)
    rates.push_back(schedule.at(step + i));
  return session->setLearningRates(step - 1, rates);
}

/// The batches, and now and then the learning rates.
MaybeError TrainingRun::giveInputs(int64_t step) {
  if (MaybeError error = giveLearningRates(step))
    return error;
  if (clients)
    if (MaybeError error = clients->giveActive(step))
      return error;
  for (int64_t index = 0; data && index < options.batches; ++index) {
    int64_t number = begin.nextBatch + (step - 1 - begin.step) * options.batches + index;
    Expected<Batch> batch = loader->take(number + 1);
    if (!batch)
      return batch.error();
    for (auto &[name, tensor] : *batch)
      if (MaybeError error = session->setInput(name, std::move(tensor), index))
        return error;
  }
  return std::nullopt;
}

MaybeError TrainingRun::startStep(int64_t step) {
  auto begin = std::chrono::steady_clock::now();
  if (MaybeError error = giveInputs(step))
    return error;
  statesAreWhole = false;
  if (MaybeError error = session->startStep())
    return error->inContext(fmt::format("step {}", step));
  inFlight.push_back({step, begin});
  return std::nullopt;
}

/// Waits for the oldest step in flight and reads what is known of it.
Expected<StepMetrics> TrainingRun::finishStep() {
  auto [step, begin] = inFlight.front();
  inFlight.pop_front();
  if (MaybeError error = session->finishStep())
    return error->inContext(fmt::format("step {}", step));
  statesAreWhole = inFlight.empty();
  result.stepsDone = step;
  StepMetrics metrics;
  metrics.step = step;
  // A step that was started while the one before ran has the time from end to end.
  auto end = session->lastStepEnd();
  metrics.seconds = std::chrono::duration<double>(end - std::max(begin, lastStepEnd)).count();
  lastStepEnd = end;
  metrics.tokensPerSecond = static_cast<double>(unitsPerStep) / std::max(metrics.seconds, 1e-9);
  metrics.peakBytes = session->peakBytes();
  if (trains())
    metrics.learningRate = schedule.at(step);
  Expected<std::optional<double>> loss = scalarOutput("loss");
  if (!loss)
    return loss.error();
  metrics.loss = *loss;
  if (clients) {
    Expected<std::optional<double>> mean = clients->addStep(step);
    if (!mean)
      return mean.error();
    metrics.loss = *mean;
  }
  Expected<std::optional<double>> gradNorm = scalarOutput("grad_norm");
  if (!gradNorm)
    return gradNorm.error();
  metrics.gradNorm = *gradNorm;
  Expected<StepState> state = readStepState(*session);
  if (!state)
    return state.error();
  outcomes.stepDone(metrics, *state);
  result.stepsSkipped = outcomes.skippedSteps();
  result.lastLoss = metrics.loss;
  return metrics;
}

/// Takes back what earlier runs said of the steps to come. Called when there is something
/// to write, so that a run that fails in its first step leaves the metrics of the one before.
MaybeError TrainingRun::beginMetrics() {
  for (const std::unique_ptr<MetricsSink> &sink : metricsSinks)
    if (MaybeError error = sink->begin(begin.step))
      return error;
  return std::nullopt;
}

/// Runs what is due of outer steps after a step.
MaybeError TrainingRun::takeOuterStep(StepMetrics &metrics, ProgressReport &report) {
  statesAreWhole = false;
  MaybeError error = clients ? clients->takeOuterStep(*outerSteps->whole(), metrics)
                             : outerSteps->run(metrics.step);
  if (error)
    return error->inContext(fmt::format("the outer step after step {}", metrics.step));
  statesAreWhole = true;
  if (clients)
    reportRound(metrics, report);
  return std::nullopt;
}

/// Says who has trained in a round that has ended.
void TrainingRun::reportRound(const StepMetrics &metrics, ProgressReport &report) {
  report.finish();
  printTo(out, "{}\n", printable(ClientTraining::describe(metrics)));
  std::fflush(out);
  for (const std::string &text : clients->leftOut())
    note(text);
}

/// Computes the loss on held-out data, if it is due.
MaybeError TrainingRun::evaluate(StepMetrics &metrics, ProgressReport &report) {
  // Without a step to train there is still a model to evaluate.
  if (!evaluation || !(evaluation->isDue(metrics.step, steps) || begin.step >= steps))
    return std::nullopt;
  Expected<std::optional<EvaluationResult>> found = evaluation->run([this] { return stops(); });
  if (!found)
    return found.error().inContext(fmt::format("evaluation after step {}", metrics.step));
  if (!*found) {
    result.interrupted = true;
    return std::nullopt;
  }
  metrics.evalLoss = (*found)->loss.value_or(std::numeric_limits<double>::quiet_NaN());
  if ((*found)->loss) {
    report.evaluation(metrics);
  } else if (!saidNoLabelCounts) {
    report.finish();
    noteNoLabelCounts();
  }
  return std::nullopt;
}

/// Copies the states for a checkpoint, if one is due. An error may be that of the one before.
MaybeError TrainingRun::copyCheckpoint(StepMetrics &metrics) {
  if (!checkpoints)
    return std::nullopt;
  if (beside && checkpoints->pollAgrees())
    if (MaybeError error = beside->settle())
      return error;
  if (MaybeError error = checkpoints->poll())
    return error;
  // The last step has one when it is known how the run has ended. Where the time for one has come
  // while the next step is in flight, that has it.
  if (metrics.step == steps || !inFlight.empty())
    return std::nullopt;
  Expected<bool> due = checkpointIsDue(metrics.step);
  if (!due || !*due)
    return due ? std::nullopt : MaybeError(due.error());
  // Weights that are finite, but whose loss is not, are not to take the place of good ones.
  Expected<bool> waits = inAny(stop || (metrics.loss && !std::isfinite(*metrics.loss)));
  if (!waits || *waits)
    return waits ? std::nullopt : MaybeError(waits.error());
  if (MaybeError error = outerSteps ? outerSteps->settle() : std::nullopt)
    return error;
  if (beside)
    beside->saved();
  return checkpoints->copy(metrics);
}

Expected<bool> TrainingRun::inAny(bool holds) {
  if (MaybeError error = beside ? beside->settle() : std::nullopt)
    return *error;
  return options.processes.any(holds);
}

Expected<bool> TrainingRun::checkpointIsDue(int64_t step) const {
  return beside && checkpoints->goesByClock() ? Expected<bool>(beside->saves())
                                              : checkpoints->isDue(step);
}

/// Whether the step can be started: it is one of the run, nothing reads the states after the one in
/// flight, and the run was not asked to stop.
Expected<bool> TrainingRun::mayStart(int64_t step) {
  if (step > steps)
    return false;
  if (!inFlight.empty()) {
    int64_t before = inFlight.back().number;
    if (outerStepIsDue(before) || (evaluation && evaluation->isDue(before, steps)))
      return false;
    Expected<bool> due = checkpoints ? checkpointIsDue(before) : false;
    if (!due || *due)
      return due ? Expected<bool>(false) : due;
  }
  if (beside) {
    if (MaybeError error = beside->poll(step, stop, checkpoints && checkpoints->isDueByClock()))
      return *error;
    return !beside->stops();
  }
  Expected<bool> stopped = stops();
  return stopped ? Expected<bool>(!*stopped) : stopped;
}

/// Whether another step is to be started before the one that was just started is taken in. Several
/// processes do the same, independent of the progress of their devices.
bool TrainingRun::leavesInFlight() const {
  return runsBesideHost && !clients && (options.processes.areSeveral() || !session->stepIsDone());
}

/// Takes in the oldest step in flight, with the work that is due after it. `hasFailed`: the run
/// ends, and the step was in flight already.
MaybeError TrainingRun::endStep(ProgressReport &report, bool hasFailed) {
  // Steps of a diverged run after that are dropped.
  if (hasDiverged) {
    inFlight.pop_front();
    statesAreWhole = !session->finishStep() && inFlight.empty();
    return std::nullopt;
  }
  Expected<StepMetrics> metrics = finishStep();
  if (!metrics)
    return metrics.error();
  if (MaybeError error = hasFailed ? std::nullopt : addWaits(*metrics))
    return error;
  if (!hasFailed && options.writesMetrics())
    if (MaybeError error = addModelMetrics(*session, *metrics))
      return error;
  report.step(*metrics);
  if (options.onFirstStep && metrics->step == begin.step + 1)
    options.onFirstStep(metrics->step);
  // A step in which a metric is not zero that must be has an infinite norm. Where the loss is not
  // finite either, the metrics are computed from what made it so, and say nothing.
  MaybeError failed;
  if (!hasFailed && std::isfinite(metrics->loss.value_or(0)) &&
      !std::isfinite(metrics->gradNorm.value_or(INFINITY)))
    failed = checkZeroMetrics(*session);
  if (failed)
    failed = Error{fmt::format("step {}: {}; the step has changed no parameter", metrics->step,
                               failed->message)};
  if (outerStepIsDue(metrics->step))
    if (MaybeError error = takeOuterStep(*metrics, report))
      return error;
  if (!hasFailed && !failed)
    if (MaybeError error = evaluate(*metrics, report))
      return error;
  MaybeError diverged =
      options.allowNonfinite ? std::nullopt : outcomes.check(*metrics, options.learningRate);
  hasDiverged = diverged.has_value();
  if (!hasDiverged && !hasFailed && !failed)
    failed = copyCheckpoint(*metrics);
  if (MaybeError error = beginMetrics())
    return error;
  for (const std::unique_ptr<MetricsSink> &sink : metricsSinks)
    if (MaybeError error = sink->write(*metrics))
      return error;
  if (hasDiverged || failed)
    return hasDiverged ? diverged : failed;
  // Not before, so that the metrics of no step that is saved are missing.
  if (checkpoints && metrics->checkpointCopySeconds)
    checkpoints->write(metrics->step, outcomes);
  return std::nullopt;
}

/// Starts each step before the one before is taken in, unless that is over already, as on a CPU, or
/// its states are needed.
MaybeError TrainingRun::takeSteps(ProgressReport &report) {
  MaybeError failure;
  for (int64_t next = begin.step + 1;;) {
    Expected<bool> starts = failure ? Expected<bool>(false) : mayStart(next);
    if (!starts) {
      failure = starts.error();
    } else if (*starts) {
      failure = guarded([&] { return startStep(next); });
      ++next;
      if (!failure && inFlight.size() == 1 && leavesInFlight())
        continue;
    }
    // Several processes can only read their results together.
    if (inFlight.empty() || (failure && options.processes.areSeveral()))
      return failure;
    MaybeError error = guarded([&] { return endStep(report, failure.has_value()); });
    if (failure && error && hasDiverged)
      failure = Error{fmt::format("{}; {}", failure->message, error->message)};
    else if (!failure)
      failure = error;
  }
}

/// Says how many steps the replicas of all processes have skipped.
MaybeError TrainingRun::reportSkipped() {
  int64_t replicas = outcomes.replicas();
  if (beside) {
    Expected<StepState> all = readStepState(*session, /*ofAll=*/true);
    if (!all)
      return all.error();
    replicas = all->replicas;
    result.stepsSkipped = all->skippedSteps;
  }
  if (result.stepsSkipped > 0)
    printTo(out, "skipped {} of {} steps{}, whose gradients were not finite\n", result.stepsSkipped,
            result.stepsDone * replicas,
            replicas > 1 ? fmt::format(" of {} replicas", replicas) : "");
  return std::nullopt;
}

MaybeError TrainingRun::runSteps() {
  ProgressReport report(out, steps, options.logEvery, unit, begin.step + 1,
                        options.outputIsTerminal);
  if (StepMetrics none; begin.step >= steps) {
    none.step = begin.step;
    if (MaybeError error = evaluate(none, report))
      return error;
  }
  MaybeError failure = takeSteps(report);
  if (MaybeError error = outerSteps ? outerSteps->settle() : std::nullopt) {
    statesAreWhole = false;
    failure = failure ? failure : error;
  }
  if (MaybeError error = beside ? beside->settle() : std::nullopt)
    failure = failure ? failure : error;
  if (failure)
    return failure;
  report.finish();
  if (MaybeError error = reportSkipped())
    return error;
  result.interrupted |= result.stepsDone < steps;
  if (result.interrupted)
    printTo(out, "interrupted after step {}\n", result.stepsDone);
  if (auto text = outerSteps ? outerSteps->describeEnd(result.stepsDone) : std::nullopt)
    note(*text);
  return std::nullopt;
}

Expected<TrainResult> train(const TrainOptions &options, std::shared_ptr<const Backend> backend,
                            std::FILE *out, std::FILE *notes, const std::atomic<bool> &stop) {
  return TrainingRun(options, out, notes, stop).run(std::move(backend));
}

} // namespace dtc::runtime
