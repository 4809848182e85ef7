//===- LocalTransfers.cpp - Messages between devices that are threads -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/local/LocalTransfers.h"

namespace dtc::runtime {

Transfers::Ticket LocalTransfers::startNow(int64_t peer, std::span<const TransferTensor> tensors,
                                           bool sends) {
  if (sends)
    countSent(tensors);
  Ticket ticket = newTicket();
  startNow({sends, peer, tensors, ticket});
  return ticket;
}

void LocalTransfers::startNow(const Start &end) {
  LocalMailbox::End mine{end.tensors, &world->results(device), end.ticket};
  if (end.sends)
    world->mailbox(end.peer).send(device, mine);
  else
    world->mailbox(device).receive(end.peer, mine);
}

} // namespace dtc::runtime
