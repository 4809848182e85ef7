//===- LocalGroup.h - Threads that meet -----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_LOCAL_LOCALGROUP_H
#define DTC_RUNTIME_FABRICS_LOCAL_LOCALGROUP_H

#include "runtime/fabrics/Communicator.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace dtc::runtime {

/// A group of devices of one process: a barrier, and a slot in which each member shows the others
/// where its operands are.
class LocalGroup {
public:
  struct Slot {
    std::span<const CollectiveOperands> operands;
    uint64_t fingerprint = 0; // of the collective, to find members that disagree
  };

  explicit LocalGroup(size_t members) : slots(members) {}

  size_t size() const { return slots.size(); }

  /// Shows `slot` to the other members and waits for theirs. False if the group was aborted, or if
  /// the fingerprints differ, which aborts it. Before anyone wakes, the last member to come calls
  /// `work`: what is done there for all costs no second barrier.
  template <typename Work> bool publish(size_t rank, const Slot &slot, const Work &work) {
    std::unique_lock lock(mutex);
    slots[rank] = slot;
    if (aborted)
      return false;
    if (++arrived < slots.size())
      return waitForOthers(lock);
    if (!agree()) {
      lock.unlock();
      abort();
      return false;
    }
    work();
    release(lock);
    return true;
  }
  /// The slot that a member published. Valid until that member's next publish().
  const Slot &slot(size_t rank) const { return slots[rank]; }
  /// Waits until all members are here. False if the group was aborted.
  bool barrier();
  /// Wakes all members; every wait from now on returns false.
  void abort();

private:
  bool agree() const;
  bool waitForOthers(std::unique_lock<std::mutex> &lock);
  void release(std::unique_lock<std::mutex> &lock);

  std::vector<Slot> slots;
  std::mutex mutex;
  std::condition_variable changed;
  size_t arrived = 0;
  uint64_t generation = 0;
  bool aborted = false;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_LOCAL_LOCALGROUP_H
