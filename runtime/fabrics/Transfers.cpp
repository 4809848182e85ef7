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

Expected<Transfers::Ticket> Transfers::startSend(Queue &queue, int64_t peer,
                                                 std::span<const TransferTensor> tensors) {
  countSent(tensors);
  return doStartSend(queue, peer, tensors);
}

Expected<Transfers::Ticket> Transfers::startReceive(Queue &queue, int64_t peer,
                                                    std::span<const TransferTensor> tensors) {
  return doStartReceive(queue, peer, tensors);
}

} // namespace dtc::runtime
