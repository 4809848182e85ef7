//===- TrainSession.cpp - Training steps in the process of the caller -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "python/native/TrainSession.h"

#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "plan/Replicas.h"
#include "runtime/checkpoint/Checksum.h"
#include "runtime/checkpoint/RunIdentity.h"
#include "runtime/data/DataSource.h"
#include "runtime/data/ElementConversion.h"
#include "runtime/fabrics/processes/DevicePlacement.h"
#include "runtime/train/ModelMetrics.h"
#include "runtime/train/OpenSession.h"
#include "runtime/train/StepState.h"
#include "support/NearestName.h"
#include "support/OuterEntries.h"
#include "tools/dtc-run/DeviceFlags.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>
#include <string_view>

using namespace dtc;
using namespace dtc::python;
using namespace dtc::runtime;

static std::string describeTensor(const TensorInMemory &tensor) {
  return fmt::format("{}[{}]", tensor.dtype, fmt::join(tensor.shape, ", "));
}

//===----------------------------------------------------------------------===//
// Beginning
//===----------------------------------------------------------------------===//

Expected<DeviceSelection> dtc::python::readDeviceFlags(const DeviceFlagValues &flags) {
  DeviceSelection options;
  CLI::App app;
  addDeviceFlag(app, options);
  addExchangeFlags(app, options);
  addGpuFlags(app, options);
  std::vector<std::string> arguments;
  for (const auto &[name, value] : flags) {
    std::vector<std::string> names;
    for (const CLI::Option *option : app.get_options())
      if (option != app.get_help_ptr())
        names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
    if (std::ranges::find(names, name) == names.end())
      return Error{fmt::format("--{} is no flag of devices, expected --{}{}", name,
                               fmt::join(names, ", --"), didYouMean(name, names))};
    arguments.push_back(fmt::format("--{}={}", name, value));
  }
  try {
    std::ranges::reverse(arguments); // as CLI11 wants them
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError &error) {
    return Error{error.what()};
  }
  return options;
}

Expected<std::unique_ptr<TrainSession>>
TrainSession::open(const std::shared_ptr<const plan::Plan> &plan, const TrainSettings &settings) {
  if (generates(*plan))
    return Error{"the plan generates tokens, which dtc-run generate does; compile with mode "
                 "\"train\" or \"forward\""};
  if (replicasOf(*plan))
    return Error{"the replicas of the plan differ between outer steps, which dtc-run --outer-every "
                 "runs, and Python does not; compile without outer"};
  std::unique_ptr<TrainSession> result(new TrainSession(settings));
  Expected<JoinedProcesses> joined = joinProcesses();
  if (!joined)
    return joined.error();
  result->joined = std::move(*joined);
  const Processes &processes = result->joined.processes;
  TrainOptions options;
  options.planPath = plan->model();
  if (settings.threads > 0)
    options.threadsPerDevice = {settings.threads};
  options.batches = settings.batches;
  options.processes = processes;
  options.watch = result->joined.watch;
  options.onHang = result->joined.fail;
  auto scaling = lossScaling(options, findState(*plan, plan::State::LOSS_SCALE) != nullptr);
  if (!scaling)
    return scaling.error();
  result->lossScale = *scaling;
  std::string planHash = processes.areSeveral() ? checksumOf(serializePlan(*plan)) : "";
  Alike alike = {{"plan", planHash},
                 {"seed", std::to_string(settings.seed)},
                 {"number of batches", std::to_string(settings.batches)},
                 {"kind of batch", settings.givesPartOfBatch ? "local" : "global"}};
  std::string flags;
  for (const auto &[name, value] :
       std::map(settings.deviceFlags.begin(), settings.deviceFlags.end()))
    flags += fmt::format("{}: {} ", name, value);
  alike.emplace_back("device or gpu option", flags);
  Expected<DeviceSelection> devices = readDeviceFlags(settings.deviceFlags);
  MaybeError wrong = devices ? checkProcesses(meshOf(*plan), processes.count()) : devices.error();
  if (!wrong)
    wrong = result->checkParts(*plan);
  if (MaybeError error = result->joined.agree("compile", wrong, alike))
    return *error;
  if (MaybeError error = result->openDevices(*devices, options))
    return *error;
  options.metricsPath = settings.metricsPath;
  options.tensorBoardPath = settings.tensorBoardPath;
  options.metricsAddress = settings.metricsAddress;
  auto opened = openSession(plan, result->backend, options);
  MaybeError unopened = opened ? MaybeError() : opened.error();
  if (!unopened) {
    auto sinks = openMetricsSinks(options, plan->model(), [](const std::string &note) {
      fmt::print(stderr, "note: {}\n", note);
    });
    if (sinks)
      result->metricsSinks = std::move(*sinks);
    else
      unopened = sinks.error();
  }
  if (MaybeError error = result->joined.agree("compile", unopened))
    return *error;
  result->session = std::move(*opened);
  return result;
}

/// All processes return an error, or none.
MaybeError TrainSession::openDevices(const DeviceSelection &wanted, TrainOptions &options) {
  auto opened = openBackend(wanted);
  if (MaybeError error = joined.agree("compile", opened ? MaybeError() : opened.error()))
    return error;
  backend = std::move(*opened);
  Expected<OpenFabric> fabric = chooseFabric(wanted, *backend, options.processes, stderr);
  if (!fabric)
    return fabric.error();
  options.openFabric = std::move(*fabric);
  options.graphs = wanted.graphs;
  return std::nullopt;
}

void TrainSession::close() {
  std::lock_guard lock(mutex);
  session.reset();
  joined = {};
}

/// Whether the processes can have equal parts of each batch.
MaybeError TrainSession::checkParts(const plan::Plan &plan) const {
  if (!hasParts())
    return std::nullopt;
  const int64_t count = joined.processes.count();
  for (const DataInput &input : dataInputsOf(plan))
    if (input.type.rank() == 0 || input.type.shape[0] % count != 0)
      return Error{
          fmt::format("batch is \"local\", but the samples of \"{}\" ({}) cannot be divided "
                      "among {} processes; compile for a batch of a multiple of {} samples, "
                      "or give all processes the whole batch (batch=\"global\")",
                      input.name, input.type.str(), count, count)};
  return std::nullopt;
}

MaybeError TrainSession::meet(const std::string &call, const std::string &error) {
  std::lock_guard lock(mutex);
  MaybeError closed = checkOpen();
  return joined.agree(call, closed || error.empty() ? closed : Error{error});
}

MaybeError TrainSession::checkOpen() const {
  if (session)
    return std::nullopt;
  return Error{"the step is closed, as the interpreter ends"};
}

/// Comes before each use of the states: those that have no value yet get one, and the outer
/// parameters those that were loaded last.
MaybeError TrainSession::begin() {
  if (!hasBegun)
    if (MaybeError error = initialize())
      return error;
  Session *entry = outerIsStale ? session->findEntry(kOuterBeginEntry) : nullptr;
  outerIsStale = false;
  if (MaybeError error = entry ? entry->step() : std::nullopt)
    return joined.failTogether(error->inContext("before the first step"));
  return std::nullopt;
}

MaybeError TrainSession::initialize() {
  if (MaybeError error = startStepState(*session, lossScale, seed, position.nextBatch))
    return error;
  if (MaybeError error = session->initializeOtherStates(seed))
    return error;
  Expected<StepState> state = readStepState(*session);
  if (!state)
    return state.error();
  outcomes = StepOutcomes(*state, position);
  hasBegun = true;
  return std::nullopt;
}

/// A hash of each tensor.
Alike TrainSession::describeAlike(const Tensors &tensors) const {
  Alike alike;
  if (!joined.processes.areSeveral())
    return alike;
  for (const auto &[name, tensor] : tensors)
    alike.emplace_back(fmt::format("\"{}\"", name),
                       describeTensor(tensor) + checksumOf(tensor.bytes));
  return alike;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// The properties of a batch that have to be alike.
Alike TrainSession::describeBatch(const Tensors &tensors) const {
  return hasParts() ? Alike() : describeAlike(tensors);
}

/// The inputs of the plan as this process gives them, in their types.
Expected<Batch> TrainSession::readBatch(const plan::Plan &plan, const Tensors &tensors) const {
  Batch batch;
  for (const DataInput &input : dataInputsOf(plan)) {
    auto found = tensors.find(input.name);
    if (found == tensors.end()) {
      std::vector<std::string> names;
      for (const auto &[name, tensor] : tensors)
        names.push_back("\"" + name + "\"");
      return Error{
          fmt::format("the batch has no \"{}\" ({}); it has {}", input.name, input.type.str(),
                      names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", ")))};
    }
    const TensorInMemory &given = found->second;
    TensorType type = input.type;
    std::string why = "as in the example batch: a plan is for one shape";
    if (hasParts()) {
      type.shape[0] /= joined.processes.count();
      why = fmt::format("the part of one of {} processes of {} (batch=\"local\")",
                        joined.processes.count(), input.type.str());
    }
    if (given.shape != type.shape)
      return Error{fmt::format("\"{}\" of the batch is {}, expected {}, {}", input.name,
                               describeTensor(given), type.str(), why)};
    HostTensor value(type);
    if (MaybeError error =
            convertElements(given.dtype, given.bytes, 0, type.dtype, value.bytes.data()))
      return error->inContext(fmt::format("\"{}\" of the batch", input.name));
    batch.emplace(input.name, std::move(value));
  }
  return batch;
}

/// Puts the parts of all processes together.
MaybeError TrainSession::gatherParts(const plan::Plan &plan, Batch &batch) const {
  if (!hasParts())
    return std::nullopt;
  for (const DataInput &input : dataInputsOf(plan)) {
    HostTensor &value = batch.at(input.name);
    auto parts = joined.processes.all(
        std::string(reinterpret_cast<const char *>(value.bytes.data()), value.bytes.size()));
    if (!parts)
      return parts.error();
    HostTensor whole(input.type);
    std::byte *to = whole.bytes.data();
    for (const std::string &part : *parts)
      to = std::ranges::copy(std::as_bytes(std::span(part)), to).out;
    value = std::move(whole);
  }
  return std::nullopt;
}

/// Gives a session the inputs of a batch, after all processes have agreed on it.
MaybeError TrainSession::setInputs(Session &of, Batch batch, int64_t number) const {
  if (MaybeError error = gatherParts(of.plan(), batch))
    return error;
  for (auto &[name, value] : batch)
    if (MaybeError error = of.setInput(name, std::move(value), number))
      return error;
  return std::nullopt;
}

/// A scalar of the last step; none where the plan has no such output.
static Expected<std::optional<double>> scalarOf(const Session &session, const std::string &name) {
  const plan::Output *output = session.findOutput(name);
  if (!output || output->shape_size() != 0 || !isFloat(toDType(output->dtype())))
    return std::optional<double>();
  Expected<HostTensor> value = session.getOutput(name);
  if (!value)
    return value.error();
  return std::optional<double>(elementAt(*value, 0));
}

/// Tokens of a step, or samples where the inputs are no tokens.
static int64_t unitsOf(const plan::Plan &plan) {
  for (const DataInput &input : dataInputsOf(plan))
    if (input.name == "tokens" && input.type.rank() == 2)
      return input.type.numElements();
  return std::max<int64_t>(samplesOfBatch(plan), 1);
}

Expected<StepMetrics> TrainSession::metricsOf(double seconds, double learningRate) {
  StepMetrics metrics;
  metrics.step = position.step;
  metrics.seconds = seconds;
  metrics.tokensPerSecond =
      static_cast<double>(batches * unitsOf(session->plan())) / std::max(seconds, 1e-9);
  metrics.peakBytes = session->peakBytes();
  if (trains(session->plan()))
    metrics.learningRate = learningRate;
  for (auto [name, value] : {std::pair("loss", &metrics.loss), {"grad_norm", &metrics.gradNorm}}) {
    Expected<std::optional<double>> read = scalarOf(*session, name);
    if (!read)
      return read.error();
    *value = *read;
  }
  Expected<StepState> state = readStepState(*session);
  if (!state)
    return state.error();
  outcomes.stepDone(metrics, *state);
  if (MaybeError error = addModelMetrics(*session, metrics))
    return *error;
  // Where the loss is not finite, the metrics that must be zero are computed from the same values.
  if (std::isfinite(metrics.loss.value_or(0)))
    if (MaybeError error = checkZeroMetrics(*session))
      return error->inContext(fmt::format("step {}", metrics.step));
  return metrics;
}

/// Gives the session its batches. All processes return the same error, or none.
MaybeError TrainSession::giveBatches(const std::vector<Tensors> &given, double learningRate) {
  MaybeError error = checkOpen();
  if (!error && (!std::isfinite(learningRate) || learningRate < 0))
    error = Error{fmt::format("the learning rate is {}, expected a finite number of at least 0",
                              learningRate)};
  if (!error && std::ssize(given) != batches)
    error = Error{fmt::format("a step takes {} batches (accumulate), but there are {}", batches,
                              given.size())};
  auto inBatch = [&](const Error &of, size_t batch) {
    return batches > 1 ? of.inContext(fmt::format("batch {} of the step", batch)) : of;
  };
  Alike alike = {{"learning rate", fmt::format("{}", learningRate)}};
  std::vector<Batch> read;
  for (size_t batch = 0; !error && batch < given.size(); ++batch) {
    Expected<Batch> own = readBatch(session->plan(), given[batch]);
    if (own)
      read.push_back(std::move(*own));
    else
      error = inBatch(own.error(), batch);
    for (auto &each : describeBatch(given[batch]))
      alike.push_back(std::move(each));
  }
  if (MaybeError refused = joined.agree("step", error, alike))
    return refused;
  for (size_t batch = 0; batch < read.size(); ++batch)
    if (MaybeError wrong = setInputs(*session, std::move(read[batch]), static_cast<int64_t>(batch)))
      return inBatch(*wrong, batch);
  return std::nullopt;
}

Expected<StepMetrics> TrainSession::step(const std::vector<Tensors> &given, double learningRate) {
  std::lock_guard lock(mutex);
  if (session)
    if (MaybeError error = begin())
      return *error;
  auto started = std::chrono::steady_clock::now();
  if (MaybeError error = giveBatches(given, learningRate))
    return *error;
  const double rates[] = {learningRate};
  if (MaybeError error = session->setLearningRates(position.step, rates))
    return *error;
  if (MaybeError error = session->step())
    return *joined.failTogether(error->inContext(fmt::format("step {}", position.step + 1)));
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  ++position.step;
  position.nextBatch += batches;
  lastRate = fmt::format("{}", learningRate);
  Expected<StepMetrics> metrics = metricsOf(seconds.count(), learningRate);
  if (metrics)
    if (MaybeError error = writeMetrics(*metrics))
      return *joined.failTogether(error->inContext(
          fmt::format("step {} is done, but its metrics cannot be written", position.step)));
  return metrics;
}

MaybeError TrainSession::writeMetrics(const StepMetrics &metrics) {
  for (const auto &sink : metricsSinks) {
    if (MaybeError error = sink->begin(metrics.step - 1))
      return error;
    if (MaybeError error = sink->write(metrics))
      return error;
  }
  return std::nullopt;
}

Expected<double> TrainSession::evaluate(const Tensors &batch) {
  std::lock_guard lock(mutex);
  MaybeError refused = checkOpen();
  Session *entry = nullptr;
  Batch read;
  if (!refused) {
    entry = trains(session->plan()) ? session->findEntry("evaluate") : session.get();
    if (!entry)
      refused = Error{"the plan has no entry point \"evaluate\"; a warning of the compilation says "
                      "why"};
    else if (refused = begin(); !refused) {
      Expected<Batch> own = readBatch(entry->plan(), batch);
      if (own)
        read = std::move(*own);
      else
        refused = own.error();
    }
  }
  if (MaybeError error = joined.agree("evaluate", refused, describeBatch(batch)))
    return *error;
  if (MaybeError error = setInputs(*entry, std::move(read)))
    return *error;
  if (MaybeError error = entry->step())
    return *joined.failTogether(error->inContext("evaluation"));
  if (MaybeError error = checkZeroMetrics(*entry))
    return *error;
  Expected<std::optional<double>> loss = scalarOf(*entry, "loss");
  if (!loss)
    return loss.error();
  if (!*loss)
    return Error{"the plan has no scalar output \"loss\" to evaluate"};
  return **loss;
}
