//===- BusyCores.h - Measured times of work on all cores ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_BUSYCORES_H
#define DTC_RUNTIME_CALIBRATE_BUSYCORES_H

#include "runtime/calibrate/CoreSpeed.h"
#include "runtime/executor/DeviceThreads.h"

#include <functional>
#include <vector>

namespace dtc::runtime {

/// Threads that do the same work at the same time, each with operands of its own, as the devices of
/// a plan do: the resources that they share (the memory, the last cache, the clock of the cores)
/// are busy while the work is measured.
class BusyCores {
public:
  /// The work to measure: one call of it.
  using Work = std::function<void()>;

  BusyCores(size_t threads, CoreSpeed &speed)
      : speed(speed), threads(threads, [](const Error &) {}), count(threads) {}

  /// The time that counts while a call runs: all of it, or only that in which its thread has a
  /// core. The latter does not count what other programs do meanwhile, and is for work that no
  /// other thread takes part in.
  enum class Time { Passing, OfThread };

  /// The seconds that one call of the work takes on a thread whose core is at full speed: the
  /// median over about `seconds`, the mean over the threads that found their cores so. While no
  /// core is, they go on as long as the patience for slow cores lasts; then the one that came
  /// nearest to it counts. Every thread prepares work of its own, which lives until all are
  /// measured.
  Expected<double> measure(const std::function<Expected<Work>(size_t thread)> &prepare,
                           double seconds, Time time);
  size_t size() const { return count; }

private:
  std::vector<SpeedMeasurement> measureHere(const Work &work, double seconds, Time time);

  CoreSpeed &speed;
  std::atomic<bool> isMeasured = false; // by one of the threads
  DeviceThreads threads;
  size_t count;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_BUSYCORES_H
