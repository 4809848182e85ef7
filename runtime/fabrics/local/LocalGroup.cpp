//===- LocalGroup.cpp - Threads that meet ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/local/LocalGroup.h"

#include "support/WaitBriefly.h"

namespace dtc::runtime {

bool LocalGroup::agree() const {
  for (const Slot &slot : slots)
    if (slot.fingerprint != slots.front().fingerprint)
      return false;
  return true;
}

bool LocalGroup::waitForOthers(std::unique_lock<std::mutex> &lock) {
  uint64_t mine = generation;
  waitBriefly(changed, lock, [&] { return generation != mine || aborted; });
  return generation != mine;
}

void LocalGroup::release(std::unique_lock<std::mutex> &lock) {
  arrived = 0;
  ++generation;
  lock.unlock();
  changed.notify_all();
}

bool LocalGroup::barrier() {
  std::unique_lock lock(mutex);
  if (aborted)
    return false;
  if (++arrived < slots.size())
    return waitForOthers(lock);
  release(lock);
  return true;
}

void LocalGroup::abort() {
  {
    std::lock_guard lock(mutex);
    aborted = true;
  }
  changed.notify_all();
}

} // namespace dtc::runtime
