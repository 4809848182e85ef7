//===- BusyCores.cpp - Measured times of work on all cores ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/BusyCores.h"

#include <algorithm>
#include <atomic>
#include <time.h>
#include <utility>

namespace dtc::runtime {

/// Reading the clock takes a hundredth of this, and a time slice of the system far more.
static constexpr double kSampleSeconds = 100e-6;

static double now(BusyCores::Time time) {
  timespec result = {};
  clock_gettime(time == BusyCores::Time::OfThread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC,
                &result);
  return static_cast<double>(result.tv_sec) + static_cast<double>(result.tv_nsec) * 1e-9;
}

/// Samples of one call over `seconds`, three at least. Work that takes much longer than that is
/// measured once, after a first call that is not counted.
std::vector<SpeedMeasurement> BusyCores::measureHere(const Work &work, double seconds, Time time) {
  auto secondsOf = [&](int64_t calls) {
    double begin = now(time);
    for (int64_t i = 0; i < calls; ++i)
      work();
    return now(time) - begin;
  };
  double spent = secondsOf(1);
  size_t least = spent > 4 * seconds ? 1 : 3;
  // The first call met code and pages for the first time and says little of those to come.
  int64_t calls = 1;
  for (double sample = spent; sample < kSampleSeconds / 2 && calls < 1 << 20;) {
    calls *= 2;
    sample = secondsOf(calls);
    spent += sample;
  }
  std::vector<SpeedMeasurement> samples;
  double before = speed.referenceLoop(), begin = now(Time::Passing);
  while (true) {
    double sample = secondsOf(calls), after = speed.referenceLoop(), end = now(Time::Passing);
    spent += sample;
    samples.push_back({sample / static_cast<double>(calls), std::max(before, after)});
    before = after;
    double passed = end - std::exchange(begin, end);
    if (samples.size() < least || spent < seconds)
      continue;
    if (countFull(samples, speed) >= least)
      isMeasured = true;
    else if (!isMeasured && speed.wait(passed / static_cast<double>(count)))
      continue;
    return samples;
  }
}

Expected<double> BusyCores::measure(const std::function<Expected<Work>(size_t thread)> &prepare,
                                    double seconds, Time time) {
  std::vector<Work> work(count);
  if (MaybeError error = threads.run([&](size_t thread) -> MaybeError {
        Expected<Work> prepared = prepare(thread);
        if (!prepared)
          return prepared.error();
        work[thread] = std::move(*prepared);
        return std::nullopt;
      }))
    return *error;
  std::vector<std::vector<SpeedMeasurement>> samples(count);
  isMeasured = false;
  std::atomic<size_t> unmeasured = count;
  if (MaybeError error = threads.run([&](size_t thread) -> MaybeError {
        samples[thread] = measureHere(work[thread], seconds, time);
        // The others are not to have the machine for themselves.
        for (--unmeasured; unmeasured > 0;)
          work[thread]();
        return std::nullopt;
      }))
    return *error;
  double sum = 0, numFull = 0;
  std::vector<SpeedMeasurement> all;
  for (const std::vector<SpeedMeasurement> &own : samples) {
    all.insert(all.end(), own.begin(), own.end());
    if (countFull(own, speed) == 0)
      continue;
    sum += medianAtFullSpeed(own, speed);
    ++numFull;
  }
  return numFull > 0 ? sum / numFull : medianAtFullSpeed(all, speed);
}

} // namespace dtc::runtime
