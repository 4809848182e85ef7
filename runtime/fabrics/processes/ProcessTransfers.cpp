//===- ProcessTransfers.cpp - Messages of devices in many processes --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/ProcessTransfers.h"

#include <vector>

namespace dtc::runtime {

void ProcessTransfers::startNow(const Start &end) {
  // The wait reports the failure.
  if (world->failure())
    return;
  std::vector<MessagePart> parts;
  for (const TransferTensor &tensor : end.tensors)
    if (tensor.bytes > 0)
      parts.push_back({static_cast<std::byte *>(tensor.data), tensor.bytes});
  TransferResult begun;
  begun.begin = TransferResult::TimePoint::clock::now();
  std::unique_ptr<MessageBatch> batch = world->getMessages().openBatch();
  int64_t process = world->processOf(end.peer);
  int64_t tag =
      end.sends ? world->transferTag(device, end.peer) : world->transferTag(end.peer, device);
  MaybeError error =
      end.sends ? batch->send(process, tag, parts) : batch->receive(process, tag, parts);
  auto report = [world = &*world, results = &world->results(device), ticket = end.ticket,
                 begun](MaybeError failure) mutable {
    // A batch that hears of an abort first gives the bare reason.
    MaybeError reason = failure ? world->failure() : std::nullopt;
    begun.error = reason ? std::move(reason) : std::move(failure);
    begun.end = TransferResult::TimePoint::clock::now();
    results->report(ticket, begun);
  };
  if (error)
    report(error);
  else
    world->getProgress().add(device, std::move(batch), report);
}

} // namespace dtc::runtime
