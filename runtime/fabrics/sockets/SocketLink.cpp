//===- SocketLink.cpp - Messages to and from one process -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/sockets/SocketLink.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace dtc::runtime {

/// Messages with more bytes are offered first. Above what collectives send at once.
static constexpr size_t kLargestUnasked = 1 << 20;
static constexpr size_t kInboxBytes = 64 << 10;

static std::vector<MessagePart> withoutEmpty(std::span<const MessagePart> parts) {
  std::vector<MessagePart> kept;
  for (const MessagePart &part : parts)
    if (part.bytes > 0)
      kept.push_back(part);
  return kept;
}

static size_t bytesOf(std::span<const MessagePart> parts) {
  size_t bytes = 0;
  for (const MessagePart &part : parts)
    bytes += part.bytes;
  return bytes;
}

SocketOperation::SocketOperation(std::span<const MessagePart> theParts)
    : parts(withoutEmpty(theParts)), bytes(bytesOf(theParts)) {}

void SocketOperation::write(size_t at, const std::byte *from, size_t count) const {
  for (const MessagePart &part : parts) {
    if (at < part.bytes && count > 0) {
      size_t now = std::min(count, part.bytes - at);
      std::memcpy(part.data + at, from, now);
      from += now;
      count -= now;
      at += now;
    }
    at -= std::min(at, part.bytes);
  }
}

SocketLink::SocketLink(int64_t process, OwnedFile file, Heard heard)
    : other(process), handle(std::move(file)), heard(std::move(heard)), inbox(kInboxBytes) {
  int on = 1, buffer = 4 << 20;
  if (!handle)
    return;
  setsockopt(handle.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // The system takes as much of it as it allows.
  setsockopt(handle.get(), SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
  setsockopt(handle.get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
}

Error SocketLink::wrongSize(uint64_t sent, size_t expected) const {
  return Error{fmt::format("process {}: the message has {} bytes, its receiver expects {}", other,
                           sent, expected)};
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

void SocketLink::send(const Operation &operation) {
  {
    std::lock_guard lock(mutex);
    if (isBroken)
      return operation->fail(broken);
    if (isCut)
      return operation->fail(
          fmt::format("process {}: a message to it was given up before all of it was sent", other));
    if (!handle)
      return matchLocal(operation);
    if (operation->bytes <= kLargestUnasked) {
      enqueue({{Head::Whole, operation->tag, 0, operation->bytes}, operation});
    } else {
      operation->number = ++lastOffer;
      offered[operation->number] = operation;
      enqueue({{Head::Offer, operation->tag, operation->number, operation->bytes}, nullptr});
    }
    while (writeSome())
      ;
  }
}

void SocketLink::receive(const Operation &operation) {
  std::lock_guard lock(mutex);
  auto found = arrived.find(operation->tag);
  if (found != arrived.end() && !found->second.empty()) {
    std::shared_ptr<Arrived> message = found->second.front();
    found->second.pop_front();
    return hand(operation, *message);
  }
  if (isBroken)
    return operation->fail(broken);
  wanted[operation->tag].push_back(operation);
}

/// Gives an operation the message that has come for it.
void SocketLink::hand(const Operation &operation, Arrived &message) {
  bool fits = message.bytes == operation->bytes;
  if (!fits)
    operation->fail(wrongSize(message.bytes, operation->bytes).message);
  if (message.sender) {
    if (fits) {
      size_t at = 0;
      for (const MessagePart &part : message.sender->parts) {
        operation->write(at, part.data, part.bytes);
        at += part.bytes;
      }
      operation->finish();
    }
    message.sender->finish();
  } else if (message.offer != 0) {
    // Also of one that does not fit: its sender waits. The bytes go nowhere.
    requested[message.offer] = fits ? operation : nullptr;
    enqueue({{Head::Request, 0, message.offer, 0}, nullptr});
    while (writeSome())
      ;
  } else if (!fits) {
    message.taken.emplace(nullptr);
  } else if (message.isWhole) {
    operation->write(0, message.kept.data(), operation->bytes);
    operation->finish();
  } else if (isBroken) {
    operation->fail(broken);
  } else {
    message.taken = operation;
  }
}

void SocketLink::matchLocal(const Operation &operation) {
  auto message = std::make_shared<Arrived>();
  message->bytes = operation->bytes;
  message->sender = operation;
  std::deque<Operation> &receivers = wanted[operation->tag];
  if (receivers.empty()) {
    arrived[operation->tag].push_back(std::move(message));
    return;
  }
  Operation receiver = receivers.front();
  receivers.pop_front();
  hand(receiver, *message);
}

void SocketLink::cancel(const Operation &operation) {
  std::lock_guard lock(mutex);
  std::erase(wanted[operation->tag], operation);
  std::erase_if(offered, [&](const auto &each) { return each.second == operation; });
  for (auto &[number, receiver] : requested)
    if (receiver == operation)
      receiver = nullptr; // its bytes go nowhere
  for (auto &[tag, messages] : arrived)
    std::erase_if(messages, [&](const auto &message) { return message->sender == operation; });
  if (incoming.operation == operation)
    incoming.operation = nullptr;
  if (incoming.kept && incoming.kept->taken == operation)
    incoming.kept->taken.emplace(nullptr);
  for (auto output = outputs.begin(); output != outputs.end();) {
    bool isOf = output->operation == operation;
    isCut |= isOf && output->written > 0; // what follows would be taken for the rest of it
    output = isOf ? outputs.erase(output) : output + 1;
  }
  if (isCut)
    outputs.clear();
}

//===----------------------------------------------------------------------===//
// The network's side
//===----------------------------------------------------------------------===//

void SocketLink::moveLocked() {
  for (bool moved = true; moved;) {
    moved = false;
    while (writeSome())
      moved = true;
    while (readSome())
      moved = true;
  }
}

void SocketLink::move() {
  if (!handle)
    return;
  std::unique_lock lock(mutex);
  moveLocked();
  if (MaybeError told = std::exchange(reason, std::nullopt)) {
    lock.unlock();
    heard(*told);
  }
}

void SocketLink::tryToMove() {
  if (!handle)
    return;
  std::unique_lock lock(mutex, std::try_to_lock);
  if (lock)
    moveLocked();
}

void SocketLink::tellAbort(const std::string &text) {
  std::lock_guard lock(mutex);
  std::string cut = text.substr(0, kMostReasonBytes);
  enqueue({{Head::Abort, 0, 0, cut.size()}, nullptr, cut});
  while (writeSome())
    ;
}

void SocketLink::sayGoodbye() {
  std::lock_guard lock(mutex);
  enqueue({{Head::Goodbye, 0, 0, 0}, nullptr});
  while (writeSome())
    ;
}

bool SocketLink::isOver() {
  std::lock_guard lock(mutex);
  return !handle || isBroken || (outputs.empty() && heardGoodbye);
}

} // namespace dtc::runtime
