//===- DeviceCalibration.cpp - Measuring a GPU ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Measurements.h"
#include "runtime/calibrate/QueueTimer.h"
#include "runtime/calibrate/Rounds.h"

#include <algorithm>

namespace dtc::runtime {

CalibrationOptions gpuCalibrationOptions() {
  CalibrationOptions options;
  options.devices = 1;
  // Tokens of a microbatch by widths of layers. Many widths are three times a power of two.
  options.rows = {256, 1024, 4096, 16384, 32768};
  options.columns = {256, 512, 768, 1024, 2048, 3072, 4096, 8192, 16384};
  options.depths = {256, 512, 1024, 2048, 4096, 16384};
  options.gradientSizes = {256, 768, 1024, 2048, 4096, 8192, 16384};
  // Without matrix units they take ten times as long.
  options.largestSizeOfF32 = 4096;
  options.manyMultiplications = int64_t{1} << 50;
  options.kernelBytes = {32 << 10, 512 << 10, 4 << 20, 32 << 20, 512 << 20};
  options.attentionBytes = {1 << 20, 64 << 20};
  options.shortAttention = {1, 12, 128, 64};
  options.longAttention = {16, 16, 1024, 64};
  options.collectiveBytes = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20};
  options.rounds = 1;
  options.secondsPerPoint = 0.003;
  // Several times the L2 cache, which has 50 MB on an H100 and 126 MB on a B200.
  options.workingSetBytes = options.productSetBytes = size_t{512} << 20;
  options.warmUpSeconds = 0.5;
  return options;
}

static Expected<cluster::Cluster> measureRound(CalibrationContext &context, QueueTimer &timer,
                                               const Device &measured,
                                               const Device::FreeMemory &memory) {
  cluster::Cluster cluster = clusterOf(measured.model(), measured.model(), context.options.devices);
  cluster::DeviceKind &device = *cluster.mutable_devices(0);
  auto capacity = static_cast<double>(std::max(memory.capacity, memory.bytes));
  device.set_memory_bytes(capacity);
  uint64_t usable = memory.bytes - std::min(memory.bytes, memory.reserved);
  device.set_usable_memory(rounded(static_cast<double>(usable) / capacity));
  device.set_fuses_calls(true);
  device.set_bias_grad_kernels(true);

  context.announce("launches", 1);
  Expected<double> launch = timer.measureLaunch();
  if (!launch)
    return launch.error();
  device.set_launch_seconds(rounded(*launch));
  MaybeError error = measureProducts(context, device);
  if (!error)
    error = measureKernels(context, device);
  if (error)
    return *error;
  return cluster;
}

Expected<cluster::Cluster> calibrateDevice(const CalibrationOptions &options,
                                           const Backend &backend, Device &device, FILE *err) {
  if (options.devices > 1) {
    if (!options.openFabric)
      return Error{"several devices were asked for, but nothing connects them"};
    // Too few of them are found before anything is measured.
    if (auto fabric = options.openFabric(Mesh({{"device", options.devices, false}})); !fabric)
      return fabric.error();
  }
  // Before the calibration takes some of it.
  Expected<Device::FreeMemory> memory = device.freeMemory();
  if (!memory)
    return memory.error();
  Expected<std::unique_ptr<QueueTimer>> timer = QueueTimer::open(options, backend, device);
  if (!timer)
    return timer.error();
  CalibrationContext context{options, **timer, err};
  if (MaybeError error = (*timer)->warmUp(options.warmUpSeconds))
    return *error;
  std::vector<cluster::Cluster> rounds;
  for (context.round = 1; context.round <= std::max<int64_t>(1, options.rounds); ++context.round) {
    Expected<cluster::Cluster> measured = measureRound(context, **timer, device, *memory);
    if (!measured)
      return measured;
    rounds.push_back(std::move(*measured));
  }
  cluster::Cluster cluster = combineRounds(std::move(rounds));
  context.round = std::max<int64_t>(1, options.rounds);
  if (options.devices > 1)
    if (MaybeError error =
            measureDeviceLink(context, backend, *cluster.mutable_node_kinds(0)->mutable_link()))
      return *error;
  return cluster;
}

} // namespace dtc::runtime
