//===- TrainSession.cpp - Training steps in the process of the caller -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "python/native/TrainSession.h"

#include "plan/PlanTypes.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/CheckpointSaver.h"
#include "runtime/checkpoint/LoadCheckpoint.h"
#include "runtime/checkpoint/RunIdentity.h"
#include "runtime/data/DataSource.h"
#include "runtime/data/ElementConversion.h"
#include "runtime/train/ModelMetrics.h"
#include "runtime/train/OpenSession.h"
#include "runtime/train/StepState.h"
#include "runtime/train/Weights.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace dtc;
using namespace dtc::python;
using namespace dtc::runtime;

//===----------------------------------------------------------------------===//
// Beginning
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<TrainSession>>
TrainSession::open(const std::shared_ptr<const plan::Plan> &plan, int threads, uint64_t seed) {
  if (generates(*plan))
    return Error{"the plan generates tokens, which dtc-run generate does; compile with mode "
                 "\"train\" or \"forward\""};
  TrainOptions options;
  options.planPath = plan->model();
  options.threadsPerDevice = threads;
  std::unique_ptr<TrainSession> result(new TrainSession(seed));
  auto opened = openSession(plan, createCpuBackend(), options);
  if (!opened)
    return opened.error();
  result->session = std::move(*opened);
  auto scaling = lossScaling(options, findState(*plan, plan::State::LOSS_SCALE) != nullptr);
  if (!scaling)
    return scaling.error();
  result->lossScale = *scaling;
  return result;
}

/// Gives the states that have no value yet their initial ones.
MaybeError TrainSession::begin() {
  if (hasBegun)
    return std::nullopt;
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

Expected<std::vector<std::string>> TrainSession::loadWeights(const std::string &name,
                                                             Tensors weights) {
  std::lock_guard lock(mutex);
  return runtime::loadWeights(*session, WeightsFileShards::ofMemory(name, std::move(weights)));
}

Expected<std::vector<std::string>>
TrainSession::loadWeights(const std::vector<std::string> &paths) {
  std::lock_guard lock(mutex);
  return runtime::loadWeights(*session, paths);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

static std::string describe(const TensorInMemory &tensor) {
  return fmt::format("{}[{}]", tensor.dtype, fmt::join(tensor.shape, ", "));
}

MaybeError TrainSession::setInputs(Session &of, const Tensors &batch) const {
  for (const DataInput &input : dataInputsOf(of.plan())) {
    auto found = batch.find(input.name);
    if (found == batch.end()) {
      std::vector<std::string> names;
      for (const auto &[name, tensor] : batch)
        names.push_back("\"" + name + "\"");
      return Error{
          fmt::format("the batch has no \"{}\" ({}); it has {}", input.name, input.type.str(),
                      names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", ")))};
    }
    const TensorInMemory &given = found->second;
    if (given.shape != input.type.shape)
      return Error{fmt::format("\"{}\" of the batch is {}, expected {}, as in the example batch: a "
                               "plan is for one shape",
                               input.name, describe(given), input.type.str())};
    HostTensor value(input.type);
    if (MaybeError error =
            convertElements(given.dtype, given.bytes, 0, input.type.dtype, value.bytes.data()))
      return error->inContext(fmt::format("\"{}\" of the batch", input.name));
    if (MaybeError error = of.setInput(input.name, std::move(value)))
      return error;
  }
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
  metrics.tokensPerSecond = static_cast<double>(unitsOf(session->plan())) / std::max(seconds, 1e-9);
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
  // Where the loss is not finite, what must be zero is computed from what made it so.
  if (std::isfinite(metrics.loss.value_or(0)))
    if (MaybeError error = checkZeroMetrics(*session))
      return error->inContext(fmt::format("step {}", metrics.step));
  return metrics;
}

Expected<StepMetrics> TrainSession::step(const Tensors &batch, double learningRate) {
  std::lock_guard lock(mutex);
  if (!std::isfinite(learningRate) || learningRate < 0)
    return Error{fmt::format("the learning rate is {}, expected a finite number of at least 0",
                             learningRate)};
  if (MaybeError error = begin())
    return *error;
  auto started = std::chrono::steady_clock::now();
  if (MaybeError error = setInputs(*session, batch))
    return *error;
  const double rates[] = {learningRate};
  if (MaybeError error = session->setLearningRates(position.step, rates))
    return *error;
  if (MaybeError error = session->step())
    return error->inContext(fmt::format("step {}", position.step + 1));
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  ++position.step;
  ++position.nextBatch;
  lastRate = fmt::format("{}", learningRate);
  return metricsOf(seconds.count(), learningRate);
}

Expected<double> TrainSession::evaluate(const Tensors &batch) {
  std::lock_guard lock(mutex);
  Session *entry = trains(session->plan()) ? session->findEntry("evaluate") : session.get();
  if (!entry)
    return Error{"the plan has no entry point \"evaluate\"; a warning of the compilation says why"};
  if (MaybeError error = begin())
    return *error;
  if (MaybeError error = setInputs(*entry, batch))
    return *error;
  if (MaybeError error = entry->step())
    return error->inContext("evaluation");
  if (MaybeError error = checkZeroMetrics(*entry))
    return *error;
  Expected<std::optional<double>> loss = scalarOf(*entry, "loss");
  if (!loss)
    return loss.error();
  if (!*loss)
    return Error{"the plan has no scalar output \"loss\" to evaluate"};
  return **loss;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

Expected<std::map<std::string, HostTensor>> TrainSession::weights() {
  std::lock_guard lock(mutex);
  if (MaybeError error = begin())
    return *error;
  SavedWeights saved(session->plan());
  std::map<std::string, HostTensor> result;
  for (const auto &[name, type] : saved.tensorTypes()) {
    Expected<HostTensor> value = saved.read(*session, name);
    if (!value)
      return value.error();
    result.emplace(name, std::move(*value));
  }
  return result;
}

MaybeError TrainSession::saveWeights(const std::string &path) {
  std::lock_guard lock(mutex);
  if (MaybeError error = begin())
    return error;
  return runtime::saveWeights(*session, path);
}

Expected<std::string> TrainSession::saveCheckpoint(const std::string &path, int64_t keep) {
  std::lock_guard lock(mutex);
  if (!trains(session->plan()))
    return Error{"the plan does not train, so that there is no checkpoint to save"};
  if (keep < 0)
    return Error{fmt::format("keep is {}, expected 0 (all checkpoints) or more", keep)};
  if (MaybeError error = begin())
    return *error;
  Expected<CheckpointFolder> folder = CheckpointFolder::open(path);
  if (!folder)
    return folder.error();
  Expected<std::vector<int64_t>> steps = checkpointSteps(folder->path());
  if (!steps)
    return steps.error();
  if (!steps->empty() && !ownFolders.contains(folder->path()))
    return Error{fmt::format("{}: has checkpoints of another run, the last after step {}; load one "
                             "to go on from there, or give another folder",
                             path, steps->back())};
  CheckpointManifest manifest;
  Expected<RunIdentity> identity =
      identityOf(session->plan(), /*batches=*/1, seed, /*data=*/nullptr, Sampling::Epochs);
  if (!identity)
    return identity.error();
  manifest.identity = *identity;
  manifest.position = position;
  outcomes.addTo(manifest.position);
  manifest.learningRate = lastRate.empty() ? "not given yet" : lastRate;
  auto saver = CheckpointSaver::create(*session, *folder, keep);
  if (!saver)
    return saver.error();
  if (Expected<CheckpointSaver::Wait> copied = (*saver)->copy(); !copied)
    return copied.error();
  (*saver)->write(std::move(manifest));
  if (MaybeError error = (*saver)->finish())
    return *error;
  ownFolders.insert(folder->path());
  return folder->pathOf(position.step);
}

/// The checkpoint at the path, or the newest of those in it; `notes` says which were refused.
static Expected<Checkpoint> findCheckpoint(const std::string &path,
                                           std::vector<std::string> &notes) {
  std::error_code code;
  if (std::filesystem::exists(std::filesystem::path(path) / kManifestName, code)) {
    Expected<Checkpoint> found = Checkpoint::open(path);
    if (MaybeError error = found ? found->verify() : found.error())
      return *error;
    return found;
  }
  Expected<std::optional<Checkpoint>> newest = CheckpointFolder::follow(path).newest(notes);
  if (!newest)
    return newest.error();
  if (!*newest)
    return Error{fmt::format("{}: has no checkpoint", path)};
  return std::move(**newest);
}

Expected<std::vector<std::string>>
TrainSession::loadCheckpoint(const std::string &path, const std::set<std::string> &allowedChanges) {
  std::lock_guard lock(mutex);
  std::vector<std::string> notes;
  Expected<Checkpoint> source = findCheckpoint(path, notes);
  if (!source)
    return source.error();
  Expected<RunIdentity> identity =
      identityOf(session->plan(), /*batches=*/1, seed, /*data=*/nullptr, Sampling::Epochs);
  if (!identity)
    return identity.error();
  const CheckpointManifest &saved = source->manifest();
  // The data are the caller's.
  std::set<std::string> allowed = allowedChanges;
  allowed.insert("data");
  if (MaybeError error = checkIdentity(saved.identity, *identity, allowed, notes))
    return error->inContext(source->path());
  if (MaybeError error = startStepState(*session, lossScale, seed, saved.position.nextBatch))
    return *error;
  auto loaded = runtime::loadCheckpoint(*session, *source, allowed.contains("model"));
  if (!loaded)
    return loaded.error();
  notes.insert(notes.end(), loaded->begin(), loaded->end());
  position = saved.position;
  hasBegun = false;
  if (MaybeError error = session->initializeOtherStates(seed))
    return *error;
  Expected<StepState> state = readStepState(*session);
  if (!state)
    return state.error();
  if (state->stepsDone() != position.step)
    return Error{fmt::format("{}: is of step {}, but its step state counts {} steps; it is damaged",
                             source->path(), position.step, state->stepsDone())};
  outcomes = StepOutcomes(*state, position);
  hasBegun = true;
  ownFolders.insert(CheckpointFolder::follow(path).path());
  return notes;
}
