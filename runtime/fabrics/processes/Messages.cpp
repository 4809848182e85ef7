//===- Messages.cpp - Bytes between processes ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/Messages.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace dtc::runtime {

/// Where the thread that waits moves the messages, it cannot sleep for long. Else it sleeps for a
/// small part of the time that it has waited: a slow link takes no core from the kernels. Where
/// processes share cores, it lets others go first from the beginning.
MaybeError MessageBatch::wait() {
  using namespace std::chrono;
  constexpr microseconds awake(200), longest(200), longestByItself(5000);
  constexpr int64_t part = 64; // of the time so far
  steady_clock::time_point begin = steady_clock::now();
  for (microseconds sleep(20);;) {
    Expected<bool> done = isDone();
    if (!done)
      return done.error();
    if (*done)
      return std::nullopt;
    if (MaybeError error = failure())
      return error;
    auto waited = duration_cast<microseconds>(steady_clock::now() - begin);
    if (waited < awake) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(sleep);
    sleep = std::min(
        sleep * 2, movesByItself() ? std::clamp(waited / part, longest, longestByItself) : longest);
  }
}

} // namespace dtc::runtime
