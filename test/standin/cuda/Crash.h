//===- Crash.h - Reports that end the process ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_CRASH_H
#define DTC_TEST_STANDIN_CUDA_CRASH_H

#include <cstdint>
#include <string>

namespace dtc::standin {

/// Prints the message with the seed that repeats it, and aborts.
[[noreturn]] void crash(const std::string &message, uint64_t seed);

/// From now on an access to memory that cannot be accessed is reported by what accesses it, and by
/// the allocation next to it. Called once, by the thread that executes the work of the devices.
void installCrashHandler();

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_CRASH_H
