//===- ProcessCollective.cpp - Collectives between processes ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/ProcessCollective.h"

#include "runtime/fabrics/processes/HostCollective.h"
#include "runtime/fabrics/processes/MessageCollective.h"

namespace dtc::runtime {

ProcessCollective::ProcessCollective(Messages &messages, ProcessGroup group, int64_t tag,
                                     HostSharing sharing)
    : messages(messages), group(std::move(group)), tag(tag), sharing(sharing) {}

MaybeError ProcessCollective::open() {
  if (sharing == HostSharing::Memory && group.numProcesses() > 1) {
    Expected<std::unique_ptr<HostExchange>> exchange = HostExchange::open(messages, group, tag);
    if (!exchange)
      return exchange.error();
    isShared = *exchange != nullptr;
    if (isShared)
      parts = std::make_unique<HostCollective>(group, std::move(*exchange));
  }
  if (!parts)
    parts = std::make_unique<MessageCollective>(messages, group, tag);
  return std::nullopt;
}

MaybeError ProcessCollective::run(std::span<const CollectiveSpec> specs,
                                  std::span<const std::span<const CollectiveOperands>> operands) {
  // The members meet in their first collective.
  if (!parts)
    if (MaybeError error = open())
      return error;
  return parts->run(specs, operands);
}

} // namespace dtc::runtime
