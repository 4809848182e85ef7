//===- DeviceThreads.h - A thread for each device -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICETHREADS_H
#define DTC_RUNTIME_EXECUTOR_DEVICETHREADS_H

#include "support/Error.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace dtc::runtime {

/// A thread for each device, which sleeps while there is nothing to do. Work always runs on the
/// same thread for the same device.
class DeviceThreads {
public:
  /// `onFailure` is called, from the failing device's thread, when work fails: it must make the
  /// other devices return. Errors name a device by its entry of `names`, or by its number.
  /// Throws ThreadStartError.
  DeviceThreads(size_t devices, std::function<void(const Error &)> onFailure,
                std::vector<int64_t> names = {});
  ~DeviceThreads();
  DeviceThreads(const DeviceThreads &) = delete;
  DeviceThreads &operator=(const DeviceThreads &) = delete;

  /// Looks after work from outside: called on the thread that waits for it, every `interval`. It
  /// gets the error that came first, if there is one. What it returns counts as an error of the
  /// work.
  struct Watch {
    std::chrono::nanoseconds interval;
    std::function<MaybeError(const MaybeError &failure)> look;
  };

  /// Runs work(device) on all threads and waits for the last one. The error that came first is
  /// returned; exceptions count as errors.
  MaybeError run(const std::function<MaybeError(size_t)> &work, const Watch *watch = nullptr);

private:
  void stop();
  void fail(const Error &error);
  void loop(size_t device);
  MaybeError runGuarded(const std::function<MaybeError(size_t)> &work, size_t device);

  std::function<void(const Error &)> onFailure;
  std::vector<int64_t> names;
  std::mutex mutex;
  std::condition_variable workReady;
  std::condition_variable workDone;
  const std::function<MaybeError(size_t)> *current = nullptr;
  uint64_t generation = 0;
  size_t running = 0;
  bool stopping = false;
  MaybeError firstError;
  std::vector<std::thread> threads;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICETHREADS_H
