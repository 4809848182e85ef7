//===- BatchLoader.cpp - Prefetching of batches ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/BatchLoader.h"

#include "support/StartThread.h"

#include <algorithm>
#include <utility>

namespace dtc::runtime {

BatchLoader::BatchLoader(Read read, size_t ahead, int64_t last)
    : read(std::move(read)), ahead(std::max<size_t>(ahead, 1)), last(last),
      thread(startThread("reading data", [this] { readAhead(); })) {}

Expected<std::unique_ptr<BatchLoader>> BatchLoader::start(Read read, size_t ahead, int64_t last) {
  try {
    return std::unique_ptr<BatchLoader>(new BatchLoader(std::move(read), ahead, last));
  } catch (const ThreadStartError &error) {
    return Error{error.what()};
  }
}

BatchLoader::~BatchLoader() {
  {
    std::lock_guard lock(mutex);
    stops = true;
  }
  hasRoom.notify_one();
  thread.join();
}

BatchLoader::Result BatchLoader::readNow(int64_t number) const {
  Result result;
  try {
    result.batch = read(number);
  } catch (...) {
    result.exception = std::current_exception();
  }
  return result;
}

void BatchLoader::readAhead() {
  std::unique_lock lock(mutex);
  while (true) {
    hasRoom.wait(lock, [&] { return stops || (isAsked && !isFull()); });
    if (stops)
      return;
    int64_t number = first + static_cast<int64_t>(results.size());
    uint64_t startsBefore = starts;
    lock.unlock();
    Result result = readNow(number);
    lock.lock();
    // A batch that was asked for before the last start is not wanted any more.
    if (starts != startsBefore)
      continue;
    results.push_back(std::move(result));
    hasBatch.notify_one();
  }
}

Expected<Batch> BatchLoader::take(int64_t number) {
  if (number > last)
    return read(number);
  std::unique_lock lock(mutex);
  if (!isAsked || number != first) {
    results.clear();
    first = number;
    isAsked = true;
    ++starts;
    hasRoom.notify_one();
  }
  hasBatch.wait(lock, [&] { return !results.empty(); });
  Result result = std::move(results.front());
  results.pop_front();
  ++first;
  lock.unlock();
  hasRoom.notify_one();
  if (result.exception)
    std::rethrow_exception(result.exception);
  return std::move(*result.batch);
}

size_t batchesAhead(const std::vector<DataInput> &inputs, int64_t batchesOfStep) {
  constexpr uint64_t mostBytes = uint64_t{64} << 20;
  uint64_t bytes = 1; // of a batch
  for (const DataInput &input : inputs)
    bytes += static_cast<uint64_t>(input.type.numElements()) * byteWidth(input.type.dtype);
  uint64_t most = std::min(static_cast<uint64_t>(batchesOfStep), mostBytes / bytes);
  return static_cast<size_t>(std::max<uint64_t>(most, 2));
}

} // namespace dtc::runtime
