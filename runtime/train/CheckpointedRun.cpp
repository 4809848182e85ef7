//===- CheckpointedRun.cpp - Saving and resuming a training run -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/CheckpointedRun.h"

#include "plan/PlanTypes.h"
#include "runtime/checkpoint/LoadCheckpoint.h"
#include "runtime/checkpoint/RunIdentity.h"
#include "support/Format.h"
#include "support/Memory.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

/// Takes the lock if the run has steps to save, as far as that is known.
Expected<CheckpointFolder> CheckpointedRun::openFolder(const TrainOptions &options,
                                                       std::optional<int64_t> steps) {
  if (options.needsCheckpoint)
    return CheckpointFolder::follow(options.checkpointPath);
  if (!options.resume || !steps)
    return CheckpointFolder::open(options.checkpointPath);
  Expected<std::vector<int64_t>> saved = checkpointSteps(options.checkpointPath);
  if (!saved)
    return saved.error();
  // The newest one may be refused, and one before it taken.
  bool isOver = !saved->empty() && saved->front() >= *steps;
  return isOver ? CheckpointFolder::follow(options.checkpointPath)
                : CheckpointFolder::open(options.checkpointPath);
}

Expected<std::unique_ptr<CheckpointedRun>> CheckpointedRun::open(const plan::Plan &plan,
                                                                 const TrainOptions &options,
                                                                 std::optional<int64_t> steps,
                                                                 Note note) {
  if (options.checkpointPath.empty())
    return std::unique_ptr<CheckpointedRun>();
  if (!trains(plan))
    return Error{options.needsCheckpoint
                     ? "--checkpoint: the plan does not train, and checkpoints are of plans that "
                       "do; give weights by --init"
                     : "--checkpoint: the plan does not train, so that there is nothing to save; "
                       "leave the flag out"};
  std::unique_ptr<CheckpointedRun> run;
  const Processes &processes = options.processes;
  MaybeError error = processes.inFirst([&]() -> MaybeError {
    Expected<CheckpointFolder> folder = openFolder(options, steps);
    if (!folder)
      return folder.error();
    run.reset(new CheckpointedRun(std::move(*folder), options, std::move(note)));
    return run->findNewest();
  });
  if (error)
    return *error;
  if (!processes.isFirst())
    run.reset(new CheckpointedRun(CheckpointFolder::follow(options.checkpointPath), options,
                                  std::move(note)));
  if (processes.areSeveral())
    if (MaybeError failure = run->followFirst())
      return *failure;
  if (run->source) {
    run->findStart(samplesOfBatch(plan));
    run->note(options.needsCheckpoint
                  ? fmt::format("--checkpoint: the states after step {}, from {}", run->start.step,
                                run->source->path())
                  : fmt::format("--resume: goes on after step {}, from {}", run->start.step,
                                run->source->path()));
  }
  return run;
}

/// Finds what to go on from, or that there is nothing.
MaybeError CheckpointedRun::findNewest() {
  if (!options.resume) {
    Expected<std::vector<int64_t>> steps = checkpointSteps(folder.path());
    if (!steps)
      return steps.error();
    if (!steps->empty())
      return Error{fmt::format("--checkpoint {}: has checkpoints of another run, the last after "
                               "step {}; give --resume to go on from there, or another folder",
                               options.checkpointPath, steps->back())};
    return std::nullopt;
  }
  std::vector<std::string> refused;
  auto newest = folder.newest(refused);
  if (!newest)
    return newest.error().inContext(flag());
  for (const std::string &text : refused)
    note(fmt::format("{}: a checkpoint is not used: {}", flag(), text));
  if (!*newest && options.needsCheckpoint)
    return Error{fmt::format("--checkpoint: {} has no complete checkpoint; expected a folder that "
                             "dtc-run train --checkpoint has written",
                             options.checkpointPath)};
  if (!*newest)
    note(fmt::format("--resume: {} has no checkpoint yet; the run starts anew",
                     options.checkpointPath));
  source = std::move(*newest);
  return std::nullopt;
}

/// Opens in the other processes what the first one goes on from.
MaybeError CheckpointedRun::followFirst() {
  Expected<std::string> path = options.processes.ofFirst(source ? source->path() : "");
  if (!path)
    return path.error();
  if (source || path->empty())
    return std::nullopt;
  Expected<Checkpoint> opened = Checkpoint::open(*path);
  if (!opened)
    return opened.error().inContext(fmt::format(
        "{}: the folder of the checkpoints has to be one that all processes see", flag()));
  source = std::move(*opened);
  return std::nullopt;
}

/// Where the saved part of the run has ended, in batches of this plan.
void CheckpointedRun::findStart(int64_t samples) {
  start = source->manifest().position;
  copiedStep = start.step;
  int64_t before = source->manifest().identity.samples;
  // Samples that are drawn at random depend on the number of their batch: a number that has been
  // would give the same ones again.
  if (options.sampling != Sampling::Epochs || samples == 0 || before == 0 || samples == before)
    return;
  int64_t seen = start.nextBatch * before;
  start.nextBatch = seen / samples;
  if (int64_t again = seen % samples)
    positionNote =
        fmt::format("the {} samples that the run has seen are no whole number of batches of {}; "
                    "the last {} of them are seen twice",
                    seen, samples, again);
}

MaybeError CheckpointedRun::load(Session &session, const RunIdentity &now,
                                 const LearningRateSchedule &schedule, bool hasSteps) {
  identity = now;
  learningRate = schedule.str();
  if (!source)
    return std::nullopt;
  const CheckpointManifest &saved = source->manifest();
  std::vector<std::string> changes;
  if (hasSteps) {
    if (MaybeError error = checkIdentity(saved.identity, now, options.allowedChanges, changes))
      return error->inContext(fmt::format("--resume: {}", source->path()));
    if (saved.learningRate != learningRate)
      changes.push_back(
          fmt::format("the learning rate was {}, and is {}", saved.learningRate, learningRate));
    if (!positionNote.empty())
      changes.push_back(positionNote);
  }
  auto notes = loadCheckpoint(session, *source, options.allowedChanges.count("model") > 0);
  if (!notes)
    return notes.error().inContext(flag());
  changes.insert(changes.end(), notes->begin(), notes->end());
  for (const std::string &text : changes)
    note(fmt::format("{}: {}", flag(), text));
  return std::nullopt;
}

MaybeError CheckpointedRun::checkMemory(const Session &session) const {
  const PreparedPlan &prepared = session.getPrepared();
  auto devices = static_cast<uint64_t>(session.numDevices()) / prepared.programs.size();
  uint64_t needed = 0;
  for (size_t i = 0; i < prepared.programs.size(); ++i)
    needed += devices * (prepared.arenaBytes(i) + prepared.workspaceBytes(i));
  uint64_t copy = CheckpointSaver::copyBytes(session.plan());
  auto [available, holder] = memoryLimit();
  if (needed + copy <= available)
    return std::nullopt;
  return Error{fmt::format("--checkpoint: the copy of the states that is saved needs {} beside the "
                           "{} of the plan, but {} has {}; compile for smaller shards or a smaller "
                           "batch, or leave --checkpoint out",
                           formatBytes(copy), formatBytes(needed), holder, formatBytes(available))};
}

MaybeError CheckpointedRun::prepareToSave(Session &session) {
  if (MaybeError error = checkMemory(session))
    return error;
  auto created =
      CheckpointSaver::create(session, folder, options.keepCheckpoints, options.processes);
  if (!created)
    return created.error();
  saver = std::move(*created);
  lastBegun = Clock::now();
  return std::nullopt;
}

std::string CheckpointedRun::describe() const {
  if (!saver)
    return options.needsCheckpoint ? fmt::format("checkpoints: {}", folder.path())
                                   : fmt::format("checkpoints: {}; the run has no steps, and saves "
                                                 "none",
                                                 folder.path());
  std::string kept = options.keepCheckpoints == 0 ? "all are kept"
                     : options.keepCheckpoints == 1
                         ? "the newest is kept"
                         : fmt::format("the newest {} are kept", options.keepCheckpoints);
  return fmt::format("checkpoints: {}, every {}, {}; each takes {} of disk, and a copy to save "
                     "from {} of memory",
                     folder.path(), formatInterval(options.checkpointEvery), kept,
                     formatBytes(saver->fileBytes()), formatBytes(saver->memoryBytes()));
}

bool CheckpointedRun::isDueByClock() const {
  return goesByClock() && std::chrono::duration<double>(Clock::now() - lastBegun).count() >=
                              options.checkpointEvery.seconds;
}

Expected<bool> CheckpointedRun::isDue(int64_t step) const {
  if (goesByClock()) // the clocks of processes differ
    return options.processes.any(isDueByClock());
  return step % options.checkpointEvery.steps == 0;
}

MaybeError CheckpointedRun::copy(StepMetrics &metrics) {
  Expected<CheckpointSaver::Wait> wait = saver->copy();
  if (!wait)
    return wait.error();
  metrics.checkpointWaitSeconds = wait->earlierSeconds;
  metrics.checkpointCopySeconds = wait->copySeconds;
  lastBegun = Clock::now();
  return std::nullopt;
}

void CheckpointedRun::write(int64_t step, const StepOutcomes &outcomes) {
  CheckpointManifest manifest;
  manifest.identity = identity;
  manifest.position.step = step;
  manifest.position.nextBatch = firstBatch(step + 1);
  manifest.position.outerForgotten = outerForgotten();
  outcomes.addTo(manifest.position);
  manifest.learningRate = learningRate;
  copiedStep = step;
  saver->write(std::move(manifest));
}

Expected<std::string> CheckpointedRun::finish() {
  if (!saver)
    return std::string();
  if (MaybeError error = saver->finish())
    return *error;
  return saver->lastStep() == 0 ? "" : folder.pathOf(saver->lastStep());
}

} // namespace dtc::runtime
