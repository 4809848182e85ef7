//===- QueueTimer.h - Times of calls in graphs of a device ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_QUEUETIMER_H
#define DTC_RUNTIME_CALIBRATE_QUEUETIMER_H

#include "runtime/calibrate/Calibration.h"
#include "runtime/calibrate/CallTimer.h"

#include <functional>
#include <memory>
#include <vector>

namespace dtc::runtime {

/// The seconds between two timed events of a queue that has finished.
Expected<double> elapsedSeconds(const Event &begin, const Event &end);

/// A queue of a device gets graphs of many calls, as steps do, and two events around each say what
/// it takes.
class QueueTimer final : public CallTimer {
public:
  /// All outlive it. Of the options, the seconds of a point and the working set count.
  static Expected<std::unique_ptr<QueueTimer>> open(const CalibrationOptions &options,
                                                    const Backend &backend, Device &device);

  Expected<double> secondsOf(const std::vector<KernelSignature> &calls,
                             KernelRunOptions run) override;
  size_t mostOperandBytes() const override { return mostBytes; }

  /// The seconds of a call of next to no work in a graph of such calls. From now on secondsOf()
  /// leaves them out, of calls that have a launch of their own.
  Expected<double> measureLaunch();
  /// Keeps the device busy for some seconds, after which its clock is that of a device at work.
  MaybeError warmUp(double seconds);

private:
  using Work = std::function<MaybeError()>;

  QueueTimer(const CalibrationOptions &options, const Backend &backend, Device &device)
      : options(options), backend(backend), device(device) {}
  MaybeError initialize();
  Expected<std::vector<KernelRun>> prepare(const std::vector<KernelSignature> &calls,
                                           KernelRunOptions run);
  /// The median seconds of one turn, in which each call is enqueued once.
  Expected<double> secondsOfTurn(std::vector<KernelRun> &runs);
  Expected<std::unique_ptr<Graph>> capture(const Work &work);
  Expected<double> secondsBetween(const Work &work);

  const CalibrationOptions &options;
  const Backend &backend;
  Device &device;
  std::unique_ptr<Queue> queue;
  std::unique_ptr<Event> begin, end;
  std::shared_ptr<OperandMemory> memory;
  size_t mostBytes = 0;
  double launchSeconds = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_QUEUETIMER_H
