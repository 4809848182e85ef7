//===- ControlConnection.cpp - Control connection between processes -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/control/ControlConnection.h"

#include "runtime/control/ControlAddress.h"
#include "runtime/control/ControlLoop.h"
#include "support/StartThread.h"

#include <fmt/format.h>

namespace dtc::runtime {

Expected<ControlMember> ControlMember::decode(const std::string &text) {
  size_t first = text.find('\n'), second = text.find('\n', first + 1);
  if (first == std::string::npos || second == std::string::npos)
    return Error{"control connection: another process gives no address; all need the same dtc-run"};
  return ControlMember{text.substr(0, first), text.substr(first + 1, second - first - 1),
                       text.substr(second + 1)};
}

Expected<std::unique_ptr<ControlConnection>>
ControlConnection::open(int64_t process, const std::string &host, const ControlOptions &options,
                        ControlHooks hooks, const Exchange &exchange) {
  bool isLoopback = options.isOneHost && options.network.empty();
  Expected<std::string> address =
      isLoopback ? Expected<std::string>(std::string("127.0.0.1")) : addressOfHost(options.network);
  Expected<ControlListener> listener =
      address ? ControlListener::open(*address) : Expected<ControlListener>(address.error());
  Expected<std::string> secret = randomSecret();
  MaybeError failure;
  if (!listener)
    failure = listener.error();
  else if (!secret)
    failure = secret.error();
  // The others wait for the text of this one, also where it has failed.
  Expected<std::vector<std::string>> texts = exchange(
      failure ? failure->message : ControlMember{listener->endpoint, host, *secret}.encode());
  if (failure)
    return *failure;
  if (!texts)
    return texts.error();
  std::vector<ControlMember> members;
  for (const std::string &text : *texts) {
    Expected<ControlMember> member = ControlMember::decode(text);
    if (!member)
      return Error{fmt::format("process {}: {}", members.size(), text)};
    members.push_back(std::move(*member));
  }
  try {
    return std::unique_ptr<ControlConnection>(new ControlConnection(std::make_unique<Loop>(
        process, std::move(*listener), std::move(members), options, std::move(hooks))));
  } catch (const ThreadStartError &error) {
    return Error{error.what()};
  }
}

ControlConnection::ControlConnection(std::unique_ptr<Loop> loop) : loop(std::move(loop)) {}
ControlConnection::~ControlConnection() = default;

void ControlConnection::report(const std::string &error, int64_t point) {
  loop->report(error, point);
}

std::optional<RunEnd> ControlConnection::awaitEnd(std::chrono::milliseconds atMost) const {
  return loop->awaitEnd(atMost);
}

} // namespace dtc::runtime
