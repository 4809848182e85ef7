//===- StallDetector.cpp - Detection of stalled devices -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/StallDetector.h"

#include "runtime/executor/DevicePlaces.h"
#include "runtime/executor/StallCulprit.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace dtc::runtime {

/// Seconds from one look to the next, if the timeout is long.
static constexpr double kLongestInterval = 1;
/// Seconds that devices have to return after a failure, if the timeout is longer.
static constexpr double kLongestGrace = 10;

StallDetector::StallDetector(const PreparedPlan &plan,
                             const std::vector<std::unique_ptr<DeviceExecutor>> &devices,
                             double timeout, std::function<void(const Error &)> onHang)
    : plan(plan), devices(devices), timeout(timeout), onHang(std::move(onHang)) {
  double interval = std::clamp(timeout / 8, 1e-3, kLongestInterval);
  auto looksOf = [&](double seconds) {
    // Timeouts beyond the age of the universe are as good as none.
    return static_cast<int64_t>(std::ceil(std::min(seconds / interval, 1e18)));
  };
  looksOfTimeout = looksOf(timeout);
  looksOfGrace = looksOf(std::min(timeout, kLongestGrace));
  watch.interval =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(interval));
  watch.look = [this](const MaybeError &failure) { return look(failure); };
}

const DeviceThreads::Watch &StallDetector::begin() {
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
  if (!failure) {
    findStalledStep();
    return describeStall();
  }
  if (!hasHung && onHang)
    onHang(*failure);
  hasHung = true;
  return std::nullopt;
}

/// The first that has not ended on some device.
void StallDetector::findStalledStep() {
  for (const std::unique_ptr<DeviceExecutor> &device : devices)
    if (std::optional<DeviceExecutor::Position> position = device->position())
      stalled = std::min(stalled, position->step);
}

Error StallDetector::describeStall() const {
  std::string text =
      fmt::format("no device has come to another instruction for {} s; if a kernel of this plan "
                  "can take so long, raise the limit (--stall-timeout); the devices:",
                  timeout);
  for (const std::unique_ptr<DeviceExecutor> &device : devices)
    text += "\n  " + describeDevice(plan, *device, stalled);
  for (const std::string &line : describeCulprits(plan, devices))
    text += "\n  " + line;
  return Error{text};
}

} // namespace dtc::runtime
