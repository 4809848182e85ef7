//===- DeviceThreads.cpp - A thread for each device -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceThreads.h"

#include "support/StartThread.h"

#include <exception>
#include <fmt/format.h>

namespace dtc::runtime {

DeviceThreads::DeviceThreads(size_t devices, std::function<void(const Error &)> onFailure,
                             std::vector<int64_t> names)
    : onFailure(std::move(onFailure)), names(std::move(names)) {
  for (size_t device = this->names.size(); device < devices; ++device)
    this->names.push_back(static_cast<int64_t>(device));
  threads.reserve(devices);
  try {
    for (size_t device = 0; device < devices; ++device)
      threads.push_back(startThread(fmt::format("device {}", this->names[device]),
                                    [this, device] { loop(device); }));
  } catch (...) {
    stop();
    throw;
  }
}

DeviceThreads::~DeviceThreads() { stop(); }

void DeviceThreads::stop() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  workReady.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

MaybeError DeviceThreads::run(const std::function<MaybeError(size_t)> &work, const Watch *watch) {
  std::unique_lock lock(mutex);
  current = &work;
  running = threads.size();
  firstError.reset();
  ++generation;
  workReady.notify_all();
  auto isDone = [&] { return running == 0; };
  if (!watch)
    workDone.wait(lock, isDone);
  else
    while (!workDone.wait_for(lock, watch->interval, isDone)) {
      MaybeError failure = firstError;
      lock.unlock();
      if (MaybeError error = watch->look(failure))
        fail(*error);
      lock.lock();
    }
  current = nullptr;
  return firstError;
}

MaybeError DeviceThreads::runGuarded(const std::function<MaybeError(size_t)> &work, size_t device) {
  try {
    return work(device);
  } catch (const std::exception &exception) {
    return Error{exception.what()};
  }
}

void DeviceThreads::fail(const Error &error) {
  {
    // Recorded before the others are woken: their errors are only a consequence.
    std::lock_guard lock(mutex);
    if (!firstError)
      firstError = error;
  }
  onFailure(error);
}

void DeviceThreads::loop(size_t device) {
  uint64_t seen = 0;
  std::unique_lock lock(mutex);
  while (true) {
    workReady.wait(lock, [&] { return stopping || generation != seen; });
    if (stopping)
      return;
    seen = generation;
    const std::function<MaybeError(size_t)> &work = *current;
    lock.unlock();
    MaybeError error = runGuarded(work, device);
    if (error)
      fail(error->inContext(fmt::format("device {}", names[device])));
    lock.lock();
    if (--running == 0)
      workDone.notify_one();
  }
}

} // namespace dtc::runtime
