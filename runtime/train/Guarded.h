//===- Guarded.h - Exceptions of work as errors --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_GUARDED_H
#define DTC_RUNTIME_TRAIN_GUARDED_H

#include "support/Error.h"

#include <exception>
#include <new>

namespace dtc::runtime {

/// Calls work(), which returns a MaybeError or an Expected, and returns an exception of it as an
/// error: no exception may lose what was trained.
template <typename Work> auto guarded(const Work &work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc &) {
    return Error{"out of memory (see ulimit -v)"};
  } catch (const std::exception &exception) {
    return Error{exception.what()};
  }
}

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_GUARDED_H
