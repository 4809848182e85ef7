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
  MaybeError enqueueWait(Queue &queue, Ticket ticket, TransferResult &result) override;
  void drain() override;

  using Transfers::startReceive;
  using Transfers::startSend;
  /// What queues do, on the calling thread: start a message, and wait for it asleep.
  Ticket startSend(int64_t peer, std::span<const TransferTensor> tensors);
  Ticket startReceive(int64_t peer, std::span<const TransferTensor> tensors);
  TransferResult wait(Ticket ticket);
  void abort() { world->abort(); }

protected:
  Expected<Ticket> doStartSend(Queue &queue, int64_t peer,
                               std::span<const TransferTensor> tensors) override;
  Expected<Ticket> doStartReceive(Queue &queue, int64_t peer,
                                  std::span<const TransferTensor> tensors) override;

private:
  /// The start of one end, or the wait for it.
  struct Call {
    enum Kind { Send, Receive, Wait } kind = Send;
    int64_t peer = 0;
    std::span<const TransferTensor> tensors;
    Ticket ticket = 0;
    TransferResult *result = nullptr;
  };
  MaybeError run(const Call &call);
  Expected<Ticket> enqueueStart(Queue &queue, Call call);

  std::shared_ptr<LocalWorld> world;
  int64_t device;
  Ticket lastTicket = 0;
  WorkPool<Call> calls{[this](const Call &call) { return run(call); }};
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_LOCAL_LOCALTRANSFERS_H
