//===- LocalTransfers.h - Messages between devices that are threads -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_LOCAL_LOCALTRANSFERS_H
#define DTC_RUNTIME_FABRICS_LOCAL_LOCALTRANSFERS_H

#include "runtime/fabrics/local/LocalCommunicator.h"

#include <memory>

namespace dtc::runtime {

/// Messages between devices that are threads of one process. Starting never blocks. Every byte is
/// copied once, from the sender's memory to the receiver's, by a thread of the receiver, beside
/// what both devices compute. Waits are those of WaitBriefly.h.
class LocalTransfers final : public QueuedTransfers {
public:
  LocalTransfers(const std::shared_ptr<LocalWorld> &world, int64_t device)
      : QueuedTransfers(world->results(device)), world(world), device(device) {}

  MaybeError prepare(int64_t, bool sends) override {
    if (!sends)
      world->mailbox(device).start();
    return std::nullopt;
  }
  void drain() override { world->mailbox(device).drain(); }

  /// The work that queues do for start(), on the calling thread.
  Ticket startNow(int64_t peer, std::span<const TransferTensor> tensors, bool sends);
  void abort() { world->abort(); }

protected:
  void startNow(const Start &end) override;

private:
  std::shared_ptr<LocalWorld> world;
  int64_t device;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_LOCAL_LOCALTRANSFERS_H
