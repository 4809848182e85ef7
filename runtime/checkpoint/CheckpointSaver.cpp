//===- CheckpointSaver.cpp - Asynchronous writing of checkpoints ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/CheckpointSaver.h"

#include "plan/PlanTypes.h"
#include "runtime/checkpoint/PositionedFile.h"
#include "support/Nonfinite.h"
#include "support/StartThread.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <sys/resource.h>

namespace dtc::runtime {

CheckpointSaver::CheckpointSaver(Session &session, const CheckpointFolder &folder, int64_t keep,
                                 Processes processes)
    : session(session), folder(folder), keep(keep), states(savedStatesOf(session.plan())),
      fileMap(typesOf(states)), processes(std::move(processes)) {}

CheckpointSaver::~CheckpointSaver() {
  stopsPopulating = true;
  (void)finishPopulating();
  if (thread.joinable())
    thread.join();
}

uint64_t CheckpointSaver::copyBytes(const plan::Plan &plan) {
  return CheckpointFileMap(typesOf(savedStatesOf(plan))).copyBytes();
}

Expected<std::unique_ptr<CheckpointSaver>> CheckpointSaver::create(Session &session,
                                                                   const CheckpointFolder &folder,
                                                                   int64_t keep,
                                                                   Processes processes) {
  std::unique_ptr<CheckpointSaver> saver(
      new CheckpointSaver(session, folder, keep, std::move(processes)));
  if (MaybeError error = saver->planPieces())
    return *error;
  saver->startPopulating();
  return saver;
}

void CheckpointSaver::startPopulating() {
  constexpr size_t kAtOnce = size_t{64} << 20; // a saver that ends early waits for one such part
  populating = startThread("the memory of checkpoints", [this] {
    for (size_t done = 0; done < memory.size() && !stopsPopulating && !populated; done += kAtOnce)
      populated = memory.populate(done, kAtOnce);
  });
}

MaybeError CheckpointSaver::finishPopulating() {
  if (populating.joinable())
    populating.join();
  return populated;
}

/// Gives each piece its place in the copy. A tensor that is on devices of this process as a whole
/// is one piece; any other tensor has a piece for each shard. Where there are several processes,
/// none has all tensors: their copies have no gaps where others have something.
MaybeError CheckpointSaver::planPieces() {
  std::map<std::string, std::vector<StateShard>> shardsOf; // by state
  for (StateShard &shard : session.stateShards())
    if (shard.isFirst)
      shardsOf[shard.state->name()].push_back(std::move(shard));
  auto bytesOf = [](const StateShard &shard) {
    return TensorType{toDType(shard.state->dtype()), shard.region.size}.numBytes();
  };
  uint64_t most = 0;
  for (const auto &[name, own] : shardsOf) {
    most += PositionedFile::kBlockBytes;
    for (const StateShard &shard : own)
      most += bytesOf(shard);
  }
  Expected<PageMemory> allocated =
      PageMemory::allocate(processes.areSeveral() ? most : fileMap.copyBytes());
  if (!allocated)
    return allocated.error().inContext("the copy for checkpoints");
  memory = std::move(*allocated);
  uint64_t end = 0;
  for (const auto &[name, saved] : states) {
    TensorType type = savedTypeOf(saved);
    const CheckpointFileMap::Place &place = fileMap.placeOf(name);
    std::vector<StateShard> &own = shardsOf[saved.state->name()];
    if (own.empty())
      continue;
    // Bytes that are laid out in memory as in the file go to the disk directly.
    end = processes.areSeveral() ? end + (place.offset - end) % PositionedFile::kBlockBytes
                                 : place.copyOffset;
    std::byte *begin = memory.data() + end;
    int64_t held = 0;
    for (const StateShard &shard : own) {
      held += TensorType{type.dtype, shard.region.size}.numElements();
      end += bytesOf(shard);
    }
    bool isWhole = held == type.numElements();
    if (isWhole)
      pieces.push_back(
          {name, type.shape, std::vector<int64_t>(type.shape.size()), type.shape, begin});
    for (StateShard &shard : own) {
      ShardRegion &region = shard.region;
      if (!isWhole) {
        pieces.push_back({name, region.global, region.offset, region.size, begin});
        region.offset.assign(region.offset.size(), 0);
        region.global = region.size;
      }
      shards.push_back({shard, begin});
      if (!isWhole)
        begin += bytesOf(shard);
    }
  }
  return std::nullopt;
}

Expected<CheckpointSaver::Wait> CheckpointSaver::copy() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  if (MaybeError error = finish())
    return *error;
  if (MaybeError error = finishPopulating())
    return error->inContext("the copy for checkpoints");
  Clock::time_point idle = Clock::now();
  if (MaybeError error = session.readShards(shards))
    return *error;
  return Wait{std::chrono::duration<double>(idle - begin).count(),
              std::chrono::duration<double>(Clock::now() - idle).count()};
}

void CheckpointSaver::write(CheckpointManifest given) {
  manifest = std::move(given);
  manifest.producer = "dtc " DTC_VERSION;
  manifest.model = session.plan().model();
  manifest.planVersion = session.plan().version();
  manifest.planProducer = session.plan().producer();
  for (const auto &[name, saved] : states) {
    CheckpointTensor &tensor = manifest.tensors[name];
    tensor.parameter = saved.rounded ? "" : saved.state->parameter();
    tensor.isStepState = isStepState(saved.state->kind());
  }
  isDone = false;
  outcome.reset();
  if (processes.areSeveral())
    outcome =
        processes.inFirst([&] { return beginCheckpoint(folder, fileMap, manifest.position.step); });
  thread = startThread("the checkpoint", [this] {
    try {
      if (!outcome)
        outcome = writeNow();
    } catch (const std::exception &exception) {
      outcome = Error{fmt::format("{}: {}", folder.path(), exception.what())};
    }
    isDone = true;
  });
}

/// Whether the copied weights are a result. Where parameters have master weights, these are copied.
MaybeError CheckpointSaver::checkWeights() const {
  for (const CheckpointPiece &piece : pieces) {
    plan::State::Kind kind = states.at(piece.tensor).state->kind();
    if (kind != plan::State::PARAMETER && kind != plan::State::MASTER_WEIGHTS)
      continue;
    DType dtype = fileMap.tensors().at(piece.tensor).dtype;
    if (auto found =
            findNonfinite(dtype, std::span(piece.data, TensorType{dtype, piece.size}.numBytes())))
      return Error{fmt::format("parameter \"{}\" has {}: weights that are not finite are not "
                               "saved; lower the learning rate",
                               piece.tensor, found->value)};
  }
  return std::nullopt;
}

/// Runs on the thread. Where there are several processes, each writes its pieces; the callers do
/// what processes do together.
MaybeError CheckpointSaver::writeNow() {
  if (MaybeError error = checkWeights())
    return error;
  if (!processes.areSeveral()) {
    if (MaybeError error = writeCheckpoint(folder, fileMap, pieces, manifest))
      return error;
    return removeOld();
  }
  auto regions = writePieces(folder, fileMap, pieces, manifest.position.step);
  if (!regions)
    return regions.error();
  written = std::move(*regions);
  return std::nullopt;
}

MaybeError CheckpointSaver::removeOld() const {
  return keep > 0 ? folder.keepNewest(manifest.position.step, keep) : std::nullopt;
}

/// `texts` are the regions of each process.
MaybeError CheckpointSaver::commitFirst(const std::vector<std::string> &texts) const {
  CheckpointRegions all;
  for (const std::string &text : texts) {
    Expected<CheckpointRegions> regions = parseRegions(text);
    if (!regions)
      return regions.error();
    for (auto &[name, added] : *regions)
      all[name].insert(all[name].end(), added.begin(), added.end());
  }
  if (MaybeError failed = commitCheckpoint(folder, fileMap, all, manifest))
    return failed;
  return removeOld();
}

/// Once all have written their pieces.
MaybeError CheckpointSaver::commitTogether() {
  Expected<std::vector<std::string>> texts = processes.all(toJson(written));
  if (!texts)
    return texts.error();
  return processes.inFirst([&] { return commitFirst(*texts); });
}

/// The error of any process is that of all.
MaybeError CheckpointSaver::endTogether() {
  Expected<std::vector<std::string>> errors = processes.all(outcome ? outcome->message : "");
  // A process that does not answer may still write.
  if (!errors)
    return outcome ? outcome : errors.error();
  auto first = std::ranges::find_if(*errors, [](const std::string &text) { return !text.empty(); });
  MaybeError error;
  if (first == errors->end())
    error = processes.areSeveral() ? commitTogether() : std::nullopt;
  else
    error = processes.areSeveral()
                ? Error{fmt::format("process {}: {}", first - errors->begin(), *first)}
                : Error{*first};
  if (error && processes.isFirst())
    folder.discard(manifest.position.step);
  return error;
}

MaybeError CheckpointSaver::poll() {
  if (!thread.joinable())
    return failure;
  Expected<bool> anyWrites = processes.any(!isDone);
  if (!anyWrites)
    return anyWrites.error();
  return *anyWrites ? std::nullopt : finish();
}

MaybeError CheckpointSaver::finish() {
  if (!thread.joinable())
    return failure;
  thread.join();
  outcome = endTogether();
  if (outcome)
    failure = Error{fmt::format("the checkpoint of step {} is not complete: {}",
                                manifest.position.step, outcome->message)};
  else
    savedStep = manifest.position.step;
  return failure;
}

} // namespace dtc::runtime
