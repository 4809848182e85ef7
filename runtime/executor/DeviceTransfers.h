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
#include <set>
#include <utility>
#include <vector>

namespace dtc::runtime {

/// Starts and finishes the transfers of a program on one device, and remembers what is on its way.
class DeviceTransfers {
public:
  DeviceTransfers(const PreparedPlan &plan, int64_t device, std::byte *arena,
                  std::unique_ptr<Transfers> network);

  /// Takes what the transfers of the program need. Throws ThreadStartError.
  MaybeError prepare();
  /// Enqueues the start of a transfer.
  MaybeError start(Queue &queue, size_t transfer, uint32_t microbatch);
  /// Lets the queue wait for the transfer that was started for the microbatch. `result` is written
  /// before the queue goes on, and lives until the step is over.
  MaybeError finish(Queue &queue, size_t transfer, uint32_t microbatch, TransferResult &result);
  /// `error` of the queue, and the transfer that it is the error of, if it is one's.
  Error locate(const Error &error) const;
  /// An error if something that was started has not been finished.
  MaybeError checkAllFinished() const;
  /// Begins another step. The step before may not be over.
  void begin() {
    std::swap(waits, waitsBefore);
    waits.clear();
  }

  /// The device at the other end.
  int64_t peer(size_t transfer) const { return channels[transfer].peer; }
  Transfers &getNetwork() const { return *network; }

private:
  /// A transfer on its way, for one microbatch.
  struct Started {
    bool inUse = false;
    uint32_t microbatch = 0;
    Transfers::Ticket ticket = 0;
  };
  /// A wait that was enqueued, to tell whose error a queue has.
  struct Wait {
    size_t transfer = 0;
    uint32_t microbatch = 0;
    const TransferResult *result = nullptr;
  };
  struct ChannelState {
    int64_t peer = 0;
    std::vector<Started> started; // as many as the schedule ever has at one time
    /// Lists of all tensors, one for each set of places that they have in the schedule. They never
    /// change: the device may run much later.
    std::vector<TransferTensor> tensors;
    /// Where the list of a microbatch begins, by microbatch. Empty: there is one for all.
    std::vector<std::pair<uint32_t, size_t>> lists;
  };

  void placeTensors(size_t transfer, std::byte *arena, const std::set<uint32_t> &microbatches);
  Error inContext(const Error &error, size_t transfer, uint32_t microbatch) const;
  std::span<const TransferTensor> tensorsOf(size_t transfer, uint32_t microbatch) const;

  const PreparedProgram &program;
  std::unique_ptr<Transfers> network;
  std::vector<ChannelState> channels; // for each transfer
  std::vector<Wait> waits;            // of this step
  std::vector<Wait> waitsBefore;      // of the step before
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICETRANSFERS_H
