//===- SocketAddress.h - Listens and connects ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_SOCKETS_SOCKETADDRESS_H
#define DTC_RUNTIME_FABRICS_SOCKETS_SOCKETADDRESS_H

#include "runtime/control/ControlSocket.h"
#include "support/Error.h"

#include <chrono>
#include <optional>
#include <string>

namespace dtc::runtime {

using SocketTime = std::chrono::steady_clock::time_point;

/// The number of an address and its port, as a socket has them.
struct SocketEndpoint {
  std::string address;
  int port = 0;
};
SocketEndpoint ownEnd(int file);

/// Whether it stands for this host on every host.
bool isLoopback(const std::string &address);

/// A socket that listens, without blocking, and where.
struct SocketListener {
  OwnedFile file;
  SocketEndpoint end;
};
/// At the address itself, a name or a number, if it is one of this host by which others may reach
/// it, else at all of them.
Expected<SocketListener> listenAt(const std::string &address, int port);

/// Tries again until somebody listens there, or until the deadline: processes start at different
/// times.
Expected<OwnedFile> connectTo(const std::string &address, int port, SocketTime deadline);

/// A text with its length before it.
std::string framed(const std::string &text);
/// The text that has come; none if it is not whole. An error if it is none, or has more bytes.
Expected<std::optional<std::string>> takeFramed(const std::string &received, size_t most);

MaybeError sendAll(int file, const std::string &bytes, SocketTime deadline);
/// Reads one framed text, and nothing of what follows it.
Expected<std::string> receiveFramed(int file, size_t most, SocketTime deadline);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_SOCKETS_SOCKETADDRESS_H
