//===- CpuQueue.h - Queues of the host ------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A DirectQueue runs its work at once, in the thread that enqueues it: for it, enqueuing a
// kernel is a call. A ThreadQueue has a thread of its own, so that communication overlaps with
// kernels. Nothing here allocates memory once a queue has held as much as it ever will.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_CPUQUEUE_H
#define DTC_RUNTIME_BACKENDS_CPU_CPUQUEUE_H

#include "runtime/backends/cpu/CpuKernel.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

namespace dtc::runtime::cpu {

class ThreadQueue;

/// A moment of a queue. That of a DirectQueue has come when record() returns.
class CpuEvent final : public Event {
public:
  explicit CpuEvent(bool timed) : timed(timed) {}

  Expected<bool> isDone() const override;
  MaybeError wait() const override;
  Expected<TimePoint> time() const override;

private:
  friend class DirectQueue;
  friend class ThreadQueue;

  const bool timed;
  /// Where the moment is that of item `ticket`; null: it has come.
  std::atomic<ThreadQueue *> queue = nullptr;
  std::atomic<uint64_t> ticket = 0;
  TimePoint moment; // if timed and come
};

/// Runs everything at once, in the thread that enqueues it.
class DirectQueue final : public Queue {
public:
  MaybeError enqueue(const Kernel &kernel, const KernelArguments &arguments) override;
  MaybeError copy(std::byte *to, const std::byte *from, size_t bytes) override;
  MaybeError clear(std::byte *at, size_t bytes) override;
  MaybeError call(HostWork &work) override;
  MaybeError record(Event &event) override;
  MaybeError wait(const Event &event) override;
  MaybeError finish() override { return failure; }

private:
  /// Keeps the first error.
  MaybeError fail(MaybeError error);

  MaybeError failure;
};

/// A thread that runs what is enqueued, in order. It sleeps while there is nothing.
class ThreadQueue final : public Queue {
public:
  /// Throws ThreadStartError.
  ThreadQueue();
  /// Waits for what is enqueued, which the caller must have made to end.
  ~ThreadQueue() override;
  ThreadQueue(const ThreadQueue &) = delete;
  ThreadQueue &operator=(const ThreadQueue &) = delete;

  MaybeError enqueue(const Kernel &kernel, const KernelArguments &arguments) override;
  MaybeError copy(std::byte *to, const std::byte *from, size_t bytes) override;
  MaybeError clear(std::byte *at, size_t bytes) override;
  MaybeError call(HostWork &work) override;
  MaybeError record(Event &event) override;
  MaybeError wait(const Event &event) override;
  MaybeError finish() override;

  /// Counts what was enqueued, from 1.
  using Ticket = uint64_t;
  /// Whether an item is done. Any thread may ask.
  Expected<bool> isDone(Ticket ticket);
  /// Waits until an item is done; an error if that or one before it failed. Any thread may wait.
  MaybeError waitFor(Ticket ticket);

private:
  struct KernelCall {
    const CpuKernel *kernel;
    std::vector<void *> inputs, outputs;
    std::vector<AxisCoordinate> position;
    void *workspace;
  };
  struct Copy {
    std::byte *to;
    const std::byte *from; // null: the bytes become zero
    size_t bytes;
  };
  /// Until an item of another queue is done.
  struct Wait {
    ThreadQueue *queue;
    Ticket ticket;
  };
  using Item =
      std::variant<HostWork *, Copy, Wait, CpuEvent *, KernelCall>; // of an event, its time

  MaybeError push(Item item);
  void loop();
  static MaybeError run(Item &item);

  std::mutex mutex;
  std::condition_variable itemQueued;
  std::condition_variable itemDone;
  std::vector<Item> items; // a ring: ticket t has items[t % size]
  Ticket queued = 0;
  Ticket done = 0;
  MaybeError failure;
  bool stopping = false;
  std::thread thread; // last: it uses the others
};

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_CPUQUEUE_H
