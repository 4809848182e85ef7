//===- TrainLoop.cpp - Runs a plan over a data set ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainLoop.h"

#include "runtime/data/DataSource.h"
#include "runtime/data/Sampling.h"
#include "runtime/executor/Session.h"
#include "runtime/generate/Generator.h"
#include "runtime/plan/PlanReader.h"
#include "runtime/plan/PlanTypes.h"
#include "runtime/report/PlanSimulation.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Format.h"
#include "runtime/train/Adapters.h"
#include "runtime/train/ChromeTrace.h"
#include "runtime/train/Evaluation.h"
#include "runtime/train/Metrics.h"
#include "runtime/train/OpenSession.h"
#include "runtime/train/ProgressReport.h"
#include "runtime/train/StepOutcomes.h"
#include "runtime/train/Weights.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

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
    if (MaybeError error = runSteps())
      return *error;
    if (MaybeError error = finish())
      return *error;
    return result;
  }

private:
  MaybeError prepare(std::shared_ptr<const Backend> backend);
  MaybeError openData();
  MaybeError checkOptions();
  void describe() const;
  MaybeError runSteps();
  MaybeError evaluate(StepMetrics &metrics, ProgressReport &report);
  MaybeError openMetrics();
  Expected<StepMetrics> runStep(int64_t step, double rate);
  MaybeError giveInputs(int64_t step);
  MaybeError finish();
  Expected<std::optional<double>> scalarOutput(const std::string &name) const;
  bool trains() const { return session->findInput(plan::Input::LEARNING_RATE) != nullptr; }
  void note(const std::string &text) const {
    fmt::print(notes, "note: {}\n", text);
    std::fflush(notes);
  }

  const TrainOptions &options;
  std::FILE *out;
  std::FILE *notes;
  const std::atomic<bool> &stop;

  std::shared_ptr<const plan::Plan> plan;
  std::unique_ptr<Session> session;
  std::unique_ptr<DataSource> data;       // null if the plan needs none
  std::unique_ptr<Evaluation> evaluation; // null if nobody asked for it
  std::optional<MetricsWriter> metricsWriter;
  LearningRateSchedule schedule;
  StepOutcomes outcomes;
  int64_t steps = 0;
  int64_t unitsPerStep = 0; // tokens or samples
  std::string unit = "steps";
  TrainResult result;
};

} // namespace

//===----------------------------------------------------------------------===//
// Before the first step
//===----------------------------------------------------------------------===//

MaybeError TrainLoop::openData() {
  std::vector<DataInput> inputs = dataInputsOf(*plan);
  if (inputs.empty()) {
    unitsPerStep = 1;
    if (!options.dataPath.empty())
      note("the plan has no data inputs; --data is not used");
    return std::nullopt;
  }
  if (options.dataPath.empty()) {
    std::vector<std::string> names;
    for (const DataInput &input : inputs)
      names.push_back(fmt::format("{} ({})", input.name, input.type.str()));
    return Error{
        fmt::format("the plan needs data for {}; give a file with --data", fmt::join(names, ", "))};
  }
  Expected<std::unique_ptr<DataSource>> source =
      openDataSource(options.dataPath, inputs, options.seed);
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
  steps = options.steps.value_or(trains() ? defaultTrainSteps : 1);
  Expected<LearningRateSchedule> rates = learningRateSchedule(options, steps);
  if (!rates)
    return rates.error();
  schedule = *rates;
  Expected<std::optional<LossScale>> scale =
      initialLossScale(options, session->findInput(plan::Input::LOSS_SCALE) != nullptr);
  if (!scale)
    return scale.error();
  outcomes = StepOutcomes(*scale);
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
  if (MaybeError error = openData())
    return error;
  // A run of days must not end with the discovery that its result has no place.
  if (!options.savePath.empty())
    if (MaybeError error = checkWritable(options.savePath))
      return error;
  if (!options.saveAdaptersPath.empty())
    if (MaybeError error = checkAdapters(*plan, options.saveAdaptersPath))
      return error;
  if (!options.metricsPath.empty())
    if (MaybeError error = checkWritable(options.metricsPath))
      return error;
  if (!options.tracePath.empty())
    if (MaybeError error = checkWritable(options.tracePath))
      return error;

  Expected<std::unique_ptr<Session>> created = openSession(plan, std::move(backend), options);
  if (!created)
    return created.error();
  session = std::move(*created);
  if (MaybeError error = checkOptions())
    return error;
  return startStates(*session, options, notes);
}

void TrainLoop::describe() const {
  std::vector<std::string> axes;
  for (const plan::Axis &axis : plan->axes())
    axes.push_back(
        fmt::format("{}={}{}", axis.name(), axis.size(), axis.temporal() ? " temporal" : ""));
  int64_t parameters = 0;
  for (const plan::State *state : distinctStates(*plan))
    if (state->parameter().empty() && !state->cache())
      parameters += typeOf(*state).numElements();
  std::string mesh = axes.empty() ? "" : fmt::format(" ({})", fmt::join(axes, ", "));
  fmt::print(out, "{}: {} parameters, {} device{}{}, {} and {} of scratch memory each\n",
             plan->model().empty() ? options.planPath : plan->model(), parameters,
             session->numDevices(), session->numDevices() == 1 ? "" : "s", mesh,
             formatBytes(session->peakBytes()), formatBytes(session->workspaceBytes()));
  if (data)
    fmt::print(out, "{}\n", data->describe());
  if (evaluation)
    fmt::print(out, "{}\n", evaluation->describe());
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

/// The batches, what their random masks are drawn from, and the loss scale.
MaybeError TrainLoop::giveInputs(int64_t step) {
  // Batches count, not updates: a step after a skipped one has masks of its own.
  for (int64_t index = 0; index < options.batches; ++index) {
    int64_t number = (step - 1) * options.batches + index;
    if (MaybeError error = session->setRandomKey(randomMaskKey(options.seed, number), index))
      return error;
    if (!data)
      continue;
    auto batch = data->batch(number + 1);
    if (!batch)
      return batch.error();
    for (auto &[name, tensor] : *batch)
      if (MaybeError error = session->setInput(name, std::move(tensor), index))
        return error;
  }
  if (std::optional<double> scale = outcomes.lossScale())
    if (MaybeError error = session->setLossScale(*scale))
      return error;
  return std::nullopt;
}

Expected<StepMetrics> TrainLoop::runStep(int64_t step, double rate) {
  auto start = std::chrono::steady_clock::now();
  if (MaybeError error = giveInputs(step))
    return *error;
  // Skipped steps were none to the optimizer.
  if (MaybeError error = session->step(rate, step - outcomes.skippedSteps()))
    return error->inContext(fmt::format("step {}", step));
  StepMetrics metrics;
  metrics.step = step;
  metrics.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  metrics.tokensPerSecond = static_cast<double>(unitsPerStep) / std::max(metrics.seconds, 1e-9);
  metrics.peakBytes = session->peakBytes();
  if (trains())
    metrics.learningRate = rate;
  Expected<std::optional<double>> loss = scalarOutput("loss");
  if (!loss)
    return loss.error();
  metrics.loss = *loss;
  Expected<std::optional<double>> gradNorm = scalarOutput("grad_norm");
  if (!gradNorm)
    return gradNorm.error();
  metrics.gradNorm = *gradNorm;
  outcomes.stepDone(metrics);
  return metrics;
}

/// Empties the file. Called when there is something to write, so that a run that fails in its first
/// step leaves the metrics of the one before.
MaybeError TrainLoop::openMetrics() {
  if (options.metricsPath.empty() || metricsWriter)
    return std::nullopt;
  Expected<MetricsWriter> writer = MetricsWriter::open(options.metricsPath);
  if (!writer)
    return writer.error();
  metricsWriter = std::move(*writer);
  return std::nullopt;
}

/// Computes the loss on held-out data, if it is due.
MaybeError TrainLoop::evaluate(StepMetrics &metrics, ProgressReport &report) {
  if (!evaluation || !evaluation->isDue(metrics.step, steps))
    return std::nullopt;
  Expected<std::optional<double>> loss = evaluation->run(stop);
  if (!loss)
    return loss.error().inContext(fmt::format("evaluation after step {}", metrics.step));
  metrics.evalLoss = *loss;
  if (*loss)
    report.evaluation(metrics);
  return std::nullopt;
}

MaybeError TrainLoop::runSteps() {
  ProgressReport report(out, steps, options.logEvery, unit);
  // Without a step to train there is still a model to evaluate.
  if (StepMetrics none; steps == 0)
    if (MaybeError error = evaluate(none, report))
      return error;
  for (int64_t step = 1; step <= steps && !stop; ++step) {
    Expected<StepMetrics> metrics = runStep(step, schedule.at(step));
    if (!metrics)
      return metrics.error();
    report.step(*metrics);
    if (MaybeError error = evaluate(*metrics, report))
      return error;
    if (MaybeError error = openMetrics())
      return error;
    if (metricsWriter)
      if (MaybeError error = metricsWriter->write(*metrics))
        return error;
    result.stepsDone = step;
    result.stepsSkipped = outcomes.skippedSteps();
    result.lastLoss = metrics->loss;
    if (!options.allowNonfinite)
      if (MaybeError error = outcomes.check(*metrics, options.learningRate))
        return error;
  }
  report.finish();
  if (result.stepsSkipped > 0)
    fmt::print(out, "skipped {} of {} steps, whose gradients were not finite\n",
               result.stepsSkipped, result.stepsDone);
  result.interrupted = result.stepsDone < steps;
  if (result.interrupted)
    fmt::print(out, "interrupted after step {}\n", result.stepsDone);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// After the last step
//===----------------------------------------------------------------------===//

MaybeError TrainLoop::finish() {
  if (MaybeError error = openMetrics())
    return error;
  // First what is worth most.
  if (!options.savePath.empty()) {
    if (MaybeError error = saveWeights(*session, options.savePath))
      return error;
    fmt::print(out, "saved {}\n", options.savePath);
  }
  if (!options.saveAdaptersPath.empty()) {
    if (MaybeError error = saveAdapters(*session, options.saveAdaptersPath))
      return error;
    fmt::print(out, "saved {}\n", options.saveAdaptersPath);
  }
  if (!trains() && result.stepsDone > 0)
    for (const plan::Output *output : distinctOutputs(*plan)) {
      Expected<HostTensor> value = session->getOutput(output->name());
      if (!value)
        return value.error();
      fmt::print(out, "{}\n", formatTensor(output->name(), *value));
    }
  if (PipelineTime time = session->pipelineTime(); time.deviceSeconds > 0) {
    std::optional<double> predicted;
    if (auto timeline = simulatePlan(*plan))
      predicted = timeline->bubbleShare();
    fmt::print(out, "{}", formatPipelineTime(time, predicted));
  }
  if (options.profile) {
    fmt::print(out, "{}{}{}", formatProfile(session->profile()),
               formatCollectiveTime(session->collectiveTime()),
               formatTransferTime(session->transferTime()));
    CommunicatorBytes sent = session->communicatorBytes();
    for (CollectiveKind kind : allCollectiveKinds)
      if (sent.of(kind) > 0)
        fmt::print(out, "{} sent {} in all\n", name(kind), formatBytes(sent.of(kind)));
    if (sent.transfers > 0)
      fmt::print(out, "transfers sent {} in all\n", formatBytes(sent.transfers));
  }
  if (!options.tracePath.empty()) {
    if (MaybeError error = writeChromeTrace(*session, options.tracePath))
      return error;
    fmt::print(out, "traced {}\n", options.tracePath);
  }
  // What a plan that does not train is run for is what it prints.
  if ((std::fflush(out) != 0 || std::ferror(out)) && !trains())
    return Error{fmt::format("the outputs cannot be written: {}", std::strerror(errno))};
  return std::nullopt;
}

Expected<TrainResult> train(const TrainOptions &options, std::shared_ptr<const Backend> backend,
                            std::FILE *out, std::FILE *notes, const std::atomic<bool> &stop) {
  return TrainLoop(options, out, notes, stop).run(std::move(backend));
}

} // namespace dtc::runtime
