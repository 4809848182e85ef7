//===- CoreTimer.cpp - Times of calls on all cores ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/CoreTimer.h"

#include "support/Memory.h"

#include <algorithm>

namespace dtc::runtime {

/// Calls with larger operands are left out: those of kernels that touch but few bytes of an operand
/// would take most of the time and of the memory.
static constexpr size_t kLargestOperands = size_t{256} << 20;

static size_t groupsOfCores(const CalibrationOptions &options) {
  return static_cast<size_t>(
      std::max<int64_t>(1, usableCores() / std::max(1, options.threadsPerDevice)));
}

CoreTimer::CoreTimer(const CalibrationOptions &options, std::shared_ptr<const Backend> backend,
                     CoreSpeed &speed)
    : options(options), backend(std::move(backend)), cores(groupsOfCores(options), speed) {
  while (memory.size() < cores.size())
    memory.push_back(std::make_shared<HostOperandMemory>());
}

Expected<double> CoreTimer::secondsOf(const std::vector<KernelSignature> &calls,
                                      KernelRunOptions run) {
  run.threads = options.threadsPerDevice;
  // The calls take turns: together they have the working set.
  run.workingSetBytes /= calls.size();
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

/// All threads together do not fill the memory.
size_t CoreTimer::mostOperandBytes() const {
  return std::min<size_t>(kLargestOperands, memoryLimit().bytes / 4 / cores.size());
}

} // namespace dtc::runtime
