//===- SessionStates.cpp - Weights and checkpoints of a session -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "python/native/TrainSession.h"

#include "plan/PlanTypes.h"
#include "runtime/checkpoint/CheckpointSaver.h"
#include "runtime/checkpoint/LoadCheckpoint.h"
#include "runtime/checkpoint/RunIdentity.h"
#include "runtime/train/SavedWeights.h"
#include "runtime/train/StepState.h"
#include "runtime/train/Weights.h"
#include "support/AtomicFile.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace dtc;
using namespace dtc::python;
using namespace dtc::runtime;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// The notes of weights that are loaded: the outer parameters are then no longer theirs.
Expected<std::vector<std::string>>
TrainSession::afterLoading(Expected<std::vector<std::string>> notes) {
  outerIsStale |= bool(notes);
  return notes;
}

Expected<std::vector<std::string>> TrainSession::loadWeights(const std::string &name,
                                                             Tensors weights) {
  std::lock_guard lock(mutex);
  if (MaybeError error = joined.agree("load_state_dict", checkOpen(), describeAlike(weights)))
    return *error;
  return afterLoading(
      runtime::loadWeights(*session, WeightsFileShards::ofMemory(name, std::move(weights))));
}

Expected<std::vector<std::string>>
TrainSession::loadWeights(const std::vector<std::string> &paths) {
  std::lock_guard lock(mutex);
  if (MaybeError error = joined.agree("load_state_dict", checkOpen(),
                                      {{"path", fmt::format("{}", fmt::join(paths, " "))}}))
    return *error;
  return afterLoading(runtime::loadWeights(*session, paths));
}

Expected<std::map<std::string, HostTensor>> TrainSession::weights() {
  std::lock_guard lock(mutex);
  if (MaybeError error = joined.agree("state_dict", checkOpen()))
    return *error;
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
  if (MaybeError error = joined.agree("save_weights", checkOpen(), {{"path", path}}))
    return error;
  if (MaybeError error = begin())
    return error;
  SavedWeights saved(session->plan());
  std::optional<AtomicFile> file; // of the first process
  MaybeError refused = joined.processes.inFirst([&]() -> MaybeError {
    Expected<AtomicFile> created = AtomicFile::create(path);
    if (!created)
      return created.error();
    file = std::move(*created);
    return file->reserve(saved.numBytes());
  });
  if (refused)
    return refused;
  if (MaybeError error = file ? saved.write(*session, *file) : saved.gather(*session))
    return joined.failTogether(*error);
  return joined.processes.inFirst([&] { return file->commit(); });
}

//===----------------------------------------------------------------------===//
// Checkpoints
//===----------------------------------------------------------------------===//

/// Opens the folder in the first process, and follows it in the others.
Expected<CheckpointFolder> TrainSession::openToSave(const std::string &path) {
  std::optional<CheckpointFolder> folder;
  MaybeError refused = joined.processes.inFirst([&]() -> MaybeError {
    Expected<CheckpointFolder> opened = CheckpointFolder::open(path);
    if (!opened)
      return opened.error();
    Expected<std::vector<int64_t>> steps = checkpointSteps(opened->path());
    if (!steps)
      return steps.error();
    if (!steps->empty() && !ownFolders.contains(opened->path()))
      return Error{fmt::format("{}: has checkpoints of another run, the last after step {}; load "
                               "one to go on from there, or give another folder",
                               path, steps->back())};
    folder = std::move(*opened);
    return std::nullopt;
  });
  if (refused)
    return *refused;
  return folder ? std::move(*folder) : CheckpointFolder::follow(path);
}

Expected<std::string> TrainSession::saveCheckpoint(const std::string &path, int64_t keep) {
  std::lock_guard lock(mutex);
  MaybeError refused = checkOpen();
  if (!refused && !trains(session->plan()))
    refused = Error{"the plan does not train, so that there is no checkpoint to save"};
  if (!refused && keep < 0)
    refused = Error{fmt::format("keep is {}, expected 0 (all checkpoints) or more", keep)};
  if (MaybeError error =
          joined.agree("save", refused, {{"folder", path}, {"keep", std::to_string(keep)}}))
    return *error;
  if (MaybeError error = begin())
    return *error;
  Expected<CheckpointFolder> folder = openToSave(path);
  if (!folder)
    return folder.error();
  CheckpointManifest manifest;
  Expected<RunIdentity> identity =
      identityOf(session->plan(), batches, seed, /*data=*/nullptr, Sampling::Epochs);
  if (!identity)
    return identity.error();
  manifest.identity = *identity;
  manifest.position = position;
  outcomes.addTo(manifest.position);
  manifest.learningRate = lastRate.empty() ? "not given yet" : lastRate;
  auto saver = CheckpointSaver::create(*session, *folder, keep, joined.processes);
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

/// Finds the checkpoint in the first process, and opens it in all.
Expected<Checkpoint> TrainSession::openToLoad(const std::string &path,
                                              std::vector<std::string> &notes) {
  std::optional<Checkpoint> source;
  MaybeError refused = joined.processes.inFirst([&]() -> MaybeError {
    Expected<Checkpoint> found = findCheckpoint(path, notes);
    if (!found)
      return found.error();
    source = std::move(*found);
    return std::nullopt;
  });
  if (refused)
    return *refused;
  Expected<std::string> ofFirst = joined.processes.ofFirst(source ? source->path() : "");
  if (!ofFirst)
    return ofFirst.error();
  MaybeError error;
  if (!source) {
    Expected<Checkpoint> opened = Checkpoint::open(*ofFirst);
    if (opened)
      source = std::move(*opened);
    else
      error = opened.error().inContext("the folder has to be one that all processes see");
  }
  if (MaybeError any = joined.agree("load", error))
    return *any;
  return std::move(*source);
}

Expected<std::vector<std::string>>
TrainSession::loadCheckpoint(const std::string &path, const std::set<std::string> &allowedChanges) {
  std::lock_guard lock(mutex);
  MaybeError refused = checkOpen();
  for (const std::string &change : allowedChanges)
    if (!refused &&
        std::ranges::find(runtime::allowedChanges(), change) == runtime::allowedChanges().end())
      refused = Error{fmt::format("allow_change has \"{}\", expected some of {}", change,
                                  fmt::join(runtime::allowedChanges(), ", "))};
  if (MaybeError error = joined.agree(
          "load", refused,
          {{"path", path}, {"allow_change", fmt::format("{}", fmt::join(allowedChanges, ","))}}))
    return *error;
  std::vector<std::string> notes;
  Expected<Checkpoint> source = openToLoad(path, notes);
  if (!source)
    return source.error();
  Expected<RunIdentity> identity =
      identityOf(session->plan(), batches, seed, /*data=*/nullptr, Sampling::Epochs);
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
  outerIsStale = false;
  ownFolders.insert(CheckpointFolder::follow(path).path());
  return notes;
}
