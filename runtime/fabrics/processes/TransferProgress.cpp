//===- TransferProgress.cpp - The thread that moves messages of devices ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/TransferProgress.h"

#include "support/StartThread.h"

#include <algorithm>
#include <chrono>

namespace dtc::runtime {

TransferProgress::~TransferProgress() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_one();
  if (thread.joinable())
    thread.join();
}

void TransferProgress::start() {
  std::lock_guard lock(mutex);
  if (!thread.joinable())
    thread = startThread("transfers", [this] { loop(); });
}

void TransferProgress::add(int64_t device, std::unique_ptr<MessageBatch> batch, OnDone onDone) {
  start();
  {
    std::lock_guard lock(mutex);
    pending.push_back({device, std::move(batch), std::move(onDone)});
  }
  changed.notify_one();
}

void TransferProgress::cancel(int64_t device) {
  std::lock_guard lock(mutex);
  std::erase_if(pending, [&](Pending &each) {
    if (each.device != device)
      return false;
    // A batch that the network may still write for is kept as long as the process.
    if (!each.batch->cancel()) [[maybe_unused]]
      auto *kept = each.batch.release();
    return true;
  });
}

/// Whether any batch is done.
bool TransferProgress::look() {
  bool found = false;
  for (auto it = pending.begin(); it != pending.end();) {
    Expected<bool> done = it->batch->isDone();
    if (done && !*done) {
      ++it;
      continue;
    }
    found = true;
    it->onDone(done ? MaybeError() : MaybeError(done.error()));
    it = pending.erase(it);
  }
  return found;
}

void TransferProgress::loop() {
  using namespace std::chrono;
  constexpr microseconds shortest(10), longest(500);
  microseconds sleep = shortest;
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (pending.empty()) {
      changed.wait(lock, [&] { return stopping || !pending.empty(); });
      sleep = shortest;
      continue;
    }
    sleep = look() ? shortest : std::min(sleep * 2, longest);
    // A thread that starts a message wakes this one.
    changed.wait_for(lock, sleep);
  }
}

} // namespace dtc::runtime
