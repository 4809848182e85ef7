//===- DeviceOptions.h - How a device executes its part of a plan ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICEOPTIONS_H
#define DTC_RUNTIME_EXECUTOR_DEVICEOPTIONS_H

#include "runtime/executor/Injection.h"
#include "support/Error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace dtc::runtime {

struct DeviceOptions {
  bool profile = false;
  size_t traceSteps = 0;    // to record; 0: none
  int64_t batches = 1;      // of a step
  size_t stepsInFlight = 1; // the most, at least 1
  std::vector<PreparedInjection> injections = {};
  bool measureWaits = false;
  double delay = 0;    // seconds, at the beginning of each step
  int64_t lane = 0;    // of the fabric, for collectives
  bool graphs = false; // the device gets stretches of instructions as graphs
  /// Whether a device whose host is ahead marks how far it has come (CommunicationMarks.h).
  bool marks = false;
  double copyTimeout = 0; // seconds; 0: none. See DeviceExecutor::limitCopy()
  std::function<void(const Error &)> onHang = nullptr;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICEOPTIONS_H
