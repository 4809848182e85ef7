//===- TrainLoop.cpp - Runs a plan over a data set ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainLoop.h"

#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "runtime/checkpoint/RunIdentity.h"
#include "runtime/data/BatchLoader.h"
#include "runtime/data/DataSource.h"
#include "runtime/data/Sampling.h"
#include "runtime/executor/Session.h"
#include "runtime/train/CheckpointedRun.h"
#include "runtime/train/ChromeTrace.h"
#include "runtime/train/Evaluation.h"
#include "runtime/train/Metrics.h"
#include "runtime/train/OpenSession.h"
#include "runtime/train/ProgressReport.h"
#include "runtime/train/SavedFiles.h"
#include "runtime/train/StepOutcomes.h"
#include "runtime/train/StepState.h"
#include "runtime/train/Weights.h"
#include "simulator/PlanSimulation.h"
#include "support/AtomicFile.h"
#include "support/Format.h"
#include "support/Print.h"
#include "support/Printable.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <utility>

namespace dtc::runtime {

namespace {

/// One call of train().
class TrainLoop {
public:
  TrainLoop(const TrainOptions &options, std::FILE *out, std::FILE *notes,
            const std::atomic<bool> &stop)
      : options(options), out(out), notes(notes), stop(stop) {}

  Expected<TrainResult> run(std::shared_ptr<const Backend> backend) {
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

private:
  MaybeError prepare(std::shared_ptr<const Backend> backend);
  MaybeError openCheckpoints();
  MaybeError openData();
  MaybeError loadCheckpoint();
  MaybeError checkOptions();
  MaybeError beginOutcomes();
  MaybeError startLoader();
  MaybeError checkData(const DataSource &source, const std::string &name);
  std::string describeEpochs() const;
  void describe() const;
  MaybeError runSteps();
  MaybeError evaluate(StepMetrics &metrics, ProgressReport &report);
  MaybeError beginMetrics();
  Expected<StepMetrics> runStep(int64_t step);
  MaybeError giveLearningRates(int64_t step);
  MaybeError giveInputs(int64_t step);
  MaybeError saveCheckpoint(MaybeError failure);
  MaybeError copyCheckpoint(StepMetrics &metrics);
  MaybeError save(MaybeError failure);
  MaybeError checkWeights() const;
  MaybeError finish();
  template <typename Work> static MaybeError guarded(const Work &work);
  Expected<std::optional<double>> scalarOutput(const std::string &name) const;
  bool trains() const { return runtime::trains(*plan); }
  void note(const std::string &text) const {
    printTo(notes, "note: {}\n", printable(text));
    std::fflush(notes);
  }

  const TrainOptions &options;
  std::FILE *out;
  std::FILE *notes;
  const std::atomic<bool> &stop;

  std::shared_ptr<const plan::Plan> plan;
  std::unique_ptr<Session> session;
  std::unique_ptr<DataSource> data;             // null if the plan needs none
  std::unique_ptr<BatchLoader> loader;          // of the data
  std::unique_ptr<Evaluation> evaluation;       // null if nobody asked for it
  std::unique_ptr<CheckpointedRun> checkpoints; // null likewise
  RunPosition begin;                            // of this process's part of the run
  SavedFiles savedFiles;
  std::optional<MetricsWriter> metricsWriter;
  LearningRateSchedule schedule;
  std::optional<LossScaling> lossScale; // none if the plan does not scale its loss
  StepOutcomes outcomes;
  bool saidNoLabelCounts = false;
  int64_t steps = 0;
  int64_t unitsPerStep = 0; // tokens or samples
  std::string unit = "steps";
  TrainResult result;
  bool statesAreWhole = true; // those of the last complete step
  bool hasDiverged = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Before the first step
//===----------------------------------------------------------------------===//

/// Finds where the run begins, and how many steps it has.
MaybeError TrainLoop::openCheckpoints() {
  steps = options.steps.value_or(trains() ? defaultTrainSteps : 1);
  auto opened =
      CheckpointedRun::open(*plan, options, [this](const std::string &text) { note(text); });
  if (!opened)
    return opened.error();
  checkpoints = std::move(*opened);
  if (checkpoints)
    begin = checkpoints->begin();
  result.stepsDone = begin.step;
  return std::nullopt;
}

MaybeError TrainLoop::openData() {
  std::vector<DataInput> inputs = dataInputsOf(*plan);
  if (inputs.empty()) {
    unitsPerStep = 1;
    if (!options.dataPaths.empty())
      note("the plan has no data inputs; --data is not used");
    return std::nullopt;
  }
  // What is there may only be exported.
  if (options.dataPaths.empty() && begin.step > 0 && begin.step >= steps)
    return std::nullopt;
  if (options.dataPaths.empty()) {
    std::vector<std::string> names;
    for (const DataInput &input : inputs)
      names.push_back(fmt::format("{} ({})", input.name, input.type.str()));
    return Error{
        fmt::format("the plan needs data for {}; give a file with --data", fmt::join(names, ", "))};
  }
  Expected<std::unique_ptr<DataSource>> source =
      openDataSource(options.dataPaths, inputs, {options.seed, options.sampling});
  if (!source)
    return source.error();
  data = std::move(*source);
  for (const DataInput &input : inputs)
    if (input.name == "tokens" && input.type.rank() == 2) {
      unit = "tokens";
      unitsPerStep = input.type.numElements() * options.batches;
      return std::nullopt;
    }
  unit = "samples";
  unitsPerStep =
      options.batches * (inputs.front().type.rank() > 0 ? inputs.front().type.shape[0] : 1);
  return std::nullopt;
}

MaybeError TrainLoop::checkOptions() {
  Expected<LearningRateSchedule> rates = learningRateSchedule(options, steps);
  if (!rates)
    return rates.error();
  schedule = *rates;
  auto scaling = lossScaling(options, findState(*plan, plan::State::LOSS_SCALE) != nullptr);
  if (!scaling)
    return scaling.error();
  lossScale = *scaling;
  Expected<std::unique_ptr<Evaluation>> opened = Evaluation::open(*session, options);
  if (!opened)
    return opened.error();
  evaluation = std::move(*opened);
  return std::nullopt;
}

MaybeError TrainLoop::prepare(std::shared_ptr<const Backend> backend) {
  Expected<std::shared_ptr<const plan::Plan>> read = readPlan(options.planPath);
  if (!read)
    return read.error();
  plan = std::move(*read);
  if (generates(*plan))
    return Error{fmt::format(
        "{}: the plan generates tokens; give it a file to go on with, --prompt", options.planPath)};
  if (MaybeError error = openCheckpoints())
    return error;
  if (MaybeError error = openData())
    return error;
  if (!options.metricsPath.empty()) {
    Expected<MetricsWriter> writer = MetricsWriter::open(options.metricsPath);
    if (!writer)
      return writer.error();
    metricsWriter = std::move(*writer);
  }
  if (!options.tracePath.empty())
    if (MaybeError error = checkWritable(options.tracePath))
      return error;

  Expected<std::unique_ptr<Session>> created =
      openSession(plan, std::move(backend), options, begin.step + 1);
  if (!created)
    return created.error();
  session = std::move(*created);
  if (MaybeError error = checkOptions())
    return error;
  if (data)
    if (MaybeError error = startLoader())
      return error;
  // A run of days must not end with the discovery that its result has no place.
  Expected<SavedFiles> files = SavedFiles::create(*plan, options);
  if (!files)
    return files.error();
  savedFiles = std::move(*files);
  if (MaybeError error = startStates(*session, options, notes, begin.step > 0))
    return error;
  if (MaybeError error = startStepState(*session, lossScale, options.seed, begin.nextBatch))
    return error;
  if (checkpoints)
    if (MaybeError error = loadCheckpoint())
      return error;
  if (MaybeError error = beginOutcomes())
    return error;
  // Last, as it takes longest.
  if (data)
    if (MaybeError error = checkData(*data, describeFiles(options.dataPaths)))
      return error;
  if (evaluation)
    if (MaybeError error = checkData(evaluation->getData(), describeFiles(options.evalDataPaths)))
      return error->inContext("--eval-data");
  return std::nullopt;
}

MaybeError TrainLoop::loadCheckpoint() {
  Expected<RunIdentity> identity =
      identityOf(*plan, options.batches, options.seed, data.get(), options.sampling);
  if (!identity)
    return identity.error();
  bool hasSteps = begin.step < steps;
  if (MaybeError error = checkpoints->load(*session, *identity, schedule, hasSteps))
    return error;
  return checkpoints->prepareToSave(*session);
}

/// Reads the step state that the run begins with.
MaybeError TrainLoop::beginOutcomes() {
  Expected<StepState> state = readStepState(*session);
  if (!state)
    return state.error();
  if (trains() && state->stepsDone() != begin.step)
    return Error{fmt::format("--resume: the checkpoint is of step {}, but its step state counts {} "
                             "applied and {} skipped steps; it is damaged",
                             begin.step, state->appliedSteps, state->skippedSteps)};
  outcomes = StepOutcomes(*state, begin);
  result.stepsSkipped = state->skippedSteps;
  return std::nullopt;
}

/// Batches are read while the devices compute.
MaybeError TrainLoop::startLoader() {
  auto started = BatchLoader::start([this](int64_t number) { return data->batch(number); },
                                    batchesAhead(dataInputsOf(*plan), options.batches),
                                    begin.nextBatch + (steps - begin.step) * options.batches);
  if (!started)
    return started.error();
  loader = std::move(*started);
  return std::nullopt;
}

/// Looks at all of a data set, so that what is wrong with its end is not found after days.
MaybeError TrainLoop::checkData(const DataSource &source, const std::string &name) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point told = Clock::now();
  return source.check([&](uint64_t done, uint64_t all) {
    if (Clock::now() - told > std::chrono::seconds(5)) {
      note(fmt::format("{}: {}% are checked", name, 100 * done / all));
      told = Clock::now();
    }
    return !stop;
  });
}

/// How much of the data the run takes: "0.14 epochs in 200 steps".
std::string TrainLoop::describeEpochs() const {
  double samples = static_cast<double>(steps) * static_cast<double>(options.batches) *
                   static_cast<double>(data->batchSize());
  return fmt::format("{:.3g} epochs in {} step{}{}",
                     samples / static_cast<double>(data->samplesPerEpoch()), steps,
                     steps == 1 ? "" : "s",
                     options.sampling == Sampling::Random ? ", drawn with replacement" : "");
}

void TrainLoop::describe() const {
  std::vector<std::string> axes;
  for (const plan::Axis &axis : plan->axes())
    axes.push_back(
        fmt::format("{}={}{}", axis.name(), axis.size(), axis.temporal() ? " temporal" : ""));
  int64_t parameters = 0;
  for (const plan::State *state : distinctStates(*plan))
    if (state->kind() == plan::State::PARAMETER)
      parameters += typeOf(*state).numElements();
  std::string mesh = axes.empty() ? "" : fmt::format(" ({})", fmt::join(axes, ", "));
  printTo(out, "{}: {} parameters, {} device{}{}, {} and {} of scratch memory each\n",
          printable(plan->model().empty() ? options.planPath : plan->model()), parameters,
          session->numDevices(), session->numDevices() == 1 ? "" : "s", printable(mesh),
          formatBytes(session->peakBytes()), formatBytes(session->workspaceBytes()));
  if (const Device &device = session->heldDevices().front()->getResources().getDevice();
      !device.isHostMemory())
    printTo(out, "on {}\n", printable(device.describe()));
  if (data)
    printTo(out, "{}; {}\n", printable(data->describe()), describeEpochs());
  if (evaluation)
    printTo(out, "{}\n", printable(evaluation->describe()));
  if (checkpoints)
    printTo(out, "{}\n", printable(checkpoints->describe()));
  std::fflush(out);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Expected<std::optional<double>> TrainLoop::scalarOutput(const std::string &name) const {
  const plan::Output *output = session->findOutput(name);
  if (!output || output->shape_size() != 0 || !isFloat(toDType(output->dtype())))
    return std::optional<double>();
  Expected<HostTensor> value = session->getOutput(name);
  if (!value)
    return value.error();
  return std::optional<double>(elementAt(*value, 0));
}

/// Those of this step and the next ones, once for as many steps as the plan takes.
MaybeError TrainLoop::giveLearningRates(int64_t step) {
  if (session->learningRatesLeft() > 0)
    return std::nullopt;
  std::vector<double> rates;
  for (int64_t i = 0; i < std::min(session->numLearningRates(), steps - step + 1); ++i)
    rates.push_back(schedule.at(step + i));
  return session->setLearningRates(step - 1, rates);
}

/// The batches, and now and then the learning rates.
MaybeError TrainLoop::giveInputs(int64_t step) {
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

Expected<StepMetrics> TrainLoop::runStep(int64_t step) {
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
MaybeError TrainLoop::beginMetrics() {
  return metricsWriter ? metricsWriter->begin(begin.step) : std::nullopt;
}

/// Computes the loss on held-out data, if it is due.
MaybeError TrainLoop::evaluate(StepMetrics &metrics, ProgressReport &report) {
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
MaybeError TrainLoop::copyCheckpoint(StepMetrics &metrics) {
  if (!checkpoints)
    return std::nullopt;
  if (MaybeError error = checkpoints->poll())
    return error;
  // The last step has one when it is known how the run has ended.
  if (metrics.step == steps || stop || !checkpoints->isDue(metrics.step))
    return std::nullopt;
  return checkpoints->copy(metrics);
}

MaybeError TrainLoop::runSteps() {
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

//===----------------------------------------------------------------------===//
// After the last step
//===----------------------------------------------------------------------===//

/// An exception must not lose what was trained.
template <typename Work> MaybeError TrainLoop::guarded(const Work &work) {
  try {
    return work();
  } catch (const std::bad_alloc &) {
    return Error{"out of memory (see ulimit -v)"};
  } catch (const std::exception &exception) {
    return Error{exception.what()};
  }
}

/// Weights that are not finite are no result, however good the last loss was.
MaybeError TrainLoop::checkWeights() const {
  if (!trains() || (options.allowNonfinite && savedFiles.paths().empty() && !checkpoints))
    return std::nullopt;
  Expected<std::optional<std::string>> found = SavedWeights(*plan).findNonfinite(*session);
  if (!found)
    return found.error();
  if (!*found)
    return std::nullopt;
  std::string since = outcomes.lastFiniteStep() > 0
                          ? fmt::format("the update of step {}", outcomes.lastFiniteStep())
                          : "the start";
  return Error{fmt::format("the weights after step {} are not finite, and have not been since {}, "
                           "as far as the losses tell: {}; lower the learning rate (--lr {})",
                           result.stepsDone, since, **found, options.learningRate)};
}

/// Saves the states after the last step, unless they are no result or are saved already, and waits
/// for the disk. Returns the error of the run, or its own.
MaybeError TrainLoop::saveCheckpoint(MaybeError failure) {
  if (!checkpoints)
    return failure;
  bool isNew = result.stepsDone > checkpoints->lastStep();
  MaybeError error;
  if (isNew && statesAreWhole && !hasDiverged && !checkpoints->hasFailed())
    error = guarded([&]() -> MaybeError {
      if (MaybeError nonfinite = checkWeights())
        return nonfinite;
      StepMetrics unused;
      if (MaybeError failed = checkpoints->copy(unused))
        return failed;
      checkpoints->write(result.stepsDone, outcomes);
      return std::nullopt;
    });
  Expected<std::string> saved = checkpoints->finish();
  if (!saved && !error)
    error = saved.error();
  if (saved && !saved->empty())
    printTo(out, "checkpoint {}\n", printable(*saved));
  std::fflush(out);
  if (!failure || !error || failure->message == error->message)
    return failure ? failure : error;
  return Error{fmt::format("{}; {}", failure->message, error->message)};
}

/// Saves what was trained, also if the run has failed since. Returns the error of the run, and says
/// in it what became of the states.
MaybeError TrainLoop::save(MaybeError failure) {
  const std::vector<std::string> &paths = savedFiles.paths();
  auto explain = [&](const std::string &text) {
    return paths.empty() ? failure : Error{fmt::format("{}; {}", failure->message, text)};
  };
  auto nothing = [&](const std::string &reason) {
    std::vector<std::string> kept = paths;
    std::erase_if(kept, [](const std::string &path) { return !std::filesystem::exists(path); });
    return explain(fmt::format("{}nothing is saved{}", reason,
                               kept.empty()
                                   ? ""
                                   : fmt::format(", {} {} as before", fmt::join(kept, ", "),
                                                 kept.size() == 1 ? "is" : "are")));
  };
  // A failed run that has trained nothing has nothing to say.
  if (failure && (result.stepsDone == begin.step || !trains()))
    return failure;
  if (failure && !statesAreWhole)
    return nothing("some of the weights may be those after the failed step, so that ");
  if (failure && hasDiverged)
    return nothing("");
  if (MaybeError error = guarded([&] { return checkWeights(); })) {
    failure = failure ? Error{fmt::format("{}; {}", failure->message, error->message)} : *error;
    return nothing("");
  }
  MaybeError error;
  std::vector<std::string> saved;
  MaybeError exception = guarded([&] {
    saved = savedFiles.save(*session, error);
    return MaybeError();
  });
  for (const std::string &path : saved)
    printTo(out, "saved {}\n", printable(path));
  std::fflush(out);
  if (!error)
    error = exception;
  if (!failure)
    return error;
  if (!saved.empty())
    failure = explain(fmt::format("what was trained up to step {} is saved: {}", result.stepsDone,
                                  fmt::join(saved, ", ")));
  return error ? explain(error->message) : failure;
}

MaybeError TrainLoop::finish() {
  // A run that has no step has no lines to put in the place of others.
  if (MaybeError error = begin.step < steps || begin.step == 0 ? beginMetrics() : std::nullopt)
    return error;
  if (!trains() && result.stepsDone > 0)
    for (const plan::Output *output : distinctOutputs(*plan)) {
      Expected<HostTensor> value = session->getOutput(output->name());
      if (!value)
        return value.error();
      printTo(out, "{}\n", formatTensor(printable(output->name()), *value));
    }
  if (PipelineTime time = session->pipelineTime(); time.deviceSeconds > 0) {
    std::optional<double> predicted;
    if (auto timeline = simulatePlan(*plan))
      predicted = timeline->bubbleShare();
    printTo(out, "{}", formatPipelineTime(time, predicted));
  }
  if (options.profile) {
    printTo(out, "{}{}{}", formatProfile(session->profile()),
            formatCollectiveTime(session->collectiveTime()),
            formatTransferTime(session->transferTime()));
    CommunicatorBytes sent = session->communicatorBytes();
    for (CollectiveKind kind : allCollectiveKinds)
      if (sent.of(kind) > 0)
        printTo(out, "{} sent {} in all\n", name(kind), formatBytes(sent.of(kind)));
    if (sent.transfers > 0)
      printTo(out, "transfers sent {} in all\n", formatBytes(sent.transfers));
  }
  if (!options.tracePath.empty()) {
    if (MaybeError error = writeChromeTrace(*session, options.tracePath))
      return error;
    printTo(out, "traced {}\n", printable(options.tracePath));
  }
  // What a plan that does not train is run for is what it prints.
  if ((std::fflush(out) != 0 || std::ferror(out)) && !trains()) {
    if (!stop)
      return Error{fmt::format("the outputs cannot be written: {}", std::strerror(errno))};
    result.interrupted = true; // by whoever reads no further
  }
  return std::nullopt;
}

Expected<TrainResult> train(const TrainOptions &options, std::shared_ptr<const Backend> backend,
                            std::FILE *out, std::FILE *notes, const std::atomic<bool> &stop) {
  return TrainLoop(options, out, notes, stop).run(std::move(backend));
}

} // namespace dtc::runtime
