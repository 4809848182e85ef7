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

/// The host of cores is made of the same cores, and all of their memory is its. A copy reads and
/// writes it.
static void describeHost(const cluster::DeviceKind &device, cluster::NodeKind &node) {
  node.set_host(device.name());
  node.set_host_memory_bytes(static_cast<double>(memoryLimit().bytes));
  node.mutable_host_link()->set_bandwidth(rounded(device.memory_bandwidth() / 2));
  node.mutable_host_link()->set_latency(device.launch_seconds());
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
  cluster::NodeKind &node = *cluster.mutable_node_kinds(0);
  if (node.has_link())
    fitLink(*node.mutable_link());
  describeHost(cluster.devices(0), node);
  return cluster;
}

} // namespace dtc::runtime
