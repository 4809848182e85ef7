//===- CoreSpeed.h - Measured speed of cores ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_CORESPEED_H
#define DTC_RUNTIME_CALIBRATE_CORESPEED_H

#include "runtime/executor/DeviceThreads.h"

#include <atomic>
#include <vector>

namespace dtc::runtime {

/// How many times as long as the fastest a run of the reference loop on a core at full speed takes
/// at most.
inline constexpr double kFullSpeedShare = 1.25;

/// The cores that this process may use, as its affinity says; at least 1.
int64_t usableCores();

/// How fast cores are at the moment, by a loop of arithmetic that touches no memory. The core of a
/// virtual machine loses a third of its speed or more, for seconds, while its host runs others on
/// the same core; what is measured meanwhile says nothing of this machine. The functions may be
/// called by several threads at a time.
class CoreSpeed {
public:
  /// All measurements together may wait for `patience` seconds until cores are fast again.
  explicit CoreSpeed(double patience) : patience(patience) {}

  /// The seconds that the loop takes now, about 20 us, on the core of the calling thread: those in
  /// which the thread has the core.
  double referenceLoop();
  /// Whether a core was at its full speed when the loop took `seconds`: at most a quarter more than
  /// the least of all. Clocks that depend on how many cores are busy differ by less, and a core
  /// that is shared loses more.
  bool isFull(double seconds) const { return seconds <= kFullSpeedShare * least; }
  /// Takes from the patience. False if there is none left.
  bool wait(double seconds) { return patience.fetch_sub(seconds) > 0; }

private:
  std::atomic<double> least = 1e9;
  std::atomic<double> patience;
};

/// Looks at all cores that this process may use, by a thread on each that sleeps meanwhile. The
/// rest of this process must sleep while they look.
class CoreWatch {
public:
  explicit CoreWatch(CoreSpeed &speed);

  /// CoreSpeed::referenceLoop() of the slowest core; infinity while other programs run, if the
  /// system tells that (/proc/loadavg).
  double referenceLoop();

private:
  CoreSpeed &speed;
  std::vector<double> seconds; // by core
  DeviceThreads threads;       // last: they use the others
};

/// A measurement, and the reference loop on the slowest core around it.
struct SpeedMeasurement {
  double seconds = 0, referenceLoop = 0;
};

/// How many of the samples were taken at full speed.
size_t countFull(const std::vector<SpeedMeasurement> &samples, const CoreSpeed &speed);

/// The median of the samples that were taken at full speed; where none was, the sample beside which
/// the core was fastest; 0 of no samples.
double medianAtFullSpeed(const std::vector<SpeedMeasurement> &samples, const CoreSpeed &speed);

/// The median of some numbers, the mean of the two in the middle of an even number; 0 of none.
double median(std::vector<double> values);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_CORESPEED_H
