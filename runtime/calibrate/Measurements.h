//===- Measurements.h - The parts of a calibration ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_MEASUREMENTS_H
#define DTC_RUNTIME_CALIBRATE_MEASUREMENTS_H

#include "runtime/calibrate/Calibration.h"
#include "runtime/calibrate/CoreTimer.h"

namespace dtc::runtime {

/// To four digits, which is more than a measurement has.
double rounded(double value);

/// The state that the parts of a calibration share.
struct CalibrationContext {
  const CalibrationOptions &options;
  CallTimer &timer;
  FILE *err;         // may be null
  int64_t round = 1; // of options.rounds

  /// Says that `points` times of something are measured now.
  void announce(const std::string &what, size_t points) const;
};

/// The further state of calibrations of cores.
struct CoreContext : CalibrationContext {
  std::shared_ptr<const Backend> backend;
  CoreSpeed &speed;
  size_t numGroups; // of cores: devices that compute at the same time
};

/// The parts of calibrate(): for cores, and for any other device.
Expected<cluster::Cluster> calibrateCores(const CalibrationOptions &options,
                                          std::shared_ptr<const Backend> backend, FILE *err);
Expected<cluster::Cluster> calibrateDevice(const CalibrationOptions &options,
                                           const Backend &backend, Device &device, FILE *err);

/// A cluster of one node of such devices.
cluster::Cluster clusterOf(const std::string &name, const std::string &device, int64_t devices);

/// Rates of products in every element type: `matrix` of a device.
MaybeError measureProducts(CalibrationContext &context, cluster::DeviceKind &device);

/// Times of all other kernels, and the memory bandwidth: that of a copy of the most bytes.
MaybeError measureKernels(CalibrationContext &context, cluster::DeviceKind &device);

/// The time of the executor for an instruction beside the kernel: launch_seconds.
MaybeError measureLaunch(CoreContext &context, cluster::DeviceKind &device);

/// Times of collectives of the first GPUs, of as many members as the options say.
MaybeError measureDeviceLink(const CalibrationContext &context, const Backend &backend,
                             cluster::Link &link);

/// Times of collectives and transfers.
MaybeError measureLink(CoreContext &context, cluster::Link &link);

/// Bandwidth and latency of messages with these times: the line with the least squares of relative
/// errors, as times of small messages would else not count. Neither is negative; with less than two
/// points the latency is 0. The times are those of the link's first table of transfers, which is
/// that of the smallest group, or else of its first table of permutes; without one nothing changes.
void fitLink(cluster::Link &link);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_MEASUREMENTS_H
