//===- CoreCalibration.cpp - Measuring cores ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Measurements.h"
#include "runtime/calibrate/Rounds.h"
#include "support/Memory.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace dtc::runtime {

static Expected<cluster::Cluster> measureRound(CoreContext &context) {
  const CalibrationOptions &options = context.options;
  cluster::Cluster cluster = clusterOf("cpu", "cpu", options.devices);
  cluster::DeviceKind &device = *cluster.mutable_devices(0);
  device.set_memory_bytes(static_cast<double>(memoryLimit().bytes) /
                          static_cast<double>(options.devices));
  device.set_compute_units(options.threadsPerDevice);
  cluster::NodeKind &node = *cluster.mutable_node_kinds(0);
  // A device keeps all cores of its threads busy.
  node.set_shared_cores(static_cast<int64_t>(context.numGroups));

  MaybeError error = measureProducts(context, device);
  if (!error)
    error = measureKernels(context, device);
  if (!error)
    error = measureLaunch(context, device);
  if (!error && options.devices > 1)
    error = measureLink(context, *node.mutable_link());
  if (error)
    return *error;
  return cluster;
}

Expected<cluster::Cluster> calibrateCores(const CalibrationOptions &options,
                                          std::shared_ptr<const Backend> backend, FILE *err) {
  CoreSpeed speed(options.patienceSeconds);
  CoreTimer timer(options, backend, speed);
  CoreContext context{{options, timer, err}, std::move(backend), speed, timer.numGroups()};
  // Some core will be at its full speed in that time.
  CoreWatch watch(speed);
  for (int i = 0; i < 2000; ++i) {
    watch.referenceLoop();
    std::this_thread::sleep_for(std::chrono::duration<double>(options.secondsPerPoint / 12));
  }
  std::vector<cluster::Cluster> rounds;
  for (context.round = 1; context.round <= std::max<int64_t>(1, options.rounds); ++context.round) {
    Expected<cluster::Cluster> measured = measureRound(context);
    if (!measured)
      return measured;
    rounds.push_back(std::move(*measured));
  }
  cluster::Cluster cluster = combineRounds(std::move(rounds));
  if (cluster::NodeKind &node = *cluster.mutable_node_kinds(0); node.has_link())
    fitLink(*node.mutable_link());
  return cluster;
}

} // namespace dtc::runtime
