//===- Calibration.cpp - Measuring this machine ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Calibration.h"

#include "runtime/calibrate/Measurements.h"
#include "simulator/cluster/ClusterReader.h"
#include "support/AtomicFile.h"
#include "support/Format.h"

#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>

namespace dtc::runtime {

double rounded(double value) { return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr); }

void CalibrationContext::announce(const std::string &what, size_t points) const {
  if (!err)
    return;
  // Making operands, the first call and the others' measurements take as long again, twice or more.
  fmt::print(err, "round {} of {}, {}: {} points, about {}\n", round, options.rounds, what, points,
             formatSeconds(static_cast<double>(points) * options.secondsPerPoint * 4));
  std::fflush(err);
}

cluster::Cluster clusterOf(const std::string &name, const std::string &device, int64_t devices) {
  cluster::Cluster cluster;
  cluster.set_name(name);
  cluster.add_devices()->set_name(device);
  cluster::NodeKind &node = *cluster.add_node_kinds();
  node.set_name("machine");
  node.set_device(device);
  node.set_devices(devices);
  cluster::NodeGroup &group = *cluster.add_nodes();
  group.set_node(node.name());
  group.set_count(1);
  return cluster;
}

Expected<cluster::Cluster> calibrate(const CalibrationOptions &options,
                                     std::shared_ptr<const Backend> backend, FILE *err) {
  Expected<std::unique_ptr<Device>> device = backend->openDevice(0);
  if (!device)
    return device.error();
  if ((*device)->isHostMemory())
    return calibrateCores(options, std::move(backend), err);
  return calibrateDevice(options, *backend, **device, err);
}

/// The name that Linux gives the processor of the first core; "an unknown processor" where it gives
/// none.
static std::string processorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      if (size_t colon = line.find(": "); colon != line.npos)
        return line.substr(colon + 2);
  return "an unknown processor";
}

MaybeError calibrateToFile(const CalibrationOptions &options, const std::string &path,
                           std::shared_ptr<const Backend> backend, FILE *out, FILE *err) {
  if (MaybeError error = checkWritable(path))
    return error;
  auto begin = std::chrono::steady_clock::now();
  Expected<cluster::Cluster> cluster = calibrate(options, std::move(backend), err);
  if (!cluster)
    return cluster.error();
  // A file that is written must be one that can be read.
  if (MaybeError error = checkCluster(*cluster))
    return error->inContext("what was measured makes no sense, try again on an idle machine");
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  const cluster::DeviceKind &device = cluster->devices(0);
  std::string header =
      fmt::format("# Measured by dtc-run calibrate on {}.\n",
                  cluster->node_kinds(0).shared_cores() > 0
                      ? fmt::format("{} cores of {}", usableCores(), processorName())
                      : fmt::format("one {}", device.name()));
  for (const std::string &remark : options.remarks)
    header += fmt::format("# {}\n", remark);
  if (MaybeError error = file->write(header + "\n" + formatCluster(*cluster)))
    return error;
  if (MaybeError error = file->commit())
    return error;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print(out, "{}measured in {}, written to {}\n", calibrationTable(*cluster),
             formatSeconds(seconds), path);
  return std::nullopt;
}

} // namespace dtc::runtime
