//===- Transfers.cpp - Messages from one device to another ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/Transfers.h"

namespace dtc::runtime {

Transfers::Ticket Transfers::startSend(int64_t peer, uint32_t channel,
                                       std::span<const TransferTensor> tensors) {
  for (const TransferTensor &tensor : tensors)
    bytesSent += tensor.bytes;
  return doStartSend(peer, channel, tensors);
}

Transfers::Ticket Transfers::startReceive(int64_t peer, uint32_t channel,
                                          std::span<const TransferTensor> tensors) {
  return doStartReceive(peer, channel, tensors);
}

} // namespace dtc::runtime
