//===- ClusterSpeeds.cpp - Rates of a cluster for passes and bounds -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/ClusterSpeeds.h"

#include "simulator/cluster/CollectiveTime.h"
#include "simulator/cluster/DeviceTime.h"
#include "simulator/cluster/Topology.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

using namespace dtc;

GroupShape dtc::slowestGroup(const Topology &topology, const std::vector<std::string> &axes) {
  constexpr double kBytes = 64 << 20;
  auto secondsOf = [&](const GroupShape &group) {
    return dtc::collectiveTime(CollectiveKind::AllReduce, kBytes, group).seconds;
  };
  GroupShape slowest = topology.slowestGroup(0, axes);
  int64_t coordinates = 1;
  if (topology.cluster().nodes_size() > 1)
    for (const MeshAxis &axis : topology.mesh().axes())
      coordinates *= axis.pipeline ? axis.size : 1;
  for (int64_t coordinate = 1; coordinate < coordinates; ++coordinate)
    if (GroupShape group = topology.slowestGroup(coordinate, axes);
        secondsOf(group) > secondsOf(slowest))
      slowest = group;
  return slowest;
}

static double roundToThreeDigits(double value) {
  if (!(value > 0) || !std::isfinite(value))
    return value;
  double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

/// The link, as bandwidth and latency, of a torus on which collectiveTime() takes as long as on the
/// cluster for short and for long messages: a gather over the axis, or a message along the
/// pipeline, between the neighbours with the slowest link.
static std::pair<double, double> linkOf(const Topology &topology, const std::string &axis,
                                        int64_t size) {
  constexpr double kShort = 1, kLong = 64 << 20; // bytes
  auto lineOf = [&](double hops, auto secondsOf) {
    double shortSeconds = secondsOf(kShort), more = secondsOf(kLong) - shortSeconds;
    return std::pair(more > 0 ? hops * (kLong - kShort) / more : 1e15, shortSeconds / hops);
  };
  std::pair<double, double> link;
  if (axis != kPipelineAxis) {
    GroupShape group = slowestGroup(topology, {axis});
    link = lineOf(double(size - 1), [&](double bytes) {
      return dtc::collectiveTime(CollectiveKind::AllGather, bytes, group).seconds;
    });
  } else {
    for (int64_t from = 0; from + 1 < size; ++from) {
      GroupShape pair = topology.slowestPair(from, from + 1);
      auto found = lineOf(1, [&](double bytes) { return messageTime(bytes, pair).seconds; });
      if (from == 0 || found.first < link.first)
        link = found;
    }
  }
  return {roundToThreeDigits(link.first), roundToThreeDigits(link.second)};
}

/// The most FLOP/s that products reach on a device: large ones, the best that was measured, or
/// those inside of attention.
static double bestRate(const cluster::DeviceKind &device, DType dtype) {
  MatrixShape large{1, 65536, 65536, 65536};
  double best = large.flops() / productSeconds(device, dtype, large);
  for (const cluster::MatrixRate &rate : device.matrix())
    if (rate.dtype() == dtc::name(dtype))
      for (const cluster::MatrixTable *table : {&rate.table(), &rate.transposed_table()})
        for (double measured : table->flops())
          best = std::max(best, measured);
  if (const cluster::KernelRate *rate = findKernelRate(device, "attention", dtype))
    best = std::max(best, rate->flops());
  return best;
}

static DType elementType(ComputeType type) {
  return type == ComputeType::BF16  ? DType::BF16
         : type == ComputeType::F16 ? DType::F16
         : type == ComputeType::F8  ? DType::F8E4M3
                                    : DType::F32;
}

double dtc::sustainedFlops(const cluster::Cluster &cluster, int64_t devices, ComputeType dtype) {
  double sum = 0;
  for (const UsedNodes &used : findUsedNodes(cluster, devices))
    sum += double(used.devices) * bestRate(*used.device, elementType(dtype));
  return sum;
}

void dtc::useClusterSpeeds(const cluster::Cluster &cluster, CompileOptions &options) {
  std::vector<MeshAxis> axes;
  std::set<std::string> names;
  int64_t devices = 1;
  const MeshSizes mesh = meshWithExpertGroups(options);
  for (const auto &[name, size] : mesh) {
    // The declaration of the mesh reports its errors.
    if (size < 1 || !names.insert(name).second || llvm::MulOverflow(devices, size, devices))
      return;
    axes.push_back({name, size, false, name == kPipelineAxis});
  }
  if (devices > countDevices(cluster))
    return;
  auto topology = Topology::create(cluster, Mesh(axes));
  if (!topology)
    return;
  auto isGiven = [&](const std::string &name) {
    bool isPart =
        !options.hasAxis(name); // its links are those of the whole axis where these are given
    return options.links.contains(name) || (isPart && options.links.contains(kExpertAxis));
  };
  for (const auto &[name, size] : mesh)
    if (size > 1 && !isGiven(name))
      options.links[name] = linkOf(*topology, name, size);
  // Only the products of layers are in 8 bits.
  DType dtype = elementType(storageType(options.dtype));
  double flops = std::numeric_limits<double>::infinity(), bandwidth = flops;
  for (const UsedNodes &used : findUsedNodes(cluster, devices)) {
    MatrixShape large{1, 2048, 2048, 2048};
    flops = std::min(flops, large.flops() / productSeconds(*used.device, dtype, large));
    bandwidth = std::min(bandwidth, used.device->memory_bandwidth());
  }
  if (!options.deviceFlops && std::isfinite(flops))
    options.deviceFlops = roundToThreeDigits(flops);
  if (!options.deviceBandwidth && std::isfinite(bandwidth))
    options.deviceBandwidth = roundToThreeDigits(bandwidth);
}
