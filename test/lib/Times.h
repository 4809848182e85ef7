//===- Times.h - Times in tests -------------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_TIMES_H
#define DTC_TEST_LIB_TIMES_H

#include <ctime>
#include <functional>

namespace dtc::test {

/// Calls `attempt` with 1, 4 and 16 until it returns true; returns whether it has. A test of a time
/// limit multiplies its times by that number, so that it also passes on a machine that is slow or
/// has other work to do; a defect fails with all three.
inline bool passesWithMoreTime(const std::function<bool(int factor)> &attempt) {
  for (int factor : {1, 4, 16})
    if (attempt(factor))
      return true;
  return false;
}

/// The seconds of the CPU that this process has used, which other work on the machine leaves as
/// they are.
inline double cpuSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

} // namespace dtc::test

#endif // DTC_TEST_LIB_TIMES_H
