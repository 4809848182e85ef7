//===- SessionOptions.h - Options of a session ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_SESSIONOPTIONS_H
#define DTC_RUNTIME_EXECUTOR_SESSIONOPTIONS_H

#include "runtime/executor/Injection.h"
#include "runtime/executor/RunWatch.h"
#include "runtime/fabrics/Fabric.h"
#include "support/Error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace dtc::runtime {

struct SessionOptions {
  /// Threads of the host that each device's kernels may use, at least 1.
  int threadsPerDevice = 1;
  /// The fabric that the devices have; null: openLocalFabric(), all devices in this process.
  OpenFabric openFabric = nullptr;
  /// Take the time of every instruction.
  bool profile = false;
  /// A step is given up if no device comes to another instruction for this many seconds, with an
  /// error that says what each device was at; 0: wait for ever.
  double stallTimeout = 60;
  /// After a failure, devices that wait for others are woken, but a kernel that does not return
  /// cannot be stopped, and step() waits for it; nor can a library whose end does not return. This
  /// is called once, with the error that step() cannot return: on the thread of step() (or
  /// startStep(), finishStep()) where that waits, with a stallTimeout alone; on another thread
  /// where a failed step's work, or the end of the session after it, lasts for more than
  /// Session::kTimeToRest. A program should print it and end the process without destroying the
  /// session (std::_Exit).
  std::function<void(const Error &)> onHang = nullptr;
  /// Whether GPUs mark to which collective and transfer they have come, so that the error of a
  /// stall names the device for which the others wait: a copy of four bytes before each.
  bool marksCommunication = true;
  /// The object through which any thread can ask for the current instruction of each device; may
  /// be null.
  std::shared_ptr<RunWatch> watch = nullptr;
  /// For what the watch says of communication; may be null.
  PredictTime predict = nullptr;
  /// Steps whose events are recorded, the last ones; 0: none.
  size_t traceSteps = 0;
  /// Batches per step: gradients are summed over them before the optimizer's update. More than one
  /// needs a plan with a loop over microbatches, which runs for each.
  int64_t batches = 1;
  /// Steps that may be in flight at once, at least 1: see Session::startStep(). Each has staging
  /// memory for the inputs of the devices whose memory is not the host's. The plan's other entry
  /// points have 1.
  size_t stepsInFlight = 1;
  /// Take the time that devices wait for others: see Session::waitedSeconds().
  bool measureWaits = false;
  /// Numbers that are made infinite or NaN, to see what becomes of it.
  std::vector<Injection> injections = {};
  /// Whether devices get the work of a step as graphs (StepGraphs.h), where they have them, instead
  /// of one instruction after the other: true demands it. Absent: where nothing speaks against it.
  std::optional<bool> graphs = {};
  /// Devices that are made slow.
  std::vector<InjectedDelay> delays = {};
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_SESSIONOPTIONS_H
