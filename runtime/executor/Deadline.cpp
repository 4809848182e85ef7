//===- Deadline.cpp - A function that is called after a time --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Deadline.h"

#include "support/StartThread.h"

#include <utility>

namespace dtc::runtime {

Deadline::Deadline(std::chrono::nanoseconds time, std::function<void()> onExpiry) {
  thread = startThread("a deadline", [this, time, onExpiry = std::move(onExpiry)] {
    std::unique_lock lock(mutex);
    if (ended.wait_for(lock, time, [&] { return hasEnded; }))
      return;
    lock.unlock();
    onExpiry();
  });
}

Deadline::~Deadline() {
  {
    std::lock_guard lock(mutex);
    hasEnded = true;
  }
  ended.notify_all();
  thread.join();
}

} // namespace dtc::runtime
