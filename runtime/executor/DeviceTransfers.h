//===- DeviceTransfers.h - The messages of one device ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICETRANSFERS_H
#define DTC_RUNTIME_EXECUTOR_DEVICETRANSFERS_H

#include "runtime/executor/PreparedProgram.h"
#include "runtime/fabrics/Transfers.h"

#include <memory>
#include <vector>

namespace dtc::runtime {

/// Starts and finishes the transfers of a program on one device, and remembers what is on its way.
class DeviceTransfers {
public:
  DeviceTransfers(const PreparedPlan &plan, int64_t device, std::byte *arena,
                  std::unique_ptr<Transfers> network);

  MaybeError start(size_t transfer, uint32_t microbatch);
  /// Waits for the transfer that was started for the microbatch.
  TransferResult finish(size_t transfer, uint32_t microbatch);
  /// An error if something that was started has not been finished.
  MaybeError checkAllFinished() const;

  /// The device at the other end.
  int64_t peer(size_t transfer) const { return channels[transfer].peer; }
  Transfers &getNetwork() const { return *network; }

private:
  /// A transfer on its way, for one microbatch.
  struct Started {
    bool inUse = false;
    uint32_t microbatch = 0;
    Transfers::Ticket ticket = 0;
    std::vector<TransferTensor> tensors;
  };
  struct Channel {
    int64_t peer = 0;
    std::vector<Started> started; // as many as the schedule ever has at one time
  };

  Error inContext(const MaybeError &error, size_t transfer, uint32_t microbatch) const;

  const PreparedProgram &program;
  std::byte *arena;
  std::unique_ptr<Transfers> network;
  std::vector<Channel> channels; // for each transfer
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICETRANSFERS_H
