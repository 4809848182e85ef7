//===- ProcessTransfers.h - Messages of devices in many processes ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_PROCESSTRANSFERS_H
#define DTC_RUNTIME_FABRICS_PROCESSES_PROCESSTRANSFERS_H

#include "runtime/fabrics/processes/ProcessWorld.h"

#include <memory>

namespace dtc::runtime {

/// Devices of one process send each other messages as those of several do. A thread of the process
/// moves them while the devices compute.
class ProcessTransfers final : public Transfers {
public:
  ProcessTransfers(std::shared_ptr<ProcessWorld> world, int64_t device)
      : world(std::move(world)), device(device) {}

  void prepareToReceive() override { world->getProgress().start(); }
  MaybeError enqueueWait(Queue &queue, Ticket ticket, TransferResult &result) override;
  void drain() override { world->getProgress().cancel(device); }

protected:
  Expected<Ticket> doStartSend(Queue &queue, int64_t peer,
                               std::span<const TransferTensor> tensors) override {
    return start(queue, {Call::Send, peer, tensors, ++lastTicket, nullptr});
  }
  Expected<Ticket> doStartReceive(Queue &queue, int64_t peer,
                                  std::span<const TransferTensor> tensors) override {
    return start(queue, {Call::Receive, peer, tensors, ++lastTicket, nullptr});
  }

private:
  /// The start of one end, or the wait for it.
  struct Call {
    enum Kind { Send, Receive, Wait } kind = Send;
    int64_t peer = 0;
    std::span<const TransferTensor> tensors;
    Ticket ticket = 0;
    TransferResult *result = nullptr;
  };
  Expected<Ticket> start(Queue &queue, const Call &call);
  MaybeError run(const Call &call);

  std::shared_ptr<ProcessWorld> world;
  int64_t device;
  Ticket lastTicket = 0;
  WorkPool<Call> calls{[this](const Call &call) { return run(call); }};
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_PROCESSTRANSFERS_H
