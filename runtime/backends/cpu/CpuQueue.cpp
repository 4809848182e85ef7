//===- CpuQueue.cpp - Queues of the host ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuQueue.h"

#include "support/StartThread.h"
#include "support/WaitBriefly.h"

#include <cassert>
#include <cstring>
#include <exception>

namespace dtc::runtime::cpu {

/// Returns the error that `work` returns or throws.
template <typename Work> static MaybeError guarded(const Work &work) {
  try {
    return work();
  } catch (const std::exception &exception) {
    return Error{exception.what()};
  }
}

static void copyBytes(std::byte *to, const std::byte *from, size_t bytes) {
  if (bytes == 0)
    return;
  if (from)
    std::memcpy(to, from, bytes);
  else
    std::memset(to, 0, bytes);
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

Expected<bool> CpuEvent::isDone() const {
  ThreadQueue *recorder = queue.load(std::memory_order_acquire);
  return recorder ? recorder->isDone(ticket.load(std::memory_order_acquire)) : Expected<bool>(true);
}

MaybeError CpuEvent::wait() const {
  ThreadQueue *recorder = queue.load(std::memory_order_acquire);
  return recorder ? recorder->waitFor(ticket.load(std::memory_order_acquire)) : MaybeError();
}

Expected<Event::TimePoint> CpuEvent::time() const {
  assert(timed && "only timed events know their time");
  // Also makes what the queue's thread wrote visible here.
  if (MaybeError error = wait())
    return *error;
  return moment;
}

//===----------------------------------------------------------------------===//
// Work that runs at once
//===----------------------------------------------------------------------===//

MaybeError DirectQueue::fail(MaybeError error) {
  if (error && !failure)
    failure = std::move(error);
  return failure;
}

MaybeError DirectQueue::enqueue(const Kernel &kernel, const KernelArguments &arguments) {
  if (failure)
    return failure;
  try {
    static_cast<const CpuKernel &>(kernel).runPrepared(arguments);
  } catch (const std::exception &exception) {
    return fail(Error{exception.what()});
  }
  return std::nullopt;
}

MaybeError DirectQueue::copy(std::byte *to, const std::byte *from, size_t bytes) {
  copyBytes(to, from, bytes);
  return failure;
}

MaybeError DirectQueue::clear(std::byte *at, size_t bytes) {
  copyBytes(at, nullptr, bytes);
  return failure;
}

MaybeError DirectQueue::call(HostWork &work) {
  return failure ? failure : fail(guarded([&] { return work.run(); }));
}

MaybeError DirectQueue::record(Event &event) {
  auto &own = static_cast<CpuEvent &>(event);
  if (own.queue.load(std::memory_order_relaxed))
    own.queue.store(nullptr, std::memory_order_release);
  if (own.timed)
    own.moment = std::chrono::steady_clock::now();
  return failure;
}

MaybeError DirectQueue::wait(const Event &event) {
  MaybeError error = event.wait();
  return error ? fail(std::move(error)) : failure;
}

//===----------------------------------------------------------------------===//
// Work of a thread
//===----------------------------------------------------------------------===//

ThreadQueue::ThreadQueue() : items(8), thread(startThread("communication", [this] { loop(); })) {}

ThreadQueue::~ThreadQueue() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  itemQueued.notify_one();
  thread.join();
}

MaybeError ThreadQueue::push(Item item) {
  {
    std::lock_guard lock(mutex);
    if (failure)
      return failure;
    if (queued - done == items.size()) {
      std::vector<Item> more(2 * items.size());
      for (Ticket ticket = done + 1; ticket <= queued; ++ticket)
        more[ticket % more.size()] = std::move(items[ticket % items.size()]);
      items = std::move(more);
    }
    ++queued;
    items[queued % items.size()] = std::move(item);
  }
  itemQueued.notify_one();
  return std::nullopt;
}

MaybeError ThreadQueue::enqueue(const Kernel &kernel, const KernelArguments &arguments) {
  auto list = [](auto span) { return std::vector(span.begin(), span.end()); };
  return push(KernelCall{&static_cast<const CpuKernel &>(kernel), list(arguments.inputs),
                         list(arguments.outputs), list(arguments.position), arguments.workspace});
}

MaybeError ThreadQueue::copy(std::byte *to, const std::byte *from, size_t bytes) {
  return push(Copy{to, from, bytes});
}

MaybeError ThreadQueue::clear(std::byte *at, size_t bytes) {
  return push(Copy{at, nullptr, bytes});
}

MaybeError ThreadQueue::call(HostWork &work) { return push(&work); }

MaybeError ThreadQueue::record(Event &event) {
  auto &own = static_cast<CpuEvent &>(event);
  if (own.timed)
    if (MaybeError error = push(&own))
      return error;
  std::lock_guard lock(mutex);
  own.ticket.store(queued, std::memory_order_release);
  own.queue.store(this, std::memory_order_release);
  return failure;
}

MaybeError ThreadQueue::wait(const Event &event) {
  const auto &own = static_cast<const CpuEvent &>(event);
  ThreadQueue *other = own.queue.load(std::memory_order_acquire);
  if (!other || other == this)
    return std::nullopt;
  return push(Wait{other, own.ticket.load(std::memory_order_acquire)});
}

MaybeError ThreadQueue::finish() {
  std::unique_lock lock(mutex);
  itemDone.wait(lock, [&] { return done == queued; });
  return failure;
}

Expected<bool> ThreadQueue::isDone(Ticket ticket) {
  std::lock_guard lock(mutex);
  if (failure)
    return *failure;
  return done >= ticket;
}

MaybeError ThreadQueue::waitFor(Ticket ticket) {
  std::unique_lock lock(mutex);
  waitBriefly(itemDone, lock, [&] { return done >= ticket; });
  return failure;
}

MaybeError ThreadQueue::run(Item &item) {
  if (auto *work = std::get_if<HostWork *>(&item))
    return (*work)->run();
  if (auto *copy = std::get_if<Copy>(&item)) {
    copyBytes(copy->to, copy->from, copy->bytes);
    return std::nullopt;
  }
  if (auto *wait = std::get_if<Wait>(&item))
    return wait->queue->waitFor(wait->ticket);
  if (auto *event = std::get_if<CpuEvent *>(&item)) {
    (*event)->moment = std::chrono::steady_clock::now();
    return std::nullopt;
  }
  const auto &call = std::get<KernelCall>(item);
  call.kernel->runPrepared({call.inputs, call.outputs, call.position, call.workspace});
  return std::nullopt;
}

void ThreadQueue::loop() {
  std::unique_lock lock(mutex);
  while (true) {
    itemQueued.wait(lock, [&] { return stopping || done != queued; });
    if (done == queued)
      return;
    if (!failure) {
      Item item = std::move(items[(done + 1) % items.size()]);
      lock.unlock();
      MaybeError error = guarded([&] { return run(item); });
      lock.lock();
      failure = std::move(error);
    }
    ++done;
    itemDone.notify_all();
  }
}

} // namespace dtc::runtime::cpu
