//===- ProcessTransfers.cpp - Messages of devices in many processes --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/ProcessTransfers.h"

#include <vector>

namespace dtc::runtime {

Expected<Transfers::Ticket> ProcessTransfers::start(Queue &queue, const Call &call) {
  if (MaybeError error = calls.enqueue(
          queue, [&](Call &to) { to = call; }, /*waits=*/false))
    return *error;
  return call.ticket;
}

MaybeError ProcessTransfers::enqueueWait(Queue &queue, Ticket ticket, TransferResult &result) {
  return calls.enqueue(queue, [&](Call &to) { to = {Call::Wait, 0, {}, ticket, &result}; });
}

MaybeError ProcessTransfers::run(const Call &call) {
  if (call.kind == Call::Wait) {
    *call.result = world->results(device).wait(call.ticket);
    return call.result->error;
  }
  // What has failed is told by the wait.
  if (world->failure())
    return std::nullopt;
  std::vector<MessagePart> parts;
  for (const TransferTensor &tensor : call.tensors)
    if (tensor.bytes > 0)
      parts.push_back({static_cast<std::byte *>(tensor.data), tensor.bytes});
  TransferResult begun;
  begun.begin = TransferResult::TimePoint::clock::now();
  std::unique_ptr<MessageBatch> batch = world->getMessages().openBatch();
  bool sends = call.kind == Call::Send;
  int64_t process = world->processOf(call.peer);
  int64_t tag =
      sends ? world->transferTag(device, call.peer) : world->transferTag(call.peer, device);
  MaybeError error = sends ? batch->send(process, tag, parts) : batch->receive(process, tag, parts);
  auto report = [results = &world->results(device), ticket = call.ticket,
                 begun](MaybeError failure) mutable {
    begun.error = std::move(failure);
    begun.end = TransferResult::TimePoint::clock::now();
    results->report(ticket, begun);
  };
  if (error)
    report(error);
  else
    world->getProgress().add(device, std::move(batch), report);
  return std::nullopt;
}

} // namespace dtc::runtime
