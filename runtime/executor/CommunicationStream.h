//===- CommunicationStream.h - Collectives beside the kernels -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_COMMUNICATIONSTREAM_H
#define DTC_RUNTIME_EXECUTOR_COMMUNICATIONSTREAM_H

#include "support/Error.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace dtc::runtime {

/// A thread that runs the collectives of one device in the order in which they were queued. It
/// sleeps while there are none. Its functions are for one other thread at a time.
class CommunicationStream {
public:
  /// Counts what was queued, from 1.
  using Ticket = uint64_t;

  /// `work` is called on the stream's thread with what was queued. At most `capacity` items are in
  /// the queue at one time. Throws ThreadStartError.
  CommunicationStream(size_t capacity, std::function<MaybeError(size_t)> work);
  /// Waits for what is queued, which the caller must have made to end.
  ~CommunicationStream();
  CommunicationStream(const CommunicationStream &) = delete;
  CommunicationStream &operator=(const CommunicationStream &) = delete;

  Ticket queue(size_t item);
  /// Waits until that item is done. After an error of an item, those behind it do not run, and
  /// every wait returns the error.
  MaybeError wait(Ticket ticket);
  /// Waits until the queue is empty. What the stream's thread wrote is then visible here.
  void drain();
  /// Whether all that was queued is done, and without an error; then what the stream's thread wrote
  /// is visible here.
  bool isIdle();

private:
  void loop();
  MaybeError runGuarded(size_t item);

  std::function<MaybeError(size_t)> work;
  std::mutex mutex;
  std::condition_variable itemQueued;
  std::condition_variable itemDone;
  std::vector<size_t> items; // a ring: ticket t has items[t % size]
  Ticket queued = 0;
  Ticket done = 0;
  MaybeError failure;
  bool stopping = false;
  std::thread thread; // last: it uses the others
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_COMMUNICATIONSTREAM_H
