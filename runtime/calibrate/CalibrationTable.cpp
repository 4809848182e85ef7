//===- CalibrationTable.cpp - The main figures of a calibration -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Calibration.h"
#include "support/Format.h"

#include <fmt/format.h>
#include <iterator>

namespace dtc::runtime {

/// The rates of the kernels that take the most time in most plans.
static bool isShown(const std::string &kernel) {
  for (const char *shown : {"add", "mul", "gelu", "gelu_grad", "silu", "layer_norm",
                            "layer_norm_grad", "rms_norm", "softmax", "reduce", "adamw"})
    if (kernel == shown)
      return true;
  return false;
}

/// Bytes a second of the point that has about `bytes` bytes or more, or of the last.
static double bandwidthAt(const cluster::KernelRate &rate, double bytes) {
  const cluster::TimePoint *found = nullptr;
  for (const cluster::TimePoint &point : rate.points()) {
    found = &point;
    if (point.bytes() >= 0.9 * bytes)
      break;
  }
  return found ? found->bytes() / found->seconds() : 0;
}

std::string calibrationTable(const cluster::Cluster &cluster) {
  std::string text;
  auto out = std::back_inserter(text);
  const cluster::DeviceKind &device = cluster.devices(0);
  const cluster::NodeKind &node = cluster.node_kinds(0);
  bool isOfCores = node.shared_cores() > 0;
  if (isOfCores)
    fmt::format_to(out, "{} devices, {} at a time; of one device while all cores work:\n",
                   node.devices(), node.shared_cores());
  else
    fmt::format_to(out, "{}, {}:\n", device.name(),
                   formatBytes(static_cast<uint64_t>(device.memory_bytes())));
  fmt::format_to(out, "  {:<26}{:>9.2f} GB/s\n", "memory (copy)", device.memory_bandwidth() / 1e9);
  fmt::format_to(out, "  {:<26}{:>9.1f} ns\n", isOfCores ? "an instruction" : "a launch",
                 device.launch_seconds() * 1e9);
  for (const cluster::MatrixRate &rate : device.matrix())
    fmt::format_to(out, "  {:<26}{:>9.1f} GFLOP/s at best\n", "products of " + rate.dtype(),
                   rate.flops() / 1e9);
  for (const cluster::KernelRate &rate : device.kernels())
    if (rate.flops() > 0)
      fmt::format_to(out, "  {:<26}{:>9.1f} GFLOP/s\n", rate.kernel() + " of " + rate.dtype(),
                     rate.flops() / 1e9);
  // On GPUs, small calls are of no interest.
  const uint64_t few = isOfCores ? 256 << 10 : 32 << 20, many = isOfCores ? 64 << 20 : 512 << 20;
  fmt::format_to(out, "  {:<26}{:>14}{:>14}\n", "kernels of f32", formatBytes(few),
                 formatBytes(many));
  for (const cluster::KernelRate &rate : device.kernels())
    if (rate.dtype() == "f32" && isShown(rate.kernel()))
      fmt::format_to(out, "    {:<24}{:>9.2f} GB/s{:>9.2f} GB/s\n", rate.kernel(),
                     bandwidthAt(rate, static_cast<double>(few)) / 1e9,
                     bandwidthAt(rate, static_cast<double>(many)) / 1e9);
  if (!isOfCores && node.devices() == 1)
    text += "  links between GPUs are not measured: the node has one GPU\n";
  if (node.link().collectives().empty())
    return text;
  fmt::format_to(out, "  {:<26}{:>9.2f} GB/s, {}\n", "messages", node.link().bandwidth() / 1e9,
                 formatDuration(node.link().latency()));
  for (const cluster::CollectiveTable &table : node.link().collectives()) {
    if (table.points().empty())
      continue;
    const cluster::TimePoint &least = table.points(0),
                             &most = table.points(table.points_size() - 1);
    auto bytes = [](const cluster::TimePoint &point) {
      return formatBytes(static_cast<uint64_t>(point.bytes()));
    };
    fmt::format_to(out, "    {:<24}{:>10} {:<10}{:>10} {}\n",
                   fmt::format("{} of {}", table.kind(), table.members()), bytes(least),
                   formatDuration(least.seconds()), bytes(most), formatDuration(most.seconds()));
  }
  for (const cluster::ArrivalSkew &skew : node.link().arrival_skews())
    fmt::format_to(out, "    the last of {:<2}  comes {} late after {} of work\n", skew.members(),
                   formatDuration(skew.wait_seconds()), formatDuration(skew.work_seconds()));
  return text;
}

} // namespace dtc::runtime
