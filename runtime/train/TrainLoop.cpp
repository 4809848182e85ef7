//===- TrainLoop.cpp - The steps of a training run -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingRun.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <limits>
#include <utility>

namespace dtc::runtime {

Expected<TrainResult> TrainingRun::run(std::shared_ptr<const Backend> backend) {
  if (MaybeError error = prepare(std::move(backend)))
    return *error;
  describe();
  if (stop) {
    printTo(out, "interrupted before the first step\n");
    result.interrupted = true;
    return result;
  }
  if (MaybeError error = save(saveCheckpoint(guarded([&] { return runSteps(); }))))
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

Expected<StepMetrics> TrainingRun::runStep(int64_t step) {
  auto start = std::chrono::steady_clock::now();
  if (MaybeError error = giveInputs(step))
    return *error;
  statesAreWhole = false;
  if (MaybeError error = session->step())
    return error->inContext(fmt::format("step {}", step));
  statesAreWhole = true;
  result.stepsDone = step;
  StepMetrics metrics;
  metrics.step = step;
  metrics.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  metrics.tokensPerSecond = static_cast<double>(unitsPerStep) / std::max(metrics.seconds, 1e-9);
  metrics.peakBytes = session->peakBytes();
  if (trains())
    metrics.learningRate = schedule.at(step);
  Expected<std::optional<double>> loss = scalarOutput("loss");
  if (!loss)
    return loss.error();
  metrics.loss = *loss;
  Expected<std::optional<double>> gradNorm = scalarOutput("grad_norm");
  if (!gradNorm)
    return gradNorm.error();
  metrics.gradNorm = *gradNorm;
  Expected<StepState> state = readStepState(*session);
  if (!state)
    return state.error();
  outcomes.stepDone(metrics, *state);
  return metrics;
}

/// Empties the file, but for the steps that the run goes on after. Called when there is something
/// to write, so that a run that fails in its first step leaves the metrics of the one before.
MaybeError TrainingRun::beginMetrics() {
  return metricsWriter ? metricsWriter->begin(begin.step) : std::nullopt;
}

/// Computes the loss on held-out data, if it is due.
MaybeError TrainingRun::evaluate(StepMetrics &metrics, ProgressReport &report) {
  // Without a step to train there is still a model to evaluate.
  if (!evaluation || !(evaluation->isDue(metrics.step, steps) || begin.step >= steps))
    return std::nullopt;
  Expected<std::optional<EvaluationResult>> found = evaluation->run(stop);
  if (!found)
    return found.error().inContext(fmt::format("evaluation after step {}", metrics.step));
  if (!*found) {
    result.interrupted |= stop;
    return std::nullopt;
  }
  metrics.evalLoss = (*found)->loss.value_or(std::numeric_limits<double>::quiet_NaN());
  if ((*found)->loss) {
    report.evaluation(metrics);
  } else if (!std::exchange(saidNoLabelCounts, true)) {
    report.finish();
    note(fmt::format("--eval-data: {}: no label counts, so that there is no loss on them",
                     evaluation->describe()));
  }
  return std::nullopt;
}

/// Copies the states for a checkpoint, if one is due. An error may be that of the one before.
MaybeError TrainingRun::copyCheckpoint(StepMetrics &metrics) {
  if (!checkpoints)
    return std::nullopt;
  if (MaybeError error = checkpoints->poll())
    return error;
  // The last step has one when it is known how the run has ended.
  if (metrics.step == steps || stop || !checkpoints->isDue(metrics.step))
    return std::nullopt;
  return checkpoints->copy(metrics);
}

MaybeError TrainingRun::runSteps() {
  ProgressReport report(out, steps, options.logEvery, unit, begin.step + 1);
  if (StepMetrics none; begin.step >= steps) {
    none.step = begin.step;
    if (MaybeError error = evaluate(none, report))
      return error;
  }
  for (int64_t step = begin.step + 1; step <= steps && !stop; ++step) {
    Expected<StepMetrics> metrics = runStep(step);
    if (!metrics)
      return metrics.error();
    result.stepsSkipped = outcomes.skippedSteps();
    result.lastLoss = metrics->loss;
    report.step(*metrics);
    if (MaybeError error = evaluate(*metrics, report))
      return error;
    MaybeError diverged =
        options.allowNonfinite ? std::nullopt : outcomes.check(*metrics, options.learningRate);
    hasDiverged = diverged.has_value();
    MaybeError failed = hasDiverged ? std::nullopt : copyCheckpoint(*metrics);
    if (MaybeError error = beginMetrics())
      return error;
    if (metricsWriter)
      if (MaybeError error = metricsWriter->write(*metrics))
        return error;
    if (hasDiverged || failed)
      return hasDiverged ? diverged : failed;
    // Not before, so that the metrics of no step that is saved are missing.
    if (checkpoints && metrics->checkpointCopySeconds)
      checkpoints->write(step, outcomes);
  }
  report.finish();
  if (result.stepsSkipped > 0)
    printTo(out, "skipped {} of {} steps, whose gradients were not finite\n", result.stepsSkipped,
            result.stepsDone);
  result.interrupted |= result.stepsDone < steps;
  if (result.interrupted)
    printTo(out, "interrupted after step {}\n", result.stepsDone);
  return std::nullopt;
}

Expected<TrainResult> train(const TrainOptions &options, std::shared_ptr<const Backend> backend,
                            std::FILE *out, std::FILE *notes, const std::atomic<bool> &stop) {
  return TrainingRun(options, out, notes, stop).run(std::move(backend));
}

} // namespace dtc::runtime
