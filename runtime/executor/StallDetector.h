//===- StallDetector.h - Detection of stalled devices ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_STALLDETECTOR_H
#define DTC_RUNTIME_EXECUTOR_STALLDETECTOR_H

#include "runtime/executor/DeviceExecutor.h"
#include "runtime/executor/DeviceThreads.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

namespace dtc::runtime {

/// Watches the devices of a session while the host enqueues a step or waits for one, by the events
/// that they have come to. If none comes to another instruction for a time, the step is given up,
/// and with it what is in flight after it: devices that wait for each other are woken and return. A
/// kernel cannot be woken; if one does not return then, `onHang` is called with the error of the
/// step.
class StallDetector {
public:
  /// `timeout` in seconds, above 0.
  StallDetector(const PreparedPlan &plan,
                const std::vector<std::unique_ptr<DeviceExecutor>> &devices, double timeout,
                std::function<void(const Error &)> onHang);

  /// Begins to look. The watch is valid as long as the detector.
  const DeviceThreads::Watch &begin();

  /// The step, from 1, that was given up; the largest number if none was.
  uint64_t stalledStep() const { return stalled; }

private:
  MaybeError look(const MaybeError &failure);
  bool hasAdvanced();
  void findStalledStep();
  Error describeStall() const;

  const PreparedPlan &plan;
  const std::vector<std::unique_ptr<DeviceExecutor>> &devices;
  double timeout;
  std::function<void(const Error &)> onHang;
  DeviceThreads::Watch watch;
  // Looks are counted instead of reading a clock: while the process is stopped, nobody looks.
  int64_t looksOfTimeout = 1;
  int64_t looksOfGrace = 1; // that devices have to return after a failure
  int64_t idleLooks = 0;
  bool hasHung = false;
  uint64_t lastAdvances = 0;
  uint64_t stalled = std::numeric_limits<uint64_t>::max();
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_STALLDETECTOR_H
