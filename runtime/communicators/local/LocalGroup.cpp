//===- LocalGroup.cpp - Threads that meet ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/communicators/local/LocalGroup.h"

namespace dtc::runtime {

bool LocalGroup::publish(size_t rank, const Slot &slot) {
  // The barrier's mutex orders this write before the reads of the others.
  slots[rank] = slot;
  return barrier();
}

bool LocalGroup::barrier() {
  std::unique_lock lock(mutex);
  if (aborted)
    return false;
  if (++arrived == slots.size()) {
    arrived = 0;
    ++generation;
    lock.unlock();
    changed.notify_all();
    return true;
  }
  uint64_t mine = generation;
  changed.wait(lock, [&] { return generation != mine || aborted; });
  return generation != mine;
}

void LocalGroup::abort() {
  {
    std::lock_guard lock(mutex);
    aborted = true;
  }
  changed.notify_all();
}

} // namespace dtc::runtime
