//===- PipelineSchedule.cpp - Pipeline schedules --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/PipelineSchedule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <tuple>

using namespace dtc;

std::string PipelineUnit::str() const {
  return "FBW"[indexOf(kind)] + std::to_string(microbatch) + "@" + std::to_string(stage);
}

int dtc::stageDevice(const PipelineShape &shape, StagePlacement placement, int stage) {
  int device = stage % shape.devices;
  bool down = placement == StagePlacement::V && stage / shape.devices % 2 == 1;
  return down ? shape.devices - 1 - device : device;
}

int dtc::deviceStage(const PipelineShape &shape, StagePlacement placement, int device, int chunk) {
  bool down = placement == StagePlacement::V && chunk % 2 == 1;
  return chunk * shape.devices + (down ? shape.devices - 1 - device : device);
}

//===----------------------------------------------------------------------===//
// The rules
//===----------------------------------------------------------------------===//

/// Interleaved schedules take a chunk after the other for a group of at least `devices`
/// microbatches, so that the first comes back to a device when it has done the last of the group.
/// The last group also has the remainder of the division by `devices`.
static int getGroupCount(const PipelineShape &shape) {
  return std::max(1, shape.microbatches / shape.devices);
}
static int getGroup(const PipelineShape &shape, int microbatch) {
  return std::min(microbatch / shape.devices, getGroupCount(shape) - 1);
}
static int getLargestGroup(const PipelineShape &shape) {
  return shape.microbatches - (getGroupCount(shape) - 1) * shape.devices;
}

static int unlimited(const PipelineShape &, int) { return std::numeric_limits<int>::max(); }
static std::array<int, 2> firstComesFirst(const PipelineShape &, const PipelineUnit &) {
  return {};
}

static const ScheduleRule kRules[] = {
    // A microbatch after the other; one device works at a time.
    {.name = "naive",
     .inFlight = [](const PipelineShape &, int) { return 1; },
     .awaitingBackward = unlimited,
     .unitPriority = firstComesFirst},
    // Forward for all microbatches, then backward for all.
    {.name = "gpipe",
     .inFlight = unlimited,
     .awaitingBackward = unlimited,
     .unitPriority = firstComesFirst},
    // As few microbatches in flight as keep a device busy: a message to the last stage and back
    // passes each of the p-d devices from this one on.
    {.name = "1f1b",
     .inFlight = [](const PipelineShape &shape, int device) { return shape.devices - device; },
     .awaitingBackward = unlimited,
     .unitPriority = firstComesFirst},
    // The last device begins backward when one microbatch is in the last chunk and a group in each
    // other; a device before it begins two ticks, one on each way, later.
    {.name = "interleaved",
     .minChunks = 2,
     .maxChunks = std::numeric_limits<int>::max(),
     .inFlight =
         [](const PipelineShape &shape, int device) {
           return 2 * (shape.devices - 1 - device) + (shape.chunks - 1) * getLargestGroup(shape) +
                  1;
         },
     .awaitingBackward = unlimited,
     .unitPriority = [](const PipelineShape &shape,
                        const PipelineUnit &unit) -> std::array<int, 2> {
       int chunk = unit.stage / shape.devices;
       return {getGroup(shape, unit.microbatch), unit.kind == StagePass::Forward ? chunk : -chunk};
     }},
    // 1f1b, except that device d leaves the last d units of Weight until nothing else is ready: at
    // the end, while the gradients are on their way to the first stage.
    {.name = "zb-h1",
     .splitsWeight = true,
     .inFlight = [](const PipelineShape &shape, int) { return shape.devices; },
     .awaitingBackward = [](const PipelineShape &shape,
                            int device) { return shape.devices - device; },
     .unitPriority = firstComesFirst},
    // The activations of 1f1b's device 0 on every device, in half stages. What is farther from the
    // place where others wait for it goes first: the second chunk forward, the first one backward.
    {.name = "zb-v",
     .placement = StagePlacement::V,
     .splitsWeight = true,
     .minChunks = 2,
     .maxChunks = 2,
     .inFlight = [](const PipelineShape &shape, int) { return 2 * shape.devices; },
     .awaitingBackward = unlimited,
     .unitPriority = [](const PipelineShape &shape,
                        const PipelineUnit &unit) -> std::array<int, 2> {
       int chunk = unit.stage / shape.devices;
       return {unit.kind == StagePass::Forward ? -chunk : chunk};
     }},
};

llvm::ArrayRef<ScheduleRule> dtc::getScheduleRules() { return kRules; }

std::optional<ScheduleRule> dtc::findScheduleRule(llvm::StringRef name) {
  const ScheduleRule *found = llvm::find_if(kRules, [&](auto &rule) { return rule.name == name; });
  return found == std::end(kRules) ? std::nullopt : std::optional(*found);
}

std::string dtc::listScheduleNames() {
  std::string names;
  for (const ScheduleRule &rule : kRules)
    names += (names.empty() ? "" : ", ") + rule.name.str();
  return names;
}

MaybeError dtc::checkShape(const PipelineShape &shape, const ScheduleRule &rule) {
  auto atLeastOne = [](int number, const char *what) {
    return Error{"a pipeline of " + std::to_string(number) + " " + what +
                 "; expected at least one"};
  };
  if (shape.devices < 1)
    return atLeastOne(shape.devices, "devices");
  if (shape.microbatches < 1)
    return atLeastOne(shape.microbatches, "microbatches");
  if (shape.chunks >= rule.minChunks && shape.chunks <= rule.maxChunks)
    return std::nullopt;
  std::string expected = std::to_string(rule.minChunks);
  if (rule.maxChunks != rule.minChunks)
    expected = "at least " + expected;
  std::string text = std::to_string(shape.chunks) + (shape.chunks == 1 ? " stage" : " stages") +
                     " on each device; the schedule " + rule.name.str() + " expects " + expected;
  if (rule.minChunks > 1 && shape.chunks == 1)
    text += "; with one, choose 1f1b or zb-h1";
  if (rule.maxChunks == 1 && shape.chunks > 1)
    text += "; with more, choose interleaved";
  return Error{text};
}

//===----------------------------------------------------------------------===//
// The scheduler
//===----------------------------------------------------------------------===//

namespace {

/// The schedule so far, by ticks.
///
/// No shape that a rule supports brings it to a halt. Suppose that nothing can be done and
/// something is left. A Forward is left, since without one Backwards and Weights could go on. Take
/// the highest stage s with a Forward whose inputs are there; only limits hold it back. No
/// microbatch is in flight on s or a higher stage of the same device: it would have a Forward left
/// on a stage above s, with inputs there, or a Backward that can go on. So all in flight on the
/// device are on chunks below that of s. These never fill the place kept free for each chunk above
/// them (see `mayBegin`), and the limits hold nothing back: a contradiction.
class ListScheduler {
public:
  ListScheduler(const PipelineShape &shape, const ScheduleRule &rule)
      : shape(shape), rule(rule), stages(shape.stages()), inFlight(shape.stages()),
        awaitingBackward(shape.stages()) {}

  std::vector<std::vector<PipelineUnit>> run() {
    std::vector<std::vector<PipelineUnit>> orders(shape.devices);
    int left = shape.stages() * shape.microbatches * (rule.splitsWeight ? 3 : 2);
    while (left > 0) {
      int before = left;
      // Choose for all devices before any unit of this tick counts as done.
      for (int device = 0; device < shape.devices; ++device)
        if (std::optional<PipelineUnit> unit = choose(device)) {
          begin(*unit);
          orders[device].push_back(*unit);
          --left;
        }
      if (left == before)
        llvm::report_fatal_error("a schedule's limits are below the number of chunks");
      for (auto &order : orders)
        if (!order.empty())
          finish(order.back());
    }
    return orders;
  }

private:
  /// Numbers of microbatches, by kind: units of one kind and stage go in the order of microbatches.
  struct Progress {
    std::array<int, 3> begun = {};
    std::array<int, 3> done = {};
  };

  std::optional<PipelineUnit> choose(int device) const {
    for (StagePass kind : {StagePass::Forward, StagePass::Backward, StagePass::Weight}) {
      std::optional<PipelineUnit> best;
      auto order = [&](const PipelineUnit &unit) {
        return std::make_tuple(rule.unitPriority(shape, unit), unit.microbatch, unit.stage);
      };
      for (int chunk = 0; chunk < shape.chunks; ++chunk) {
        int stage = deviceStage(shape, rule.placement, device, chunk);
        PipelineUnit unit{kind, stages[stage].begun[indexOf(kind)], stage};
        if (isReady(unit) && (kind != StagePass::Forward || mayBegin(device, chunk)) &&
            (!best || order(unit) < order(*best)))
          best = unit;
      }
      if (best)
        return best;
    }
    return std::nullopt;
  }

  bool isReady(const PipelineUnit &unit) const {
    auto isDone = [&](StagePass kind, int stage) {
      return stages[stage].done[indexOf(kind)] > unit.microbatch;
    };
    if (unit.microbatch == shape.microbatches)
      return false;
    switch (unit.kind) {
    case StagePass::Forward:
      return unit.stage == 0 || isDone(StagePass::Forward, unit.stage - 1);
    case StagePass::Backward:
      return isDone(StagePass::Forward, unit.stage) &&
             (unit.stage + 1 == shape.stages() || isDone(StagePass::Backward, unit.stage + 1));
    case StagePass::Weight:
      return rule.splitsWeight && isDone(StagePass::Backward, unit.stage);
    }
    return false;
  }

  /// Whether the limits allow one more Forward of a chunk, with a place left for each chunk above.
  bool mayBegin(int device, int chunk) const {
    int inFlightLimit = rule.inFlight(shape, device);
    int backwardLimit = rule.awaitingBackward(shape, device);
    int inFlightBelow = 0, awaitingBelow = 0;
    for (int c = 0; c < shape.chunks; ++c) {
      int stage = deviceStage(shape, rule.placement, device, c), kept = shape.chunks - 1 - c;
      inFlightBelow += inFlight[stage];
      awaitingBelow += awaitingBackward[stage];
      if (c >= chunk &&
          (inFlightBelow >= inFlightLimit - kept || awaitingBelow >= backwardLimit - kept))
        return false;
    }
    return true;
  }

  void begin(const PipelineUnit &unit) {
    ++stages[unit.stage].begun[indexOf(unit.kind)];
    inFlight[unit.stage] += unit.kind == StagePass::Forward;
    awaitingBackward[unit.stage] += unit.kind == StagePass::Forward;
    awaitingBackward[unit.stage] -= unit.kind == StagePass::Backward;
    inFlight[unit.stage] -=
        unit.kind == (rule.splitsWeight ? StagePass::Weight : StagePass::Backward);
  }

  void finish(const PipelineUnit &unit) {
    stages[unit.stage].done[indexOf(unit.kind)] = unit.microbatch + 1;
  }

  const PipelineShape &shape;
  const ScheduleRule &rule;
  std::vector<Progress> stages;
  std::vector<int> inFlight; ///< by stage, as `awaitingBackward`
  std::vector<int> awaitingBackward;
};

} // namespace

PipelineSchedule dtc::buildSchedule(const PipelineShape &shape, const ScheduleRule &rule) {
  assert(!checkShape(shape, rule));
  return {shape, rule.placement, rule.splitsWeight, ListScheduler(shape, rule).run()};
}
