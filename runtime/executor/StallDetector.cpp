//===- StallDetector.cpp - Finds that nothing moves any more --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/StallDetector.h"

#include "plan/PlanTypes.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtc::runtime {

/// Seconds from one look to the next, if the timeout is long.
static constexpr double longestInterval = 1;
/// Seconds that devices have to return after a failure, if the timeout is longer.
static constexpr double longestGrace = 10;

StallDetector::StallDetector(const PreparedPlan &plan,
                             const std::vector<std::unique_ptr<DeviceExecutor>> &devices,
                             double timeout, std::function<void(const Error &)> onHang)
    : plan(plan), devices(devices), timeout(timeout), onHang(std::move(onHang)) {
  double interval = std::clamp(timeout / 8, 1e-3, longestInterval);
  auto looksOf = [&](double seconds) {
    // Timeouts beyond the age of the universe are as good as none.
    return static_cast<int64_t>(std::ceil(std::min(seconds / interval, 1e18)));
  };
  looksOfTimeout = looksOf(timeout);
  looksOfGrace = looksOf(std::min(timeout, longestGrace));
  watch.interval =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(interval));
  watch.look = [this](const MaybeError &failure) { return look(failure); };
}

const DeviceThreads::Watch &StallDetector::begin() {
  for (const std::unique_ptr<DeviceExecutor> &device : devices)
    device->beginWatch();
  idleLooks = 0;
  hasHung = false;
  hasAdvanced();
  return watch;
}

bool StallDetector::hasAdvanced() {
  uint64_t advances = 0;
  for (const std::unique_ptr<DeviceExecutor> &device : devices)
    advances += device->advances();
  return std::exchange(lastAdvances, advances) != advances;
}

MaybeError StallDetector::look(const MaybeError &failure) {
  if (hasAdvanced()) {
    idleLooks = 0;
    return std::nullopt;
  }
  if (++idleLooks < (failure ? looksOfGrace : looksOfTimeout))
    return std::nullopt;
  idleLooks = 0;
  if (!failure)
    return describeStall();
  if (!hasHung && onHang)
    onHang(*failure);
  hasHung = true;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// What the user reads
//===----------------------------------------------------------------------===//

/// "[0, 1, 2]", shortened.
static std::string listDevices(const std::vector<int64_t> &devices) {
  constexpr size_t shown = 8;
  std::vector<int64_t> some(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                   devices.size(), shown)));
  return fmt::format("[{}{}]", fmt::join(some, ", "), devices.size() > shown ? ", ..." : "");
}

std::string StallDetector::describeWait(const DeviceExecutor &device, size_t index) const {
  const PreparedProgram &program = device.getProgram();
  const PreparedInstruction &instruction = program.instructions[index];
  auto describeTransfer = [&](const char *does, size_t transfer) {
    const PreparedTransfer &prepared = program.transfers[transfer];
    return fmt::format("{} {} device {} on channel {}", does,
                       prepared.sends ? "send to" : "receive from", device.transferPeer(transfer),
                       prepared.channel);
  };
  auto describeCollective = [&](const PreparedCollective &collective) {
    return fmt::format("waits in {} of devices {}", name(collective.specs.front().kind),
                       listDevices(plan.mesh.group(device.index(), plan.groups[collective.group])));
  };
  if (std::holds_alternative<PreparedKernel>(instruction))
    return fmt::format("runs kernel {}", program.source(index).kernel().kernel());
  if (const auto *collective = std::get_if<PreparedCollective>(&instruction))
    return describeCollective(*collective);
  if (const auto *wait = std::get_if<PreparedWait>(&instruction))
    return describeCollective(std::get<PreparedCollective>(program.instructions[wait->collective]));
  if (const auto *start = std::get_if<PreparedStartTransfer>(&instruction))
    return describeTransfer("starts to", start->transfer);
  return describeTransfer("waits to", std::get<PreparedFinishTransfer>(instruction).transfer);
}

std::string StallDetector::describe(const DeviceExecutor &device) const {
  if (device.hasFinished())
    return "has finished the step";
  std::optional<DeviceExecutor::Position> position = device.position();
  if (!position)
    return "has not begun the step";
  const PreparedProgram &program = device.getProgram();
  const PreparedProgram::Entry &entry = program.schedule[position->entry];
  const plan::Task &task = program.program->tasks(static_cast<int>(entry.task));
  if (!position->instruction)
    return fmt::format("runs task \"{}\" for microbatch {}", task.name(), entry.microbatch);
  std::string text =
      fmt::format("{}, in task \"{}\" for microbatch {}, instruction {}",
                  describeWait(device, *position->instruction), task.name(), entry.microbatch,
                  *position->instruction - program.taskBegin[entry.task]);
  auto source = static_cast<int>(program.source(*position->instruction).source());
  if (source > 0 && source < plan.plan->sources_size())
    text += ", from " + plan.plan->sources(source);
  return text;
}

Error StallDetector::describeStall() const {
  std::string text =
      fmt::format("no device has come to another instruction for {} s; if a kernel of this plan "
                  "can take so long, raise the limit (--stall-timeout); the devices:",
                  timeout);
  for (const std::unique_ptr<DeviceExecutor> &device : devices) {
    std::vector<std::string> place;
    std::vector<int64_t> coordinates = plan.mesh.coordinates(device->index());
    for (size_t i = 0; i < coordinates.size(); ++i)
      if (!plan.mesh.axes()[i].temporal)
        place.push_back(fmt::format("{}={}", plan.mesh.axes()[i].name, coordinates[i]));
    text += fmt::format("\n  device {}{} {}", device->index(),
                        place.empty() ? "" : fmt::format(" ({})", fmt::join(place, ", ")),
                        describe(*device));
  }
  return Error{text};
}

} // namespace dtc::runtime
