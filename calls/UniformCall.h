//===- UniformCall.h - Calls for random numbers ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_UNIFORMCALL_H
#define DTC_CALLS_UNIFORMCALL_H

#include "calls/KernelSignature.h"
#include "calls/RandomMask.h"
#include "support/Error.h"

namespace dtc {

/// `random_uniform`: the words of the elements, as those of a mask, and how many elements a device
/// has.
struct UniformCall {
  RandomMask words;
  int64_t count = 0;
};

/// Checks a call against its row of docs/kernels.md.
Expected<UniformCall> checkUniform(const KernelSignature &signature);

} // namespace dtc

#endif // DTC_CALLS_UNIFORMCALL_H
