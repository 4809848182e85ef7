//===- Communicator.h - Collectives between devices -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_COMMUNICATOR_H
#define DTC_RUNTIME_FABRICS_COMMUNICATOR_H

#include "runtime/backends/Device.h"
#include "support/Collective.h"
#include "support/Error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dtc::runtime {

/// Where a member's side of one tensor of a collective lies.
struct CollectiveOperands {
  const void *input = nullptr;
  void *output = nullptr;
};

/// Differs, almost always, between buckets that do not match.
uint64_t fingerprintOf(std::span<const CollectiveSpec> specs);

/// One device's end of the fabric for collectives. All members of a group enqueue the same
/// collectives in the same order. Not thread-safe: it is used by one thread at a time.
class Communicator {
public:
  /// A group of devices, valid for the communicator that opened it.
  using Group = size_t;

  virtual ~Communicator() = default;

  /// Opens the group of the devices that differ from this one only on `axes` (spatial axes of the
  /// mesh); ranks are row-major over `axes` in the order given. All devices open the same groups in
  /// the same order.
  virtual Expected<Group> openGroup(const std::vector<std::string> &axes) = 0;
  /// The same for collectives that are captured, by all members; those of other groups are not.
  virtual Expected<Group> openGroupInGraphs(const std::vector<std::string> &axes) {
    return openGroup(axes);
  }

  /// Says that enqueue() will get this bucket for the group, so that it need not allocate memory
  /// or load code for it, for which it might wait for the device (Device.h). Before
  /// Fabric::connect(), at least once for each group that is used, with a queue that holds nothing;
  /// for further buckets also later, while no collective runs.
  virtual MaybeError prepare(Queue &queue, Group group, std::span<const CollectiveSpec> specs) {
    return std::nullopt;
  }

  /// Enqueues one collective on a bucket of tensors. `specs` differ only in their tensors: kind,
  /// reduction, members and sources are the same in all. operands[i] belongs to
  /// specs[i] and is not used after the call; the specs live as long as the communicator. An output
  /// may equal its own input for AllReduce, and must not overlap any other operand. The bits of a
  /// result do not depend on the other tensors of the bucket. The collectives of a communicator run
  /// in the order in which they were enqueued: a caller that enqueues on several queues orders
  /// these by events. An error, which may be one of the queue, means that another member failed or
  /// that the members disagree; the communicator cannot be used any more.
  MaybeError enqueue(Queue &queue, Group group, std::span<const CollectiveSpec> specs,
                     std::span<const CollectiveOperands> operands);

  /// Whether a graph can hold collectives (Queue::beginCapture()): they are work of queues alone,
  /// and the same collective is always the same work.
  virtual bool canBeCaptured() const { return false; }
  /// A queue is about to get a graph that holds this collective.
  MaybeError repeat(Group group, std::span<const CollectiveSpec> specs);

  /// The bytes that this device has been given to send since it was made, or since forgetSent().
  const CommunicatorBytes &sent() const { return bytesSent; }
  void forgetSent() { bytesSent = {}; }

protected:
  /// Neither span is empty, and both have the same size.
  virtual MaybeError doEnqueue(Queue &queue, Group group, std::span<const CollectiveSpec> specs,
                               std::span<const CollectiveOperands> operands) = 0;
  virtual MaybeError doRepeat(Group group, std::span<const CollectiveSpec> specs) {
    return std::nullopt;
  }

private:
  void countSent(std::span<const CollectiveSpec> specs);

  CommunicatorBytes bytesSent;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_COMMUNICATOR_H
