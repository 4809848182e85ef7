//===- CommunicationStream.cpp - Collectives beside the kernels -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/CommunicationStream.h"

#include "support/StartThread.h"
#include "support/WaitBriefly.h"

#include <cassert>
#include <exception>

namespace dtc::runtime {

CommunicationStream::CommunicationStream(size_t capacity, std::function<MaybeError(size_t)> work)
    : work(std::move(work)), items(capacity),
      thread(startThread("communication", [this] { loop(); })) {}

CommunicationStream::~CommunicationStream() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  itemQueued.notify_one();
  thread.join();
}

CommunicationStream::Ticket CommunicationStream::queue(size_t item) {
  std::unique_lock lock(mutex);
  assert(queued - done < items.size() && "the queue has room");
  Ticket ticket = ++queued;
  items[ticket % items.size()] = item;
  lock.unlock();
  itemQueued.notify_one();
  return ticket;
}

MaybeError CommunicationStream::wait(Ticket ticket) {
  std::unique_lock lock(mutex);
  waitBriefly(itemDone, lock, [&] { return done >= ticket; });
  return failure;
}

void CommunicationStream::drain() {
  std::unique_lock lock(mutex);
  itemDone.wait(lock, [&] { return done == queued; });
}

bool CommunicationStream::isIdle() {
  std::lock_guard lock(mutex);
  return done == queued && !failure;
}

MaybeError CommunicationStream::runGuarded(size_t item) {
  try {
    return work(item);
  } catch (const std::exception &exception) {
    return Error{exception.what()};
  }
}

void CommunicationStream::loop() {
  std::unique_lock lock(mutex);
  while (true) {
    itemQueued.wait(lock, [&] { return stopping || done != queued; });
    if (done == queued)
      return;
    if (!failure) {
      size_t item = items[(done + 1) % items.size()];
      lock.unlock();
      MaybeError error = runGuarded(item);
      lock.lock();
      failure = std::move(error);
    }
    ++done;
    itemDone.notify_one();
  }
}

} // namespace dtc::runtime
