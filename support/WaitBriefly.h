//===- WaitBriefly.h - Short waits without sleeping -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_WAITBRIEFLY_H
#define DTC_SUPPORT_WAITBRIEFLY_H

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace dtc {

/// Waits like `changed.wait(lock, condition)`, but stays awake at first: devices that do the same
/// come to a collective within parts of a millisecond. To put a thread to sleep and to wake it
/// takes a tenth of that on a virtual machine, whose core then needs a while to be fast again.
/// Threads that have something to do go first.
template <typename Condition>
void waitBriefly(std::condition_variable &changed, std::unique_lock<std::mutex> &lock,
                 const Condition &condition) {
  constexpr std::chrono::microseconds awake(500);
  auto end = std::chrono::steady_clock::now() + awake;
  while (!condition() && std::chrono::steady_clock::now() < end) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  changed.wait(lock, condition);
}

} // namespace dtc

#endif // DTC_SUPPORT_WAITBRIEFLY_H
