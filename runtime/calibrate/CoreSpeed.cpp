//===- CoreSpeed.cpp - Measured speed of cores ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/CoreSpeed.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <sched.h>
#include <string>
#include <thread>
#include <time.h>

namespace dtc::runtime {

/// The CPUs of this process in their order; none where it has more than the set has room for.
static std::vector<int> usableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set))
        cpus.push_back(cpu);
  return cpus;
}

int64_t usableCores() {
  std::vector<int> cpus = usableCpus();
  return cpus.empty() ? std::max(1u, std::thread::hardware_concurrency())
                      : static_cast<int64_t>(cpus.size());
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

/// Keeps the units for arithmetic busy: who shares them with another thread gets half of them.
static float compute(int rounds, float start) {
  // There are enough sums at a time to fill the latency of an addition, and registers for all of
  // them.
  using Vector = float __attribute__((vector_size(16)));
  constexpr int chains = 12;
  Vector sums[chains];
  for (int chain = 0; chain < chains; ++chain)
    sums[chain] = Vector{} + (start + static_cast<float>(chain)); // else they were one
  for (int round = 0; round < rounds; ++round)
    for (Vector &sum : sums)
      sum = sum * 0.5f + 1.0f;
  for (const Vector &sum : sums)
    start += sum[0];
  return start;
}

double CoreSpeed::referenceLoop() {
  auto now = [] {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  // An interrupt may fall into one of two loops.
  double seconds = 1e9;
  volatile float result = 1; // the compiler must not know the value
  for (int loop = 0; loop < 2; ++loop) {
    double begin = now();
    result = compute(2500, result);
    seconds = std::min(seconds, now() - begin);
  }
  for (double known = least; seconds < known && !least.compare_exchange_weak(known, seconds);)
    ;
  return seconds;
}

CoreWatch::CoreWatch(CoreSpeed &speed)
    : speed(speed), seconds(static_cast<size_t>(usableCores())),
      threads(seconds.size(), [](const Error &) {}) {
  std::vector<int> cpus = usableCpus();
  if (cpus.empty())
    return; // the threads go where the system puts them
  // A thread that may not be pinned goes where the system puts it: this cannot fail.
  (void)threads.run([&](size_t thread) -> MaybeError {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus[thread], &set);
    sched_setaffinity(0, sizeof(set), &set);
    return std::nullopt;
  });
}

/// Whether other threads run at the same time as the one that asks.
static bool othersRun() {
  // Threads that have just done something still fall asleep.
  for (int i = 0; i < 5; ++i) {
    std::ifstream file("/proc/loadavg"); // "0.20 0.18 0.12 1/80 11206": one of 80 threads runs
    std::string averages[3];
    int64_t running = 0;
    if (!(file >> averages[0] >> averages[1] >> averages[2] >> running) || running <= 1)
      return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

double CoreWatch::referenceLoop() {
  (void)threads.run([&](size_t thread) -> MaybeError { // which returns no error
    seconds[thread] = speed.referenceLoop();
    return std::nullopt;
  });
  return othersRun() ? std::numeric_limits<double>::infinity()
                     : *std::max_element(seconds.begin(), seconds.end());
}

size_t countFull(const std::vector<SpeedMeasurement> &samples, const CoreSpeed &speed) {
  return static_cast<size_t>(
      std::count_if(samples.begin(), samples.end(), [&](const SpeedMeasurement &sample) {
        return speed.isFull(sample.referenceLoop);
      }));
}

double medianAtFullSpeed(const std::vector<SpeedMeasurement> &samples, const CoreSpeed &speed) {
  std::vector<double> full;
  for (const SpeedMeasurement &sample : samples)
    if (speed.isFull(sample.referenceLoop))
      full.push_back(sample.seconds);
  if (full.empty() && !samples.empty()) {
    // All of those that were disturbed as little as the least.
    double least = samples.front().referenceLoop;
    for (const SpeedMeasurement &sample : samples)
      least = std::min(least, sample.referenceLoop);
    for (const SpeedMeasurement &sample : samples)
      if (sample.referenceLoop <= kFullSpeedShare * least)
        full.push_back(sample.seconds);
  }
  return median(std::move(full));
}

} // namespace dtc::runtime
