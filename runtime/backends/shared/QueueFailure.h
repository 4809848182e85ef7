//===- QueueFailure.h - The first error of a queue ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_SHARED_QUEUEFAILURE_H
#define DTC_RUNTIME_BACKENDS_SHARED_QUEUEFAILURE_H

#include "support/Error.h"

#include <mutex>
#include <utility>

namespace dtc::runtime {

/// The first error of a queue, which its events know too.
class QueueFailure {
public:
  MaybeError get() const {
    std::lock_guard lock(mutex);
    return first;
  }
  /// Keeps the error unless there is one already; gives the one that is kept.
  Error set(Error error) {
    std::lock_guard lock(mutex);
    if (!first)
      first = std::move(error);
    return *first;
  }

private:
  mutable std::mutex mutex;
  MaybeError first;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_BACKENDS_SHARED_QUEUEFAILURE_H
