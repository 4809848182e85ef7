//===- BusyCores.cpp - Times of work that all cores do --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/BusyCores.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <sched.h>
#include <thread>
#include <time.h>

namespace dtc::runtime {

/// Reading the clock takes a hundredth of this, and a time slice of the system far more.
static constexpr double sampleSeconds = 100e-6;

int64_t usableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  // More cores than the set has room for.
  return std::max(1u, std::thread::hardware_concurrency());
}

double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle), values.end());
  if (values.size() % 2 == 1)
    return values[middle];
  double below = *std::max_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle));
  return (below + values[middle]) / 2;
}

static double now(BusyCores::Time time) {
  timespec result = {};
  clock_gettime(time == BusyCores::Time::OfThread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC,
                &result);
  return static_cast<double>(result.tv_sec) + static_cast<double>(result.tv_nsec) * 1e-9;
}

/// The median of one call over `seconds`, of three samples at least. Work that takes much longer
/// than that is measured once, after a first call that is not counted.
static double measureHere(const BusyCores::Work &work, double seconds, BusyCores::Time time) {
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
  for (double sample = spent; sample < sampleSeconds / 2 && calls < 1 << 20;) {
    calls *= 2;
    sample = secondsOf(calls);
    spent += sample;
  }
  std::vector<double> samples;
  while (samples.size() < least || spent < seconds) {
    double sample = secondsOf(calls);
    spent += sample;
    samples.push_back(sample / static_cast<double>(calls));
  }
  return median(std::move(samples));
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
  std::vector<double> times(count);
  std::atomic<size_t> unmeasured = count;
  if (MaybeError error = threads.run([&](size_t thread) -> MaybeError {
        times[thread] = measureHere(work[thread], seconds, time);
        // The others are not to have the machine for themselves.
        for (--unmeasured; unmeasured > 0;)
          work[thread]();
        return std::nullopt;
      }))
    return *error;
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(count);
}

} // namespace dtc::runtime
