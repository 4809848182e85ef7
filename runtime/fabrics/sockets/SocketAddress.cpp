//===- SocketAddress.cpp - Listens and connects ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/sockets/SocketAddress.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

namespace dtc::runtime {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

static Expected<AddressList> lookUp(const std::string &address, int port, int flags) {
  addrinfo hints = {}, *list = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  if (int code = getaddrinfo(address.empty() ? nullptr : address.c_str(),
                             std::to_string(port).c_str(), &hints, &list);
      code != 0)
    return Error{fmt::format("{}: {}", address, gai_strerror(code))};
  return AddressList(list, freeaddrinfo);
}

static SocketEndpoint endpointOf(const sockaddr &where, socklen_t size) {
  char text[NI_MAXHOST] = {}, port[NI_MAXSERV] = {};
  if (getnameinfo(&where, size, text, sizeof(text), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  return {text, static_cast<int>(std::strtol(port, nullptr, 10))};
}

SocketEndpoint ownEnd(int file) {
  sockaddr_storage bound = {};
  socklen_t size = sizeof(bound);
  if (getsockname(file, reinterpret_cast<sockaddr *>(&bound), &size) != 0)
    return {};
  return endpointOf(reinterpret_cast<const sockaddr &>(bound), size);
}

static bool awaitFile(int file, short what, SocketTime deadline) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  pollfd entry{file, what, 0};
  return left.count() > 0 && poll(&entry, 1, static_cast<int>(left.count())) > 0;
}

std::string framed(const std::string &text) { return fmt::format("{:08x}", text.size()) + text; }

Expected<std::optional<std::string>> takeFramed(const std::string &received, size_t most) {
  if (received.size() < 8)
    return std::optional<std::string>();
  size_t bytes = 0;
  for (char digit : received.substr(0, 8)) {
    int value = digit >= '0' && digit <= '9'   ? digit - '0'
                : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                               : -1;
    if (value < 0)
      return Error{"no frame"};
    bytes = bytes * 16 + static_cast<size_t>(value);
  }
  if (bytes > most || received.size() > 8 + bytes)
    return Error{"no frame"};
  if (received.size() < 8 + bytes)
    return std::optional<std::string>();
  return std::optional(received.substr(8));
}

MaybeError sendAll(int file, const std::string &bytes, SocketTime deadline) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t sent = ::send(file, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent > 0)
      done += static_cast<size_t>(sent);
    else if (errno != EINTR && errno != EAGAIN)
      return Error{std::strerror(errno)};
    else if (!awaitFile(file, POLLOUT, deadline))
      return Error{"it takes nothing"};
  }
  return std::nullopt;
}

Expected<std::string> receiveFramed(int file, size_t most, SocketTime deadline) {
  std::string received;
  size_t wanted = 8;
  while (true) {
    char bytes[4096];
    ssize_t count = ::recv(file, bytes, std::min(sizeof(bytes), wanted - received.size()), 0);
    if (count == 0)
      return Error{"it has closed the connection"};
    if (count < 0 && errno != EINTR && errno != EAGAIN)
      return Error{std::strerror(errno)};
    if (count < 0) {
      if (!awaitFile(file, POLLIN, deadline))
        return Error{"nothing has come from it in time"};
      continue;
    }
    received.append(bytes, static_cast<size_t>(count));
    auto frame = takeFramed(received, most);
    if (!frame)
      return Error{"it is no dtc-run of this version"};
    if (*frame)
      return **frame;
    if (received.size() >= 8)
      wanted = 8 + std::strtoull(received.substr(0, 8).c_str(), nullptr, 16);
  }
}

static Expected<SocketListener> listenAt(const addrinfo &where) {
  OwnedFile file(socket(where.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  int on = 1;
  if (file)
    setsockopt(file.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (!file || bind(file.get(), where.ai_addr, where.ai_addrlen) != 0 ||
      listen(file.get(), SOMAXCONN) != 0)
    return Error{std::strerror(errno)};
  SocketEndpoint end = ownEnd(file.get());
  return SocketListener{std::move(file), end};
}

bool isLoopback(const std::string &address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost";
}

Expected<SocketListener> listenAt(const std::string &address, int port) {
  Expected<AddressList> named = lookUp(address, port, 0);
  if (!named)
    return named.error();
  Expected<SocketListener> listener = Error{"it has no address"};
  int code = 0;
  for (const addrinfo *each = named->get(); each && !listener; each = each->ai_next) {
    // Debian's /etc/hosts has the loopback address for the name of the host, by which others mean
    // another one.
    if (!isLoopback(address) && isLoopback(endpointOf(*each->ai_addr, each->ai_addrlen).address)) {
      code = EADDRNOTAVAIL;
      continue;
    }
    listener = listenAt(*each);
    code = listener ? 0 : errno;
  }
  if (!listener && code == EADDRNOTAVAIL)
    if (Expected<AddressList> any = lookUp("", port, AI_PASSIVE))
      for (const addrinfo *each = any->get(); each && !listener; each = each->ai_next)
        listener = listenAt(*each);
  return listener;
}

/// Where nobody listens at a port of this host, the system may choose just that one for the socket
/// that connects.
static bool isToItself(int file) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  SocketEndpoint own = ownEnd(file);
  if (getpeername(file, reinterpret_cast<sockaddr *>(&peer), &size) != 0)
    return false;
  SocketEndpoint other = endpointOf(reinterpret_cast<const sockaddr &>(peer), size);
  return own.port == other.port && own.address == other.address;
}

Expected<OwnedFile> connectTo(const std::string &address, int port, SocketTime deadline) {
  std::string why = "it does not answer";
  for (auto pause = 10ms;; pause = std::min(pause * 2, 500ms)) {
    Expected<AddressList> named = lookUp(address, port, 0);
    if (!named)
      why = named.error().message;
    for (const addrinfo *each = named ? named->get() : nullptr; each; each = each->ai_next) {
      OwnedFile file(socket(each->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      int error = 0;
      socklen_t size = sizeof(error);
      if (!file ||
          (connect(file.get(), each->ai_addr, each->ai_addrlen) != 0 && errno != EINPROGRESS)) {
        why = std::strerror(errno);
        continue;
      }
      if (!awaitFile(file.get(), POLLOUT, std::min(deadline, Clock::now() + 5s)))
        continue;
      getsockopt(file.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error == 0 && !isToItself(file.get()))
        return file;
      why = std::strerror(error == 0 ? ECONNREFUSED : error);
    }
    if (Clock::now() + pause > deadline)
      return Error{why};
    std::this_thread::sleep_for(pause);
  }
}

} // namespace dtc::runtime
