//===- WaitTimes.cpp - Which process the others wait for -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/WaitTimes.h"

#include "runtime/train/TrainingRun.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace dtc::runtime {

/// A time and a process in one number: of equal times the first process counts.
static constexpr int kProcessBits = 16;
static constexpr int64_t kLastProcess = (int64_t{1} << kProcessBits) - 1;

/// The part of the steps by which processes differ where one is called slow.
static constexpr double kSlowShare = 0.1;
/// The seconds by which they differ at least: the first step of a run alone may take some.
static constexpr double kSlowSeconds = 0.1;

Expected<WaitTimes> waitTimesOf(const Processes &processes, double seconds) {
  auto nanoseconds = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 1e5) * 1e9))
                     << kProcessBits;
  int64_t process = std::min(processes.process(), kLastProcess);
  Expected<int64_t> most = processes.largest(nanoseconds | (kLastProcess - process));
  if (!most)
    return most.error();
  Expected<int64_t> least = processes.largest(-(nanoseconds | process));
  if (!least)
    return least.error();
  auto secondsOf = [](int64_t both) { return static_cast<double>(both >> kProcessBits) * 1e-9; };
  return WaitTimes{secondsOf(*most), secondsOf(-*least), kLastProcess - (*most & kLastProcess),
                   -*least & kLastProcess};
}

std::string formatWaitTimes(const WaitTimes &times, double seconds,
                            const std::vector<std::string> &hosts) {
  auto name = [&](int64_t process) {
    return fmt::format("process {} on {}", process, hosts[static_cast<size_t>(process)]);
  };
  if (times.most - times.least > std::max(kSlowShare * seconds, kSlowSeconds))
    return fmt::format("{} is slow: it waited {:.3f} s for the others, and {} {:.3f} s, of {:.3f} "
                       "s in steps\n",
                       name(times.leastProcess), times.least, name(times.mostProcess), times.most,
                       seconds);
  return fmt::format("processes waited {:.3f} s ({}) to {:.3f} s ({}) for each other, of {:.3f} s "
                     "in steps\n",
                     times.least, name(times.leastProcess), times.most, name(times.mostProcess),
                     seconds);
}

/// Asks the others only where somebody reads it: it is a step's second agreement.
MaybeError TrainingRun::addWaits(StepMetrics &metrics) {
  if (!options.processes.areSeveral())
    return std::nullopt;
  double waited = session->waitedSeconds();
  waitedSeconds += waited;
  stepSeconds += metrics.seconds;
  if (options.metricsPath.empty() && options.tensorBoardPath.empty() &&
      options.metricsAddress.empty())
    return std::nullopt;
  Expected<WaitTimes> times = waitTimesOf(options.processes, waited);
  if (!times)
    return times.error();
  metrics.mostWaitSeconds = times->most;
  metrics.leastWaitSeconds = times->least;
  metrics.mostWaitProcess = times->mostProcess;
  metrics.leastWaitProcess = times->leastProcess;
  return std::nullopt;
}

MaybeError TrainingRun::reportWaits() const {
  if (!options.processes.areSeveral() || result.stepsDone == begin.step)
    return std::nullopt;
  Expected<WaitTimes> times = waitTimesOf(options.processes, waitedSeconds);
  if (!times)
    return times.error();
  Expected<std::vector<std::string>> hosts = options.processes.all(hostName());
  if (!hosts)
    return hosts.error();
  printTo(out, "{}", printableLines(formatWaitTimes(*times, stepSeconds, *hosts)));
  return std::nullopt;
}

} // namespace dtc::runtime
