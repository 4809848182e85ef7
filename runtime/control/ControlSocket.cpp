//===- ControlSocket.cpp - One end of a control connection -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/control/ControlSocket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dtc::runtime {

/// More than any peer has under way that still listens.
static constexpr size_t kMostOutput = 4 << 20;

OwnedFile::~OwnedFile() {
  if (file >= 0)
    close(file);
}

static Error systemError(const std::string &what) {
  return Error{fmt::format("control connection: {}: {}", what, std::strerror(errno))};
}

namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// Numeric; names are never looked up.
Expected<AddressList> parseAddress(const std::string &address, const std::string &port) {
  addrinfo hints = {}, *list = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  if (int code = getaddrinfo(address.c_str(), port.c_str(), &hints, &list); code != 0)
    return Error{fmt::format("control connection: \"{} {}\" is no address and port: {}", address,
                             port, gai_strerror(code))};
  return AddressList(list, freeaddrinfo);
}

OwnedFile openSocket(const addrinfo &address) {
  return OwnedFile(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

} // namespace

Expected<ControlListener> ControlListener::open(const std::string &address) {
  Expected<AddressList> parsed = parseAddress(address, "0");
  if (!parsed)
    return parsed.error();
  const addrinfo &where = **parsed;
  OwnedFile file = openSocket(where);
  sockaddr_storage bound = {};
  socklen_t size = sizeof(bound);
  if (!file || bind(file.get(), where.ai_addr, where.ai_addrlen) != 0 ||
      listen(file.get(), SOMAXCONN) != 0 ||
      getsockname(file.get(), reinterpret_cast<sockaddr *>(&bound), &size) != 0)
    return systemError(fmt::format("cannot listen on {}", address));
  // Both have the port in the same place.
  int port = ntohs(reinterpret_cast<sockaddr_in *>(&bound)->sin_port);
  return ControlListener{std::move(file), fmt::format("{} {}", address, port)};
}

OwnedFile ControlListener::accept() const {
  return OwnedFile(accept4(file.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

ControlSocket::ControlSocket(OwnedFile file) : handle(std::move(file)) {
  int on = 1;
  setsockopt(handle.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Expected<ControlSocket> ControlSocket::connect(const std::string &endpoint) {
  size_t space = endpoint.find(' ');
  Expected<AddressList> parsed = parseAddress(
      endpoint.substr(0, space), space == std::string::npos ? "none" : endpoint.substr(space + 1));
  if (!parsed)
    return parsed.error();
  const addrinfo &where = **parsed;
  OwnedFile file = openSocket(where);
  if (!file ||
      (::connect(file.get(), where.ai_addr, where.ai_addrlen) != 0 && errno != EINPROGRESS))
    return systemError(fmt::format("cannot connect to {}", endpoint));
  return ControlSocket(std::move(file));
}

bool ControlSocket::flush() {
  while (!output.empty()) {
    ssize_t sent = ::send(handle.get(), output.data(), output.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    refused |= sent < 0 && errno == ECONNREFUSED;
    if (sent < 0)
      return (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOTCONN) &&
             output.size() <= kMostOutput;
    output.erase(0, static_cast<size_t>(sent));
  }
  return true;
}

bool ControlSocket::receive() {
  char bytes[16384];
  // A peer that sends without an end must not keep the others waiting.
  for (int reads = 0; reads < 64; ++reads) {
    ssize_t count = recv(handle.get(), bytes, sizeof(bytes), 0);
    if (count < 0 && errno == EINTR)
      continue;
    refused |= count < 0 && errno == ECONNREFUSED;
    if (count < 0)
      return errno == EAGAIN || errno == EWOULDBLOCK;
    if (count == 0)
      return false;
    input.append(bytes, static_cast<size_t>(count));
  }
  return true;
}

Expected<std::string> randomSecret() {
  std::string secret(32, '\0');
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    return systemError("the system gives no random bytes");
  return secret;
}

} // namespace dtc::runtime
