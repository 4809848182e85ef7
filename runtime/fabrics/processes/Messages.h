//===- Messages.h - Bytes between processes -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// All that a network has to do for the fabric of several processes (ProcessFabric.h): messages
// between two of them, and the news that one has failed.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_MESSAGES_H
#define DTC_RUNTIME_FABRICS_PROCESSES_MESSAGES_H

#include "support/Error.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace dtc::runtime {

/// Bytes of a message that lie together. Only read, if it is sent.
struct MessagePart {
  std::byte *data = nullptr;
  size_t bytes = 0;

  /// The bytes of a value.
  template <typename T> static MessagePart of(T &value) {
    return {reinterpret_cast<std::byte *>(&value), sizeof(T)};
  }
};

/// Messages that are under way and waited for together. Used by one thread at a time.
class MessageBatch {
public:
  virtual ~MessageBatch() = default;

  /// Starts a message; none blocks. The bytes stay and do not change until the batch is done; the
  /// span is not used after the call. A message has as many bytes as its receiver expects.
  virtual MaybeError send(int64_t process, int64_t tag, std::span<const MessagePart> parts) = 0;
  virtual MaybeError receive(int64_t process, int64_t tag, std::span<const MessagePart> parts) = 0;

  /// Whether all bytes of all messages have moved; the batch is then empty. An error names the
  /// process at the other end.
  virtual Expected<bool> isDone() = 0;
  /// Waits for isDone(), awake at first, and gives up when the fabric has been aborted.
  MaybeError wait();

  /// Gives up receiving what has not come. The fabric has been aborted. Returns false if memory of
  /// a message may still be written to; that memory has to stay.
  virtual bool cancel() = 0;

protected:
  /// The reason for which the fabric has been aborted.
  virtual MaybeError failure() const = 0;
  /// Whether messages move while nobody calls isDone().
  virtual bool movesByItself() const { return false; }
};

/// A process's end of the network. Those of two processes with one tag match in their order;
/// messages of different tags have none. All functions may be called from any thread.
class Messages {
public:
  virtual ~Messages() = default;

  virtual int64_t process() const = 0;
  virtual int64_t numProcesses() const = 0;
  /// How many of them are on the machine of this one.
  virtual int64_t processesOnHost() const = 0;
  /// Tags are from 0 to this.
  virtual int64_t largestTag() const = 0;

  virtual std::unique_ptr<MessageBatch> openBatch() = 0;

  /// Tells all processes the reason, of several the first; batches that wait give up with it.
  virtual void abort(const Error &reason) = 0;
  /// As abort(), but tells no other process: each hears of it by another way.
  virtual void abortHere(const Error &reason) = 0;
  /// The reason that this process has heard of.
  virtual MaybeError failure() const = 0;
  /// Calls it with the reason of an abort, once, from any thread, also if there is one already. A
  /// later call replaces it; null waits until none runs.
  virtual void onAbort(std::function<void(const Error &)> heard) = 0;

  /// How many agreements (Agreement.h) this process has begun. All begin the same ones in the same
  /// order, so that it says how far a process has come.
  int64_t agreementsBegun() const { return agreements; }
  void beginAgreement() { ++agreements; }

private:
  std::atomic<int64_t> agreements = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_MESSAGES_H
