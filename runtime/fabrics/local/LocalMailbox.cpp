//===- LocalMailbox.cpp - Messages between threads ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/local/LocalMailbox.h"

#include "support/StartThread.h"
#include "support/WaitBriefly.h"

#include <cstring>
#include <fmt/format.h>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void LocalResults::report(Ticket ticket, TransferResult result) {
  {
    std::lock_guard lock(mutex);
    results.emplace(ticket, std::move(result));
  }
  changed.notify_one();
}

TransferResult LocalResults::wait(Ticket ticket) {
  std::unique_lock lock(mutex);
  waitBriefly(changed, lock, [&] { return aborted || results.count(ticket) > 0; });
  auto it = results.find(ticket);
  if (it == results.end())
    return {aborted, {}, {}};
  TransferResult result = std::move(it->second);
  results.erase(it);
  return result;
}

void LocalResults::abort(const Error &reason) {
  {
    std::lock_guard lock(mutex);
    aborted = reason;
  }
  changed.notify_one();
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

static MaybeError checkSizes(std::span<const TransferTensor> from,
                             std::span<const TransferTensor> to) {
  if (from.size() != to.size())
    return Error{
        fmt::format("the message has {} tensors, its receiver expects {}", from.size(), to.size())};
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i].bytes != to[i].bytes)
      return Error{fmt::format("tensor {} of the message has {} bytes, its receiver expects {}", i,
                               from[i].bytes, to[i].bytes)};
  return std::nullopt;
}

LocalMailbox::~LocalMailbox() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  messageReady.notify_one();
  if (copier.joinable())
    copier.join();
}

void LocalMailbox::start() {
  std::lock_guard lock(mutex);
  startCopier();
}

/// The mutex is held.
void LocalMailbox::startCopier() {
  if (!copier.joinable())
    copier = startThread("transfers", [this] { copyMessages(); });
}

void LocalMailbox::send(int64_t sender, const End &end) {
  std::lock_guard lock(mutex);
  Sender &from = senders[sender];
  if (from.receives.empty()) {
    from.sends.push_back(end);
    return;
  }
  End receive = from.receives.front();
  from.receives.pop_front();
  deliver(end, receive);
}

void LocalMailbox::receive(int64_t sender, const End &end) {
  std::lock_guard lock(mutex);
  startCopier();
  Sender &from = senders[sender];
  if (from.sends.empty()) {
    from.receives.push_back(end);
    return;
  }
  End send = from.sends.front();
  from.sends.pop_front();
  deliver(send, end);
}

/// The mutex is held. The locks of results are taken inside it, never the other way round.
void LocalMailbox::deliver(const End &from, const End &to) {
  if (MaybeError error = checkSizes(from.tensors, to.tensors)) {
    from.results->report(from.ticket, {error, {}, {}});
    to.results->report(to.ticket, {error, {}, {}});
    return;
  }
  ready.push_back({from, to});
  messageReady.notify_one();
}

static TransferResult copyTensors(std::span<const TransferTensor> from,
                                  std::span<const TransferTensor> to) {
  TransferResult result;
  result.begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i].bytes > 0)
      std::memcpy(to[i].data, from[i].data, from[i].bytes);
  result.end = std::chrono::steady_clock::now();
  return result;
}

void LocalMailbox::copyMessages() {
  std::unique_lock lock(mutex);
  while (true) {
    messageReady.wait(lock, [&] { return stopping || (!ready.empty() && !aborted); });
    if (stopping)
      return;
    Message message = ready.front();
    ready.pop_front();
    copying = true;
    lock.unlock();
    TransferResult result = copyTensors(message.from.tensors, message.to.tensors);
    message.from.results->report(message.from.ticket, result);
    message.to.results->report(message.to.ticket, result);
    lock.lock();
    copying = false;
    copyEnded.notify_all();
  }
}

void LocalMailbox::abort() {
  std::lock_guard lock(mutex);
  aborted = true;
}

void LocalMailbox::drain() {
  std::unique_lock lock(mutex);
  copyEnded.wait(lock, [&] { return !copying; });
}

} // namespace dtc::runtime
