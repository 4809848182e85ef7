//===- Deadline.h - A function that is called after a time ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEADLINE_H
#define DTC_RUNTIME_EXECUTOR_DEADLINE_H

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace dtc::runtime {

/// Calls a function, on a thread of its own, unless it is destroyed within a time. For waits that
/// depend on others, such as a library that does not return.
class Deadline {
public:
  /// Throws ThreadStartError.
  Deadline(std::chrono::nanoseconds time, std::function<void()> onExpiry);
  /// Waits for the function, if it has been called.
  ~Deadline();
  Deadline(const Deadline &) = delete;
  Deadline &operator=(const Deadline &) = delete;

private:
  std::mutex mutex;
  std::condition_variable ended;
  bool hasEnded = false;
  std::thread thread;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEADLINE_H
