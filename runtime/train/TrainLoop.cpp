//===- TrainLoop.cpp - Runs a plan over a data set ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainLoop.h"

#include "runtime/data/DataSource.h"
#include "runtime/data/Sampling.h"
#include "runtime/executor/Session.h"
#include "runtime/plan/PlanReader.h"
#include "runtime/plan/PlanTypes.h"
#include "runtime/report/PlanSimulation.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Format.h"
#include "runtime/train/ChromeTrace.h"
#include "runtime/train/Metrics.h"
#include "runtime/train/ProgressReport.h"
#include "runtime/train/StepOutcomes.h"
#include "runtime/train/Weights.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <thread>

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
  std::unique_ptr<DataSource> data; // null if the plan needs none
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
      unitsPerStep = input.type.numElements();
      return std::nullopt;
    }
  unit = "samples";
  unitsPerStep = inputs.front().type.rank() > 0 ? inputs.front().type.shape[0] : 1;
  return std::nullopt;
}

MaybeError TrainLoop::checkOptions() {
  steps = options.steps.value_or(trains() ? 100 : 1);
  Expected<LearningRateSchedule> rates = learningRateSchedule(options, steps);
  if (!rates)
    return rates.error();
  schedule = *rates;
  Expected<std::optional<LossScale>> scale =
      initialLossScale(options, session->findInput(plan::Input::LOSS_SCALE) != nullptr);
  if (!scale)
    return scale.error();
  outcomes = StepOutcomes(*scale);
  return std::nullopt;
}

MaybeError TrainLoop::prepare(std::shared_ptr<const Backend> backend) {
  Expected<std::shared_ptr<const plan::Plan>> read = readPlan(options.planPath);
  if (!read)
    return read.error();
  plan = std::move(*read);
  if (MaybeError error = openData())
    return error;
  // A run of days must not end with the discovery that its result has no place.
  if (!options.savePath.empty())
    if (MaybeError error = checkWritable(options.savePath))
      return error;
  if (!options.metricsPath.empty())
    if (MaybeError error = checkWritable(options.metricsPath))
      return error;
  if (!options.tracePath.empty())
    if (MaybeError error = checkWritable(options.tracePath))
      return error;

  SessionOptions sessionOptions;
  sessionOptions.profile = options.profile;
  sessionOptions.stallTimeout = options.stallTimeout;
  sessionOptions.onHang = options.onHang;
  if (!options.tracePath.empty())
    sessionOptions.traceSteps = options.traceSteps;
  sessionOptions.threadsPerDevice = options.threadsPerDevice;
  if (options.threadsPerDevice <= 0) {
    int64_t cores = std::max(1u, std::thread::hardware_concurrency());
    sessionOptions.threadsPerDevice =
        static_cast<int>(std::max<int64_t>(cores / meshOf(*plan).numDevices(), 1));
  }
  Expected<std::unique_ptr<Session>> created =
      Session::create(plan, std::move(backend), sessionOptions);
  if (!created)
    return created.error().inContext(options.planPath);
  session = std::move(*created);
  if (MaybeError error = checkOptions())
    return error;
  if (MaybeError error = session->initializeStates(options.seed))
    return error;
  if (!options.initPath.empty()) {
    Expected<std::vector<std::string>> loaded = loadWeights(*session, options.initPath);
    if (!loaded)
      return loaded.error();
    for (const std::string &text : *loaded)
      note(text);
  }
  return std::nullopt;
}

void TrainLoop::describe() const {
  std::vector<std::string> axes;
  for (const plan::Axis &axis : plan->axes())
    axes.push_back(
        fmt::format("{}={}{}", axis.name(), axis.size(), axis.temporal() ? " temporal" : ""));
  int64_t parameters = 0;
  for (const plan::State *state : distinctStates(*plan))
    if (state->parameter().empty())
      parameters += typeOf(*state).numElements();
  std::string mesh = axes.empty() ? "" : fmt::format(" ({})", fmt::join(axes, ", "));
  fmt::print(out, "{}: {} parameters, {} device{}{}, {} and {} of scratch memory each\n",
             plan->model().empty() ? options.planPath : plan->model(), parameters,
             session->numDevices(), session->numDevices() == 1 ? "" : "s", mesh,
             formatBytes(session->peakBytes()), formatBytes(session->workspaceBytes()));
  if (data)
    fmt::print(out, "{}\n", data->describe());
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

/// The batch, the loss scale and what random masks are drawn from.
MaybeError TrainLoop::giveInputs(int64_t step) {
  if (data) {
    auto batch = data->batch(step);
    if (!batch)
      return batch.error();
    for (auto &[name, tensor] : *batch)
      if (MaybeError error = session->setInput(name, std::move(tensor)))
        return error;
  }
  if (std::optional<double> scale = outcomes.lossScale())
    if (MaybeError error = session->setLossScale(*scale))
      return error;
  // Batches count, not updates: a step after a skipped one has masks of its own.
  return session->setRandomKey(randomMaskKey(options.seed, step - 1));
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

MaybeError TrainLoop::runSteps() {
  ProgressReport report(out, steps, options.logEvery, unit);
  for (int64_t step = 1; step <= steps && !stop; ++step) {
    Expected<StepMetrics> metrics = runStep(step, schedule.at(step));
    if (!metrics)
      return metrics.error();
    report.step(*metrics);
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
