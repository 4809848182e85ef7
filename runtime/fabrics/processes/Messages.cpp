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

/// The thread that waits moves the messages, so that it cannot sleep for long. Where processes
/// share cores, it lets others go first from the beginning.
MaybeError MessageBatch::wait() {
  using namespace std::chrono;
  constexpr microseconds awake(200), longest(200);
  steady_clock::time_point begin = steady_clock::now();
  for (microseconds sleep(20);;) {
    Expected<bool> done = isDone();
    if (!done)
      return done.error();
    if (*done)
      return std::nullopt;
    if (MaybeError error = failure())
      return error;
    if (steady_clock::now() - begin < awake) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(sleep);
    sleep = std::min(sleep * 2, longest);
  }
}

} // namespace dtc::runtime
