//===- TransferProgress.h - The thread that moves messages of devices ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_TRANSFERPROGRESS_H
#define DTC_RUNTIME_FABRICS_PROCESSES_TRANSFERPROGRESS_H

#include "runtime/fabrics/processes/Messages.h"

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

namespace dtc::runtime {

/// Moves messages while the devices compute: a network may need somebody who asks it. The thread
/// sleeps while there are none.
class TransferProgress {
public:
  using OnDone = std::function<void(MaybeError)>;

  TransferProgress() = default;
  ~TransferProgress();
  TransferProgress(const TransferProgress &) = delete;
  TransferProgress &operator=(const TransferProgress &) = delete;

  /// Starts the thread; the first add() does it otherwise. Throws ThreadStartError.
  void start();
  /// Calls `onDone` on the thread when the batch, which has one message of `device`, is done.
  void add(int64_t device, std::unique_ptr<MessageBatch> batch, OnDone onDone);
  /// Gives up the messages of a device after an abort: nothing writes to its memory any more.
  void cancel(int64_t device);

private:
  struct Pending {
    int64_t device = 0;
    std::unique_ptr<MessageBatch> batch;
    OnDone onDone;
  };
  bool look();
  void loop();

  std::mutex mutex; // of all that follows; batches are only asked while it is held
  std::condition_variable changed;
  std::list<Pending> pending;
  bool stopping = false;
  std::thread thread;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_TRANSFERPROGRESS_H
