//===- WaitTimes.cpp - Waiting times and stragglers -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/WaitTimes.h"

#include "runtime/train/TrainingRun.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

/// The part of the steps by which processes differ where one is called slow.
static constexpr double kSlowShare = 0.1;
/// The seconds by which they differ at least: the first step of a run alone may take some.
static constexpr double kSlowSeconds = 0.1;

WaitTimes waitTimesOf(std::span<const double> seconds) {
  auto least = std::ranges::min_element(seconds), most = std::ranges::max_element(seconds);
  return WaitTimes{*most, *least, most - seconds.begin(), least - seconds.begin()};
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
  if (!options.writesMetrics())
    return std::nullopt;
  if (beside) { // the processes meet in outer steps of all parameters alone
    if (!outerSteps->whole() || !outerStepIsDue(metrics.step))
      return std::nullopt;
    if (MaybeError error = beside->settle())
      return error;
  }
  Expected<std::vector<double>> all = options.processes.inFirst(waited);
  if (!all)
    return all.error();
  if (!options.processes.isFirst())
    return std::nullopt;
  WaitTimes times = waitTimesOf(*all);
  metrics.mostWaitSeconds = times.most;
  metrics.leastWaitSeconds = times.least;
  metrics.mostWaitProcess = times.mostProcess;
  metrics.leastWaitProcess = times.leastProcess;
  metrics.waitSeconds = std::move(*all);
  return std::nullopt;
}

MaybeError TrainingRun::reportWaits() const {
  if (!options.processes.areSeveral() || result.stepsDone == begin.step)
    return std::nullopt;
  Expected<std::vector<double>> all = options.processes.inFirst(waitedSeconds);
  if (!all)
    return all.error();
  Expected<std::vector<std::string>> hosts = options.processes.all(hostName());
  if (!hosts)
    return hosts.error();
  if (options.processes.isFirst())
    printTo(out, "{}", printableLines(formatWaitTimes(waitTimesOf(*all), stepSeconds, *hosts)));
  return std::nullopt;
}

} // namespace dtc::runtime
