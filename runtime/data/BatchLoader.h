//===- BatchLoader.h - Prefetching of batches -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_BATCHLOADER_H
#define DTC_RUNTIME_DATA_BATCHLOADER_H

#include "runtime/data/DataSource.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace dtc::runtime {

/// Reads batches on a thread of its own, ahead of the thread that takes them. Each batch is the one
/// that `read` gives for its number; time affects only the moment when it is there. One thread
/// takes batches.
class BatchLoader {
public:
  /// Reads the batch of a number, on the loader's thread.
  using Read = std::function<Expected<Batch>(int64_t number)>;

  /// Holds up to `ahead` batches, at least 1, and reads ahead none of a number above `last`.
  /// Nothing is read before the first take(). The error is that the thread cannot start.
  static Expected<std::unique_ptr<BatchLoader>> start(Read read, size_t ahead, int64_t last);
  /// Waits for a read that is at work.
  ~BatchLoader();
  BatchLoader(const BatchLoader &) = delete;
  BatchLoader &operator=(const BatchLoader &) = delete;

  /// The batch of a number; from then on the loader reads the numbers after it. Any other number
  /// than the next one starts again there, as a run does that goes on. An error or an exception is
  /// that of reading this batch; those of batches that nobody takes are not told.
  Expected<Batch> take(int64_t number);

private:
  BatchLoader(Read read, size_t ahead, int64_t last); // throws ThreadStartError

  struct Result {
    std::optional<Expected<Batch>> batch;
    std::exception_ptr exception; // instead of the batch
  };

  void readAhead();
  Result readNow(int64_t number) const;
  /// Whether there is nothing to read. Under the mutex.
  bool isFull() const {
    return results.size() >= ahead || first + static_cast<int64_t>(results.size()) > last;
  }

  const Read read;
  const size_t ahead;
  const int64_t last;

  std::mutex mutex;
  std::condition_variable hasRoom, hasBatch;
  // Under the mutex.
  std::deque<Result> results; // of the numbers from `first` on
  int64_t first = 0;
  uint64_t starts = 0;  // how often the loader has started at another number
  bool isAsked = false; // by the first take()
  bool stops = false;

  std::thread thread; // last, as it uses all the others
};

/// How many batches a loader reads ahead for steps of `batchesOfStep` batches: those of the next
/// step, but at most 64 MiB of them, and at least two.
size_t batchesAhead(const std::vector<DataInput> &inputs, int64_t batchesOfStep);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_BATCHLOADER_H
