//===- ControlAddress.cpp - Network address of a process ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/control/ControlAddress.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace dtc::runtime {

namespace {

/// An address of an interface that is up.
struct HostAddress {
  std::string interface;
  int family = AF_INET;
  std::string bytes; // in network order
  bool isLoopback = false;

  std::string text() const {
    char buffer[INET6_ADDRSTRLEN] = {};
    inet_ntop(family, bytes.data(), buffer, sizeof(buffer));
    return buffer;
  }
};

std::optional<HostAddress> addressOf(const sockaddr *address) {
  if (address && address->sa_family == AF_INET) {
    const auto &found = reinterpret_cast<const sockaddr_in *>(address)->sin_addr;
    return HostAddress{"", AF_INET, std::string(reinterpret_cast<const char *>(&found), 4)};
  }
  if (address && address->sa_family == AF_INET6) {
    const auto &found = reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr;
    // An address of the link alone says nothing without the interface.
    if (!IN6_IS_ADDR_LINKLOCAL(&found))
      return HostAddress{"", AF_INET6, std::string(reinterpret_cast<const char *>(&found), 16)};
  }
  return std::nullopt;
}

std::vector<HostAddress> addressesHere() {
  std::vector<HostAddress> found;
  ifaddrs *list = nullptr;
  if (getifaddrs(&list) != 0)
    return found;
  for (ifaddrs *each = list; each; each = each->ifa_next)
    if (auto address = addressOf(each->ifa_addr); address && (each->ifa_flags & IFF_UP)) {
      address->interface = each->ifa_name;
      address->isLoopback = each->ifa_flags & IFF_LOOPBACK;
      found.push_back(std::move(*address));
    }
  freeifaddrs(list);
  return found;
}

/// The addresses of the name of this host.
std::vector<HostAddress> addressesOfName() {
  std::vector<HostAddress> found;
  char name[256] = {};
  addrinfo *list = nullptr;
  if (gethostname(name, sizeof(name) - 1) != 0 || getaddrinfo(name, nullptr, nullptr, &list) != 0)
    return found;
  for (addrinfo *each = list; each; each = each->ai_next)
    if (auto address = addressOf(each->ai_addr))
      found.push_back(std::move(*address));
  freeaddrinfo(list);
  return found;
}

/// The one from which packets to elsewhere would go. None is sent.
std::optional<HostAddress> addressOfRoute() {
  int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0)
    return std::nullopt;
  sockaddr_in elsewhere = {}, own = {};
  elsewhere.sin_family = AF_INET;
  elsewhere.sin_port = htons(9);
  inet_pton(AF_INET, "203.0.113.1", &elsewhere.sin_addr); // kept for documents by RFC 5737
  socklen_t size = sizeof(own);
  bool isKnown =
      connect(socket, reinterpret_cast<sockaddr *>(&elsewhere), sizeof(elsewhere)) == 0 &&
      getsockname(socket, reinterpret_cast<sockaddr *>(&own), &size) == 0;
  close(socket);
  return isKnown ? addressOf(reinterpret_cast<sockaddr *>(&own)) : std::nullopt;
}

bool isIn(const HostAddress &address, const HostAddress &network, int bits) {
  if (address.family != network.family)
    return false;
  for (int bit = 0; bit < bits; ++bit)
    if (((address.bytes[static_cast<size_t>(bit / 8)] ^
          network.bytes[static_cast<size_t>(bit / 8)]) >>
         (7 - bit % 8)) &
        1)
      return false;
  return true;
}

/// "10.1.0.0/16" and the bits that count.
std::optional<std::pair<HostAddress, int>> parseNetwork(const std::string &text) {
  size_t slash = text.find('/');
  if (slash == std::string::npos)
    return std::nullopt;
  HostAddress network;
  unsigned char bytes[16] = {};
  std::string address = text.substr(0, slash);
  network.family = address.find(':') == std::string::npos ? AF_INET : AF_INET6;
  if (inet_pton(network.family, address.c_str(), bytes) != 1)
    return std::nullopt;
  int most = network.family == AF_INET ? 32 : 128, bits = 0;
  network.bytes.assign(reinterpret_cast<char *>(bytes), static_cast<size_t>(most / 8));
  const char *first = text.data() + slash + 1, *last = text.data() + text.size();
  auto [end, error] = std::from_chars(first, last, bits);
  if (error != std::errc() || end != last || bits < 0 || bits > most)
    return std::nullopt;
  return std::pair(network, bits);
}

} // namespace

Expected<std::string> addressOfHost(const std::string &network) {
  std::vector<HostAddress> here = addressesHere();
  if (!network.empty()) {
    auto parsed = parseNetwork(network);
    for (const HostAddress &address : here)
      if (parsed ? isIn(address, parsed->first, parsed->second) : address.interface == network)
        return address.text();
    std::vector<std::string> found;
    for (const HostAddress &address : here)
      found.push_back(fmt::format("{} ({})", address.text(), address.interface));
    return Error{fmt::format("this host has no address in {}; expected an interface, such as eth0, "
                             "or a network, such as 10.1.0.0/16; its addresses are {}",
                             network, fmt::join(found, ", "))};
  }
  std::vector<HostAddress> candidates = addressesOfName();
  if (auto route = addressOfRoute())
    candidates.push_back(std::move(*route));
  candidates.insert(candidates.end(), here.begin(), here.end());
  for (const HostAddress &candidate : candidates)
    for (const HostAddress &own : here)
      if (!own.isLoopback && own.family == candidate.family && own.bytes == candidate.bytes)
        return candidate.text();
  return Error{"this host has no address that others could reach: no interface is up"};
}

} // namespace dtc::runtime
