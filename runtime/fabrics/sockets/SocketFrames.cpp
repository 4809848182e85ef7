//===- SocketFrames.cpp - Reads and writes the frames of a link ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/sockets/SocketLink.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace dtc::runtime {

/// Bytes of a body that are worth a call of the system of their own.
static constexpr size_t kDirectBytes = 16 << 10;
static constexpr size_t kMostVectors = 64;

/// The parts from byte `at` on, as the system takes them.
static void appendVectors(const std::vector<MessagePart> &parts, size_t at,
                          std::vector<iovec> &to) {
  for (const MessagePart &part : parts) {
    if (to.size() == kMostVectors)
      return;
    if (at < part.bytes)
      to.push_back({part.data + at, part.bytes - at});
    at -= std::min(at, part.bytes);
  }
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

void SocketLink::enqueue(Output output) {
  if (handle && !isCut && !isBroken)
    outputs.push_back(std::move(output));
}

/// Whether some bytes have been written.
bool SocketLink::writeSome() {
  if (outputs.empty() || isBroken)
    return false;
  // Small frames go together.
  std::vector<iovec> vectors;
  for (const Output &output : outputs) {
    if (vectors.size() >= kMostVectors)
      break;
    size_t at = output.written;
    if (at < sizeof(Head))
      vectors.push_back({const_cast<char *>(reinterpret_cast<const char *>(&output.head)) + at,
                         sizeof(Head) - at});
    at -= std::min(at, sizeof(Head));
    if (output.operation)
      appendVectors(output.operation->parts, at, vectors);
    else if (at < output.text.size())
      vectors.push_back({const_cast<char *>(output.text.data()) + at, output.text.size() - at});
    size_t follows = output.operation ? output.operation->bytes : output.text.size();
    if (vectors.size() >= kMostVectors || follows > kDirectBytes)
      break;
  }
  msghdr message = {};
  message.msg_iov = vectors.data();
  message.msg_iovlen = vectors.size();
  ssize_t sent = ::sendmsg(handle.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    // Reading reports a broken connection, after everything that came before.
    return errno == EINTR;
  }
  for (auto left = static_cast<size_t>(sent); !outputs.empty();) {
    Output &output = outputs.front();
    size_t whole = sizeof(Head) + (output.operation ? output.operation->bytes : output.text.size());
    size_t now = std::min(left, whole - output.written);
    output.written += now;
    left -= now;
    if (output.written < whole)
      break;
    if (output.operation)
      output.operation->finish();
    outputs.pop_front();
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// After a call that has read nothing: whether it is to be made again at once. A process that ends
/// without having read all that has come resets its connections.
bool SocketLink::triesAgain(ssize_t count) {
  if (count < 0 && errno == EINTR)
    return true;
  if (count == 0 || errno == ECONNRESET)
    breakLink("its connection was closed: it was killed, or it crashed");
  else if (errno != EAGAIN && errno != EWOULDBLOCK)
    breakLink(fmt::format("its connection is broken: {}", std::strerror(errno)));
  return false;
}

/// Whether some bytes have been read or understood.
bool SocketLink::readSome() {
  if (isBroken)
    return false;
  if (incoming.left > 0) {
    if (size_t count = std::min<size_t>(last - first, incoming.left); count > 0) {
      takeBody(inbox.data() + first, count);
      first += count;
      return true;
    }
    if (incoming.left >= kDirectBytes)
      return readBody();
  } else if (takeHead()) {
    return true;
  }
  std::memmove(inbox.data(), inbox.data() + first, last - first);
  last -= std::exchange(first, 0);
  ssize_t count = ::recv(handle.get(), inbox.data() + last, inbox.size() - last, MSG_DONTWAIT);
  if (count <= 0)
    return triesAgain(count);
  last += static_cast<size_t>(count);
  return true;
}

/// Straight to where the bytes belong.
bool SocketLink::readBody() {
  std::vector<iovec> vectors;
  std::array<std::byte, kDirectBytes> nowhere;
  if (incoming.operation)
    appendVectors(incoming.operation->parts, incoming.done, vectors);
  else if (incoming.kept)
    vectors.push_back({incoming.kept->kept.data() + incoming.done, incoming.left});
  else
    vectors.push_back({nowhere.data(), std::min<size_t>(nowhere.size(), incoming.left)});
  ssize_t count = ::readv(handle.get(), vectors.data(), static_cast<int>(vectors.size()));
  if (count <= 0)
    return triesAgain(count);
  incoming.done += static_cast<size_t>(count);
  incoming.left -= static_cast<size_t>(count);
  if (incoming.left == 0)
    bodyHasCome();
  return true;
}

void SocketLink::takeBody(const std::byte *bytes, size_t count) {
  if (incoming.operation)
    incoming.operation->write(incoming.done, bytes, count);
  else if (incoming.kept)
    std::memcpy(incoming.kept->kept.data() + incoming.done, bytes, count);
  else if (incoming.text)
    incoming.text->append(reinterpret_cast<const char *>(bytes), count);
  incoming.done += count;
  incoming.left -= count;
  if (incoming.left == 0)
    bodyHasCome();
}

/// Whether there was a whole head.
bool SocketLink::takeHead() {
  if (last - first < sizeof(Head))
    return false;
  Head head;
  std::memcpy(&head, inbox.data() + first, sizeof(Head));
  first += sizeof(Head);
  incoming = {};
  std::deque<Operation> &receivers = wanted[head.tag];
  if (head.kind == Head::Whole && !receivers.empty()) {
    incoming.left = head.bytes;
    if (receivers.front()->bytes == head.bytes)
      incoming.operation = receivers.front();
    else
      receivers.front()->fail(wrongSize(head.bytes, receivers.front()->bytes).message);
    receivers.pop_front();
  } else if (head.kind == Head::Whole || head.kind == Head::Offer) {
    auto message = std::make_shared<Arrived>();
    message->bytes = head.bytes;
    message->offer = head.kind == Head::Offer ? head.number : 0;
    if (head.kind == Head::Offer && !receivers.empty()) {
      Operation receiver = receivers.front();
      receivers.pop_front();
      hand(receiver, *message);
      return true;
    }
    arrived[head.tag].push_back(message);
    if (head.kind == Head::Offer)
      return true;
    message->kept.resize(head.bytes);
    incoming.left = head.bytes;
    incoming.kept = message;
  } else if (head.kind == Head::Request) {
    if (auto found = offered.find(head.number); found != offered.end()) {
      enqueue({{Head::Body, 0, head.number, found->second->bytes}, found->second});
      offered.erase(found);
    }
    return true;
  } else if (head.kind == Head::Body) {
    incoming.left = head.bytes;
    if (auto found = requested.find(head.number); found != requested.end()) {
      incoming.operation = found->second;
      requested.erase(found);
    }
  } else if (head.kind == Head::Abort && head.bytes <= kMostReasonBytes) {
    incoming.left = head.bytes;
    incoming.text = &reasonText;
  } else if (head.kind == Head::Goodbye) {
    heardGoodbye = true;
    return true;
  } else {
    breakLink(
        fmt::format("it sends what is no message (kind {}); all need the same dtc-run", head.kind));
    return false;
  }
  if (incoming.left == 0)
    bodyHasCome();
  return true;
}

void SocketLink::bodyHasCome() {
  Incoming done = std::exchange(incoming, {});
  if (done.operation)
    done.operation->finish();
  if (done.text)
    reason = Error{std::exchange(reasonText, {})};
  if (!done.kept)
    return;
  done.kept->isWhole = true;
  if (done.kept->taken && *done.kept->taken)
    hand(*done.kept->taken, *done.kept);
}

void SocketLink::breakLink(const std::string &why) {
  isBroken = true;
  broken = fmt::format("process {}: {}", other, why);
  auto failThis = [&](const Operation &operation) {
    if (operation && operation->state == SocketOperation::UnderWay)
      operation->fail(broken);
  };
  for (const Output &output : outputs)
    failThis(output.operation);
  outputs.clear();
  for (auto &[tag, operations] : wanted)
    std::ranges::for_each(operations, failThis);
  for (auto *each : {&offered, &requested})
    for (auto &[number, operation] : *each)
      failThis(operation);
  failThis(incoming.operation);
  if (incoming.kept && incoming.kept->taken)
    failThis(*incoming.kept->taken);
  wanted.clear();
  offered.clear();
  requested.clear();
  incoming = {};
}

} // namespace dtc::runtime
