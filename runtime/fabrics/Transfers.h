//===- Transfers.h - Messages from one device to another ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Collectives (Communicator.h) need all members of a group at one time. A transfer needs two
// devices, which come to it at different times: both ends are started, go on with other work, and
// wait for the message where they need its end. Transfers and collectives do not wait for each
// other.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_TRANSFERS_H
#define DTC_RUNTIME_FABRICS_TRANSFERS_H

#include "runtime/backends/Device.h"
#include "support/Error.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dtc::runtime {

/// One tensor of a message: where it lies on this device. Only read, if it is sent.
struct TransferTensor {
  void *data = nullptr;
  uint64_t bytes = 0;
};

/// How a transfer went.
struct TransferResult {
  using TimePoint = std::chrono::steady_clock::time_point;

  MaybeError error;
  /// When the bytes moved, as far as the fabric knows it.
  TimePoint begin, end;

  double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
};

/// One device's end of the fabric for messages to and from single devices. Not thread-safe: it is
/// used by one thread at a time.
///
/// The messages from one device to another match in the order in which both ends start them, so a
/// fabric needs no tags. Sender and receiver agree on the number and the sizes of the tensors of a
/// message.
class Transfers {
public:
  /// Stands for a transfer that was started and not waited for.
  using Ticket = uint64_t;

  virtual ~Transfers() = default;

  /// Takes what messages to (`sends`) or from a peer need, so that a lack of it is found before the
  /// first one, and Fabric::connect() makes their connection. Its other end is prepared too, and
  /// only then there are messages. Throws ThreadStartError.
  virtual MaybeError prepare(int64_t peer, bool sends) { return std::nullopt; }

  /// Starts one end of a message after all that the queue holds: it `sends` the tensors to `peer`,
  /// or receives into them. Neither the tensors nor the span may change until the transfer has been
  /// waited for. The queue goes on; where it sends, a fabric may let it wait until the peer has
  /// started to receive, that of one process does not.
  Expected<Ticket> start(Queue &queue, int64_t peer, std::span<const TransferTensor> tensors,
                         bool sends);

  /// Work that the queue gets from now on begins when all bytes of a transfer have moved. Each
  /// ticket is waited for once, in any order. `result` is written before the queue goes on, and
  /// lives until then. An error, which is one of the queue, means that the ends disagree or that
  /// another device failed.
  virtual MaybeError enqueueWait(Queue &queue, Ticket ticket, TransferResult &result) = 0;

  /// Waits until nothing writes to this device's memory any more. The fabric must have been
  /// aborted; memory that others send from is at rest when all devices have drained.
  virtual void drain() = 0;

  /// Bytes of all messages that this device has started to send.
  uint64_t sentBytes() const { return bytesSent; }

protected:
  virtual Expected<Ticket> doStart(Queue &queue, int64_t peer,
                                   std::span<const TransferTensor> tensors, bool sends) = 0;
  void countSent(std::span<const TransferTensor> tensors);

private:
  uint64_t bytesSent = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_TRANSFERS_H
