//===- WorkPool.h - Work of the host for queues ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_LOCAL_WORKPOOL_H
#define DTC_RUNTIME_FABRICS_LOCAL_WORKPOOL_H

#include "runtime/backends/Device.h"

#include <atomic>
#include <deque>
#include <functional>

namespace dtc::runtime {

/// Enqueues calls of one function with different arguments, and keeps these until they have run: on
/// a queue that runs at once, one set of them is enough. It is used by one thread at a time; its
/// calls may run on others, and it outlives them.
template <typename Arguments> class WorkPool {
public:
  explicit WorkPool(std::function<MaybeError(const Arguments &)> function)
      : function(std::move(function)) {}

  /// `fill` sets all arguments; memory that earlier ones have allocated is there to be used again.
  /// `waits`: the function may wait for work of other queues.
  template <typename Fill> MaybeError enqueue(Queue &queue, const Fill &fill, bool waits = true) {
    Work &work = takeUnused();
    work.waits = waits;
    fill(work.arguments);
    work.isUsed.store(true, std::memory_order_relaxed);
    MaybeError error = queue.call(work);
    // A queue does not run a call that it refuses.
    if (error)
      work.isUsed.store(false, std::memory_order_relaxed);
    return error;
  }

private:
  struct Work final : HostWork {
    explicit Work(const WorkPool &pool) : pool(pool) {}
    MaybeError run() override {
      MaybeError error = pool.function(arguments);
      isUsed.store(false, std::memory_order_release);
      return error;
    }

    bool mayWait() const override { return waits; }

    const WorkPool &pool;
    Arguments arguments;
    bool waits = false;
    std::atomic<bool> isUsed = false;
  };

  Work &takeUnused() {
    for (Work &work : works)
      if (!work.isUsed.load(std::memory_order_acquire))
        return work;
    return works.emplace_back(*this);
  }

  std::function<MaybeError(const Arguments &)> function;
  std::deque<Work> works; // at addresses that stay
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_LOCAL_WORKPOOL_H
