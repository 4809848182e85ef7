//===- LocalTransfers.h - Messages between devices that are threads -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_LOCAL_LOCALTRANSFERS_H
#define DTC_RUNTIME_FABRICS_LOCAL_LOCALTRANSFERS_H

#include "runtime/fabrics/Transfers.h"
#include "runtime/fabrics/local/LocalCommunicator.h"

#include <memory>

namespace dtc::runtime {

/// Messages between devices that are threads of one process. Starting never blocks. Every byte is
/// copied once, from the sender's memory to the receiver's, by a thread of the receiver, beside
/// what both devices compute. Waits are those of WaitBriefly.h.
class LocalTransfers final : public Transfers {
public:
  LocalTransfers(std::shared_ptr<LocalWorld> world, int64_t device)
      : world(std::move(world)), device(device) {}

  void prepareToReceive() override;
  TransferResult wait(Ticket ticket) override;
  void abort() override { world->abort(); }
  void drain() override;

protected:
  Ticket doStartSend(int64_t peer, uint32_t channel,
                     std::span<const TransferTensor> tensors) override;
  Ticket doStartReceive(int64_t peer, uint32_t channel,
                        std::span<const TransferTensor> tensors) override;

private:
  std::shared_ptr<LocalWorld> world;
  int64_t device;
  Ticket lastTicket = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_LOCAL_LOCALTRANSFERS_H
