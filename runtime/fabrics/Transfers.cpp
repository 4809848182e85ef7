//===- Transfers.cpp - Messages from one device to another ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/Transfers.h"

namespace dtc::runtime {

void Transfers::countSent(std::span<const TransferTensor> tensors) {
  for (const TransferTensor &tensor : tensors)
    bytesSent += tensor.bytes;
}

Expected<Transfers::Ticket> Transfers::start(Queue &queue, int64_t peer,
                                             std::span<const TransferTensor> tensors, bool sends) {
  if (sends)
    countSent(tensors);
  return doStart(queue, peer, tensors, sends);
}

} // namespace dtc::runtime
