//===- KernelLimits.cpp - Times of kernels beside what the machine allows -===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/KernelLimits.h"

#include "benchmarks/Median.h"
#include "plan/KernelTable.h"
#include "plan/PlanTypes.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace dtc::benchmarks {

/// More than the last cache of a processor that has up to 64 MiB.
static constexpr size_t kCopiedBytes = size_t{128} << 20;

std::map<std::string, double> bytesByKernel(const plan::Plan &plan) {
  std::map<std::string, double> bytes;
  const plan::Program &program = plan.programs(0);
  auto typesOf = [&](const auto &buffers) {
    std::vector<TensorType> types;
    for (uint32_t buffer : buffers)
      types.push_back(typeOf(program.buffers(static_cast<int>(buffer))));
    return types;
  };
  for (const plan::Task &task : program.tasks())
    for (const plan::Instruction &instruction : task.instructions())
      if (instruction.has_kernel()) {
        const plan::KernelCall &call = instruction.kernel();
        bytes[call.kernel()] += static_cast<double>(
            kernelBytes(call.kernel(), typesOf(call.inputs()), typesOf(call.outputs())));
      }
  return bytes;
}

CopyRate::CopyRate(int threads) : threads(threads), from(kCopiedBytes, 1), to(kCopiedBytes) {}

double CopyRate::measure(int count) {
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i) {
    auto begin = std::chrono::steady_clock::now();
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int part = 0; part < threads; ++part) {
      size_t first = kCopiedBytes * static_cast<size_t>(part) / static_cast<size_t>(threads);
      size_t end = kCopiedBytes * static_cast<size_t>(part + 1) / static_cast<size_t>(threads);
      std::memcpy(to.data() + first, from.data() + first, end - first);
    }
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return 2 * static_cast<double>(kCopiedBytes) / median(std::move(seconds));
}

std::string formatLimits(const std::vector<runtime::ProfileEntry> &profile, int steps,
                         const std::map<std::string, double> &bytes,
                         const std::map<std::string, double> &contractions,
                         const MachineRates &rates) {
  auto valueOf = [](const std::map<std::string, double> &values, const std::string &kernel) {
    auto found = values.find(kernel);
    return found == values.end() ? 0.0 : found->second;
  };
  std::string table = fmt::format("{:<20} {:>10} {:>10} {:>8} {:>10} {:>7}\n", "kernel",
                                  "ms a step", "MB a step", "GB/s", "limit ms", "reached");
  double total = 0, totalLimit = 0;
  for (const runtime::ProfileEntry &entry : profile) {
    double seconds = entry.seconds / steps, moved = valueOf(bytes, entry.name);
    double limit = std::max(valueOf(contractions, entry.name) / rates.flops, moved / rates.bytes);
    total += seconds;
    totalLimit += limit;
    if (seconds > 0)
      table += fmt::format("{:<20} {:>10.3f} {:>10.2f} {:>8.2f} {:>10.3f} {:>6.1f}%\n", entry.name,
                           seconds * 1e3, moved * 1e-6, moved / seconds * 1e-9, limit * 1e3,
                           100 * limit / seconds);
  }
  if (total > 0)
    table += fmt::format("{:<20} {:>10.3f} {:>10} {:>8} {:>10.3f} {:>6.1f}%\n", "all", total * 1e3,
                         "", "", totalLimit * 1e3, 100 * totalLimit / total);
  return table;
}

} // namespace dtc::benchmarks
