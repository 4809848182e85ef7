//===- LocalTransfers.cpp - Messages between devices that are threads -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/local/LocalTransfers.h"

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// On the calling thread
//===----------------------------------------------------------------------===//

Transfers::Ticket LocalTransfers::startSend(int64_t peer, std::span<const TransferTensor> tensors) {
  countSent(tensors);
  Ticket ticket = ++lastTicket;
  (void)run({Call::Send, peer, tensors, ticket, nullptr});
  return ticket;
}

Transfers::Ticket LocalTransfers::startReceive(int64_t peer,
                                               std::span<const TransferTensor> tensors) {
  Ticket ticket = ++lastTicket;
  (void)run({Call::Receive, peer, tensors, ticket, nullptr});
  return ticket;
}

MaybeError LocalTransfers::run(const Call &call) {
  LocalMailbox::End end{call.tensors, &world->results(device), call.ticket};
  switch (call.kind) {
  case Call::Send:
    world->mailbox(call.peer).send(device, end);
    return std::nullopt;
  case Call::Receive:
    world->mailbox(device).receive(call.peer, end);
    return std::nullopt;
  case Call::Wait:
    *call.result = wait(call.ticket);
    return call.result->error;
  }
  return std::nullopt;
}

void LocalTransfers::prepareToReceive() { world->mailbox(device).start(); }

TransferResult LocalTransfers::wait(Ticket ticket) { return world->results(device).wait(ticket); }

//===----------------------------------------------------------------------===//
// On queues
//===----------------------------------------------------------------------===//

Expected<Transfers::Ticket> LocalTransfers::enqueueStart(Queue &queue, Call call) {
  call.ticket = ++lastTicket;
  if (MaybeError error = calls.enqueue(
          queue, [&](Call &to) { to = call; }, /*waits=*/false))
    return *error;
  return call.ticket;
}

Expected<Transfers::Ticket> LocalTransfers::doStartSend(Queue &queue, int64_t peer,
                                                        std::span<const TransferTensor> tensors) {
  return enqueueStart(queue, {Call::Send, peer, tensors});
}

Expected<Transfers::Ticket>
LocalTransfers::doStartReceive(Queue &queue, int64_t peer,
                               std::span<const TransferTensor> tensors) {
  return enqueueStart(queue, {Call::Receive, peer, tensors});
}

MaybeError LocalTransfers::enqueueWait(Queue &queue, Ticket ticket, TransferResult &result) {
  Call call;
  call.kind = Call::Wait;
  call.ticket = ticket;
  call.result = &result;
  return calls.enqueue(queue, [&](Call &to) { to = call; });
}

void LocalTransfers::drain() { world->mailbox(device).drain(); }

} // namespace dtc::runtime
