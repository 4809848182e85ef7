//===- LocalTransfers.cpp - Messages between devices that are threads -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/local/LocalTransfers.h"

namespace dtc::runtime {

Transfers::Ticket LocalTransfers::doStartSend(int64_t peer, uint32_t channel,
                                              std::span<const TransferTensor> tensors) {
  Ticket ticket = ++lastTicket;
  world->mailbox(peer).send(device, channel, {tensors, &world->results(device), ticket});
  return ticket;
}

Transfers::Ticket LocalTransfers::doStartReceive(int64_t peer, uint32_t channel,
                                                 std::span<const TransferTensor> tensors) {
  Ticket ticket = ++lastTicket;
  world->mailbox(device).receive(peer, channel, {tensors, &world->results(device), ticket});
  return ticket;
}

void LocalTransfers::prepareToReceive() { world->mailbox(device).start(); }

TransferResult LocalTransfers::wait(Ticket ticket) { return world->results(device).wait(ticket); }

void LocalTransfers::drain() { world->mailbox(device).drain(); }

} // namespace dtc::runtime
