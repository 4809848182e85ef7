//===- CheckpointSaver.cpp - Saving while training goes on ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/CheckpointSaver.h"

#include "plan/PlanTypes.h"
#include "support/StartThread.h"

#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <sys/resource.h>

namespace dtc::runtime {

CheckpointSaver::CheckpointSaver(Session &session, const CheckpointFolder &folder, int64_t keep)
    : session(session), folder(folder), keep(keep), states(savedStatesOf(session.plan())),
      layout(typesOf(states)) {}

CheckpointSaver::~CheckpointSaver() {
  if (thread.joinable())
    thread.join();
}

uint64_t CheckpointSaver::copyBytes(const plan::Plan &plan) {
  return CheckpointLayout(typesOf(savedStatesOf(plan))).copyBytes();
}

Expected<std::unique_ptr<CheckpointSaver>>
CheckpointSaver::create(Session &session, const CheckpointFolder &folder, int64_t keep) {
  std::unique_ptr<CheckpointSaver> saver(new CheckpointSaver(session, folder, keep));
  if (MaybeError error = saver->planPieces())
    return *error;
  return saver;
}

/// Gives each piece its place in the copy. A tensor all of which is on devices of this process is
/// one piece; of any other, each shard is one.
MaybeError CheckpointSaver::planPieces() {
  Expected<PageMemory> allocated = PageMemory::allocate(layout.copyBytes());
  if (!allocated)
    return allocated.error().inContext("the copy for checkpoints");
  memory = std::move(*allocated);
  std::map<std::string, std::vector<StateShard>> shardsOf; // by state
  for (StateShard &shard : session.stateShards())
    if (shard.isFirst)
      shardsOf[shard.state->name()].push_back(std::move(shard));
  for (const auto &[name, saved] : states) {
    TensorType type = fileTypeOf(*saved.state);
    std::byte *next = memory.data() + layout.placeOf(name).copyOffset;
    int64_t held = 0;
    std::vector<StateShard> &own = shardsOf[saved.state->name()];
    for (const StateShard &shard : own)
      held += TensorType{type.dtype, shard.region.size}.numElements();
    bool isWhole = held == type.numElements();
    if (isWhole)
      pieces.push_back(
          {name, type.shape, std::vector<int64_t>(type.shape.size()), type.shape, next});
    for (StateShard &shard : own) {
      ShardRegion &region = shard.region;
      if (!isWhole) {
        pieces.push_back({name, region.global, region.offset, region.size, next});
        region.offset.assign(region.offset.size(), 0);
        region.global = region.size;
      }
      shards.push_back({shard, next});
      if (!isWhole)
        next += TensorType{type.dtype, region.size}.numBytes();
    }
  }
  return std::nullopt;
}

Expected<CheckpointSaver::Wait> CheckpointSaver::copy() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  if (MaybeError error = finish())
    return *error;
  Clock::time_point idle = Clock::now();
  if (MaybeError error = session.readShards(shards))
    return *error;
  return Wait{std::chrono::duration<double>(idle - begin).count(),
              std::chrono::duration<double>(Clock::now() - idle).count()};
}

void CheckpointSaver::write(CheckpointManifest manifest) {
  manifest.producer = "dtc " DTC_VERSION;
  manifest.model = session.plan().model();
  manifest.planVersion = session.plan().version();
  manifest.planProducer = session.plan().producer();
  for (const auto &[name, saved] : states) {
    CheckpointTensor &tensor = manifest.tensors[name];
    tensor.parameter = saved.rounded ? "" : saved.state->parameter();
    tensor.isStepState = isStepState(saved.state->kind());
  }
  writingStep = manifest.position.step;
  isDone = false;
  thread = startThread("the checkpoint", [this, manifest = std::move(manifest)]() mutable {
    try {
      outcome = writeNow(std::move(manifest));
    } catch (const std::exception &exception) {
      outcome = Error{fmt::format("{}: {}", folder.path(), exception.what())};
    }
    isDone = true;
  });
}

MaybeError CheckpointSaver::writeNow(CheckpointManifest manifest) const {
  int64_t step = manifest.position.step;
  if (MaybeError error = writeCheckpoint(folder, layout, pieces, std::move(manifest)))
    return error;
  return keep > 0 ? folder.keepNewest(step, keep) : std::nullopt;
}

MaybeError CheckpointSaver::poll() { return isDone ? finish() : std::nullopt; }

MaybeError CheckpointSaver::finish() {
  if (!thread.joinable())
    return failure;
  thread.join();
  if (outcome)
    failure = Error{fmt::format("the checkpoint of step {} is not complete: {}", writingStep,
                                outcome->message)};
  else
    savedStep = writingStep;
  return failure;
}

} // namespace dtc::runtime
