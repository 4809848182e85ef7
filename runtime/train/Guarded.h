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

/// The error of work(), or an exception of it as one: it must not lose what was trained.
template <typename Work> MaybeError guarded(const Work &work) {
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
