//===- AbortReason.h - The reason for which a network was aborted ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_ABORTREASON_H
#define DTC_RUNTIME_FABRICS_PROCESSES_ABORTREASON_H

#include "support/Error.h"

#include <atomic>
#include <functional>
#include <mutex>

namespace dtc::runtime {

/// The first reason for which a network was aborted, and the listener that is told of it. All
/// functions may be called by several threads at once.
class AbortReason {
public:
  /// The reason; nothing if there is none. Takes no lock until there is one.
  MaybeError get() const {
    if (!isSet())
      return std::nullopt;
    std::lock_guard lock(mutex);
    return first;
  }

  bool isSet() const { return hasReason.load(std::memory_order_acquire); }

  /// Keeps the reason if it is the first, tells the listener, and returns whether it is.
  bool set(const Error &reason) {
    {
      std::lock_guard lock(mutex);
      if (first)
        return false;
      first = reason;
      hasReason.store(true, std::memory_order_release);
    }
    std::lock_guard lock(listening);
    if (heard)
      heard(reason);
    return true;
  }

  /// Takes the place of the listener, whose last call is over then, and tells the new one what is
  /// known already. Null: nobody listens.
  void listen(const std::function<void(const Error &)> &listener) {
    {
      std::lock_guard lock(listening);
      heard = listener;
    }
    if (MaybeError reason = get(); reason && listener)
      listener(*reason);
  }

private:
  mutable std::mutex mutex;
  MaybeError first;
  std::atomic<bool> hasReason = false;
  std::mutex listening; // while `heard` runs or changes
  std::function<void(const Error &)> heard;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_ABORTREASON_H
