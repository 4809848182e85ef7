//===- StepSimulator.cpp - The simulation of a step -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/StepSimulator.h"

#include "simulator/DeviceLanes.h"
#include "simulator/StepProgress.h"
#include "simulator/TransferChannels.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <utility>

namespace dtc {

namespace {

/// Lets the devices go through their schedules.
class Simulator {
public:
  Simulator(const StepWork &work, bool keepCollectives)
      : work(work), progress(work), lanes(progress, keepCollectives),
        transfers(progress, [this](size_t p) { advance(p); }) {}

  Expected<StepSimulation> run() {
    for (size_t p = 0; p < progress.devices.size(); ++p)
      advance(p);
    while (!progress.failure) {
      std::optional<FlowOwner> owner = progress.goToNextEnd();
      if (!owner)
        break;
      finish(*owner);
    }
    if (MaybeError error = progress.failure ? progress.failure : checkEnd())
      return *error;
    summarize();
    return std::move(progress.result);
  }

private:
  void finish(const FlowOwner &owner) {
    switch (owner.kind) {
    case FlowOwner::Computing:
      progress.finishComputing(owner.device);
      ++progress.devices[owner.device].step;
      advance(owner.device);
      break;
    case FlowOwner::Operation:
      if (lanes.finish(owner.device, owner.lane))
        advance(owner.device);
      break;
    case FlowOwner::Transfer:
      transfers.finish(owner.channel);
      break;
    }
  }

  /// Goes on until the device computes, waits or has ended.
  void advance(size_t p) {
    DeviceProgress &device = progress.devices[p];
    while (!progress.hasEnded(p) && !progress.failure) {
      const std::vector<SimulatedOperation> &steps = progress.stepsOf(p);
      if (!device.isInTask) {
        device.isInTask = true;
        progress.beginInterval(p);
      }
      for (; device.step < steps.size(); ++device.step)
        if (!pass(p, steps[device.step]))
          return;
      progress.endInterval(p);
      ++device.execution;
      device.step = 0;
      device.isInTask = false;
      lanes.forgetStarted(p);
    }
  }

  /// Whether the device gets past a step now; if not, the end of the operation that it waits for
  /// calls advance().
  bool pass(size_t p, const SimulatedOperation &step) {
    switch (step.kind) {
    case SimulatedOperation::Kind::Compute:
      progress.startComputing(p, step.seconds);
      return false;
    case SimulatedOperation::Kind::OnLane:
      return lanes.passOperation(p, step);
    case SimulatedOperation::Kind::Wait:
      return lanes.passWait(p, step);
    case SimulatedOperation::Kind::StartTransfer:
      return transfers.passStart(p, step.id);
    case SimulatedOperation::Kind::FinishTransfer:
      return transfers.passFinish(p, step.id);
    }
    return true;
  }

  /// Describes the message that a stalled device waits for; whatever else it waits for ends.
  std::string describeWait(size_t p) const {
    return transfers.describeWait(p, progress.stepsOf(p)[progress.devices[p].step].id);
  }

  MaybeError checkEnd() const {
    std::vector<std::string> texts;
    for (size_t p = 0; p < progress.devices.size(); ++p)
      if (!progress.hasEnded(p))
        texts.push_back(
            fmt::format("pipeline coordinate {} waits in task \"{}\" of microbatch {} for {}", p,
                        progress.taskName(p), progress.executionOf(p).microbatch, describeWait(p)));
    if (texts.empty())
      return std::nullopt;
    return Error{fmt::format("the plan stalls{}: {}; every device must reach the end of its "
                             "schedule",
                             work.isRendezvous ? " if sends wait for their receives" : "",
                             fmt::join(texts, ", "))};
  }

  void summarize() {
    StepSimulation &result = progress.result;
    // This includes work that was started and not waited for.
    result.seconds = progress.now;
    for (StepBreakdown &times : result.devices) {
      double busy = times.computing + times.exposedTransfers + times.exposedHost;
      for (double seconds : times.exposed)
        busy += seconds;
      times.idle = std::max(0.0, result.seconds - busy);
    }
    std::stable_sort(
        result.timeline.transfers.begin(), result.timeline.transfers.end(),
        [](const TransferInterval &a, const TransferInterval &b) { return a.channel < b.channel; });
  }

  const StepWork &work;
  StepProgress progress;
  DeviceLanes lanes;
  TransferChannels transfers;
};

} // namespace

Expected<StepSimulation> simulateStep(const StepWork &work, bool keepCollectives) {
  return Simulator(work, keepCollectives).run();
}

} // namespace dtc
