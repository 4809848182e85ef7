//===- CommunicationMarks.h - How far a device has come, as it says -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_COMMUNICATIONMARKS_H
#define DTC_RUNTIME_EXECUTOR_COMMUNICATIONMARKS_H

#include "runtime/backends/Device.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace dtc::runtime {

/// The last communication, as instructions of the program, that a device has come to in a task.
struct ReachedCommunication {
  std::optional<size_t> collective; // its beginning
  std::optional<size_t> transfer;   // the start or the end of one
};

/// A device whose host is ahead writes to memory of the host which communication it has come to, by
/// a copy of four bytes before each, which graphs can hold: so a stall has a place. The copies
/// cost the device a little; nothing waits for them.
class CommunicationMarks {
public:
  /// Makes the marks for a program of `instructions` instructions. Waits for the queue.
  static Expected<std::unique_ptr<CommunicationMarks>> create(size_t instructions, Device &device,
                                                              Queue &queue);

  /// At the end of a task, when the lane is idle: in the next one it has come to nothing yet.
  MaybeError clear(Queue &queue) const;
  /// Before the work of an instruction. Collectives keep one order, whatever their queue, and the
  /// starts and ends of transfers another.
  MaybeError comesToCollective(Queue &queue, size_t instruction) const {
    return write(queue, kCollective, instruction);
  }
  MaybeError comesToTransfer(Queue &queue, size_t instruction) const {
    return write(queue, kTransfer, instruction);
  }
  /// The mark that was written last. From any thread.
  ReachedCommunication reached() const;

private:
  // The places of `written`, and the numbers from which they are cleared.
  enum Place : size_t { kCollective, kTransfer, kNumPlaces };

  MaybeError write(Queue &queue, Place place, size_t instruction) const;

  std::unique_ptr<DeviceMemory> numbers; // of the device: kNumPlaces zeros, then 1, 2, 3, ...
  std::unique_ptr<DeviceMemory> written; // of the host: an instruction + 1 each, or 0
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_COMMUNICATIONMARKS_H
