//===- Calibration.cpp - Measuring this machine ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Calibration.h"

#include "runtime/calibrate/Measurements.h"
#include "runtime/calibrate/Rounds.h"
#include "simulator/cluster/ClusterReader.h"
#include "support/AtomicFile.h"
#include "support/Format.h"
#include "support/Memory.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <thread>

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

Expected<double> CalibrationContext::measure(const std::vector<KernelSignature> &calls,
                                             KernelRunOptions run) {
  run.threads = options.threadsPerDevice;
  // The calls take turns: together they have the working set.
  run.workingSetBytes /= calls.size();
  while (memory.size() < cores.size())
    memory.push_back(std::make_shared<OperandMemory>());
  Expected<double> seconds = cores.measure(
      [&](size_t thread) -> Expected<BusyCores::Work> {
        KernelRunOptions own = run;
        own.memory = memory[thread];
        own.memory->reset();
        auto runs = std::make_shared<std::vector<KernelRun>>();
        for (const KernelSignature &call : calls) {
          Expected<KernelRun> made = KernelRun::create(*backend, call, own);
          if (!made)
            return made.error();
          runs->push_back(std::move(*made));
        }
        return BusyCores::Work([runs] {
          for (KernelRun &each : *runs)
            each.run();
        });
      },
      options.secondsPerPoint,
      run.threads == 1 ? BusyCores::Time::OfThread : BusyCores::Time::Passing);
  if (!seconds)
    return seconds;
  return *seconds / static_cast<double>(calls.size());
}

static Expected<cluster::Cluster> measureRound(CalibrationContext &context) {
  const CalibrationOptions &options = context.options;
  cluster::Cluster cluster;
  cluster.set_name("cpu");
  cluster::DeviceKind &device = *cluster.add_devices();
  device.set_name("cpu");
  device.set_memory_bytes(static_cast<double>(memoryLimit().bytes) /
                          static_cast<double>(options.devices));
  device.set_compute_units(options.threadsPerDevice);
  cluster::NodeKind &node = *cluster.add_node_kinds();
  node.set_name("machine");
  node.set_device(device.name());
  node.set_devices(options.devices);
  // A device keeps all cores of its threads busy.
  node.set_shared_cores(static_cast<int64_t>(context.cores.size()));
  cluster::NodeGroup &group = *cluster.add_nodes();
  group.set_node(node.name());
  group.set_count(1);

  for (auto part : {measureProducts, measureKernels, measureLaunch})
    if (MaybeError error = part(context, device))
      return *error;
  if (options.devices > 1)
    if (MaybeError error = measureLink(context, *node.mutable_link()))
      return *error;
  return cluster;
}

Expected<cluster::Cluster> calibrate(const CalibrationOptions &options,
                                     std::shared_ptr<const Backend> backend, FILE *err) {
  int64_t cores = usableCores();
  int64_t measuring = std::max<int64_t>(1, cores / std::max(1, options.threadsPerDevice));
  CoreSpeed speed(options.patienceSeconds);
  CalibrationContext context{
      options, std::move(backend), speed, {static_cast<size_t>(measuring), speed}, err};
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

/// As Linux names the first core's; "an unknown processor" where it does not.
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
  // What is written can be read.
  if (MaybeError error = checkCluster(*cluster))
    return error->inContext("what was measured makes no sense, try again on an idle machine");
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  std::string header = fmt::format("# Measured by dtc-run --calibrate on {} cores of {}.\n\n",
                                   usableCores(), processorName());
  if (MaybeError error = file->write(header + formatCluster(*cluster)))
    return error;
  if (MaybeError error = file->commit())
    return error;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print(out, "{}measured in {}, written to {}\n", calibrationTable(*cluster),
             formatSeconds(seconds), path);
  return std::nullopt;
}

} // namespace dtc::runtime
