//===- LocalMailbox.h - Messages between threads --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_LOCAL_LOCALMAILBOX_H
#define DTC_RUNTIME_FABRICS_LOCAL_LOCALMAILBOX_H

#include "runtime/fabrics/Transfers.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace dtc::runtime {

/// The results of the transfers of one device. The device's thread waits, others report.
class LocalResults {
public:
  using Ticket = Transfers::Ticket;

  void report(Ticket ticket, TransferResult result);
  /// Waits until the transfer was reported or the fabric aborted.
  TransferResult wait(Ticket ticket);
  void abort(const Error &reason);

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Ticket, TransferResult> results; // not waited for yet
  MaybeError aborted;
};

/// The messages to one device. The sender and the receiver leave the addresses of their tensors
/// here; when both are known, a thread of the mailbox copies from one to the other. It sleeps while
/// there is nothing to copy, and waits for nothing else.
class LocalMailbox {
public:
  /// One end of a message: the tensors, and who is told of the end.
  struct End {
    std::span<const TransferTensor> tensors;
    LocalResults *results = nullptr;
    Transfers::Ticket ticket = 0;
  };

  LocalMailbox() = default;
  /// Finishes what is being copied.
  ~LocalMailbox();
  LocalMailbox(const LocalMailbox &) = delete;
  LocalMailbox &operator=(const LocalMailbox &) = delete;

  /// Starts the thread; the first receive does it otherwise. Throws ThreadStartError.
  void start();
  void send(int64_t sender, const End &end);
  void receive(int64_t sender, const End &end);
  /// Nothing is copied from now on, except what is being copied.
  void abort();
  /// Waits until nothing is being copied, which must have been aborted.
  void drain();

private:
  struct Message {
    End from, to;
  };
  /// The transfers that one end has started and the other has not, the oldest first. One of the two
  /// is empty.
  struct Sender {
    std::deque<End> sends, receives;
  };

  void startCopier();
  void deliver(const End &from, const End &to);
  void copyMessages();

  std::mutex mutex;
  std::condition_variable messageReady;
  std::condition_variable copyEnded;
  std::map<int64_t, Sender> senders;
  std::deque<Message> ready;
  bool copying = false;
  bool aborted = false;
  bool stopping = false;
  std::thread copier;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_LOCAL_LOCALMAILBOX_H
