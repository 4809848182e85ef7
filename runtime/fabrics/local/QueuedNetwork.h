//===- QueuedNetwork.h - Networks of the host as work of queues -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_LOCAL_QUEUEDNETWORK_H
#define DTC_RUNTIME_FABRICS_LOCAL_QUEUEDNETWORK_H

#include "runtime/fabrics/Communicator.h"
#include "runtime/fabrics/local/LocalMailbox.h"
#include "runtime/fabrics/local/WorkPool.h"

#include <vector>

namespace dtc::runtime {

/// Collectives that the thread of a queue does when the queue comes to them.
class QueuedCommunicator : public Communicator {
public:
  /// Runs a collective on the calling thread, as a queue does what is enqueued.
  virtual MaybeError run(Group group, std::span<const CollectiveSpec> specs,
                         std::span<const CollectiveOperands> operands) = 0;

protected:
  MaybeError doEnqueue(Queue &queue, Group group, std::span<const CollectiveSpec> specs,
                       std::span<const CollectiveOperands> operands) final {
    return calls.enqueue(queue, [&](Call &call) {
      call.group = group;
      call.specs = specs;
      call.operands.assign(operands.begin(), operands.end());
    });
  }

private:
  struct Call {
    Group group = 0;
    std::span<const CollectiveSpec> specs;
    std::vector<CollectiveOperands> operands;
  };
  WorkPool<Call> calls{
      [this](const Call &call) { return run(call.group, call.specs, call.operands); }};
};

/// Messages whose ends the thread of a queue starts and waits for when the queue comes to them.
class QueuedTransfers : public Transfers {
public:
  MaybeError enqueueWait(Queue &queue, Ticket ticket, TransferResult &result) final {
    return calls.enqueue(queue, [&](Call &to) { to = {{false, 0, {}, ticket}, &result}; });
  }
  /// The work that queues do, on the calling thread: waits for a message asleep.
  TransferResult wait(Ticket ticket) { return results.wait(ticket); }

protected:
  /// One end of a message of this device.
  struct Start {
    bool sends = false;
    int64_t peer = 0;
    std::span<const TransferTensor> tensors;
    Ticket ticket = 0;
  };

  /// `results` are those of this device, and outlive the transfers.
  explicit QueuedTransfers(LocalResults &results) : results(results) {}

  /// Starts an end on the calling thread. The results report failures.
  virtual void startNow(const Start &end) = 0;
  Ticket newTicket() { return ++lastTicket; }

  Expected<Ticket> doStart(Queue &queue, int64_t peer, std::span<const TransferTensor> tensors,
                           bool sends) final {
    Start end{sends, peer, tensors, newTicket()};
    if (MaybeError error = calls.enqueue(
            queue,
            [&](Call &to) {
              to = {end, nullptr};
            },
            /*waits=*/false))
      return *error;
    return end.ticket;
  }

private:
  /// The start of one end, or, with a result, the wait for it.
  struct Call {
    Start end;
    TransferResult *result = nullptr;
  };

  MaybeError run(const Call &call) {
    if (!call.result) {
      startNow(call.end);
      return std::nullopt;
    }
    *call.result = wait(call.end.ticket);
    return call.result->error;
  }

  LocalResults &results;
  Ticket lastTicket = 0;
  WorkPool<Call> calls{[this](const Call &call) { return run(call); }};
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_LOCAL_QUEUEDNETWORK_H
