//===- Measurements.h - The parts of a calibration ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_MEASUREMENTS_H
#define DTC_RUNTIME_CALIBRATE_MEASUREMENTS_H

#include "runtime/calibrate/BusyCores.h"
#include "runtime/calibrate/Calibration.h"
#include "runtime/calibrate/KernelRun.h"

namespace dtc::runtime {

/// To four digits, which is more than a measurement has.
double rounded(double value);

/// What the parts of a calibration share.
struct CalibrationContext {
  const CalibrationOptions &options;
  std::shared_ptr<const Backend> backend;
  CoreSpeed &speed;
  BusyCores cores;
  FILE *err; // may be null
  /// Of each thread of `cores`.
  std::vector<std::shared_ptr<OperandMemory>> memory = {};
  int64_t round = 1; // of options.rounds

  /// Says that `points` times of something are measured now.
  void announce(const std::string &what, size_t points) const;

  /// The mean seconds of one call of these kernels, which take turns and share the working set. The
  /// options of the calibration say with how many threads.
  Expected<double> measure(const std::vector<KernelSignature> &calls, KernelRunOptions run);
};

/// Rates of products in every element type: `matrix` of a device.
MaybeError measureProducts(CalibrationContext &context, cluster::DeviceKind &device);

/// Times of all other kernels, and the memory bandwidth: that of a copy of the most bytes.
MaybeError measureKernels(CalibrationContext &context, cluster::DeviceKind &device);

/// What the executor takes for an instruction beside the kernel: launch_seconds.
MaybeError measureLaunch(CalibrationContext &context, cluster::DeviceKind &device);

/// Times of collectives and transfers.
MaybeError measureLink(CalibrationContext &context, cluster::Link &link);

/// Bandwidth and latency of messages with these times: the line with the least squares of relative
/// errors, as times of small messages would else not count. Neither is negative; with less than two
/// points the latency is 0. The times are those of the link's first table of transfers, which is
/// that of the smallest group; without one nothing changes.
void fitLink(cluster::Link &link);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_MEASUREMENTS_H
