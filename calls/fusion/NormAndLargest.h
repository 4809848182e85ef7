//===- NormAndLargest.h - A norm and the largest magnitude ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_FUSION_NORMANDLARGEST_H
#define DTC_CALLS_FUSION_NORMANDLARGEST_H

#include "calls/fusion/FusedCalls.h"

#include <optional>

namespace dtc {

/// A layer norm or an RMS norm, and the number of the value that is the largest magnitude of its
/// first result. That may lie in the place of statistics that are not kept, which are not written.
struct NormAndLargest {
  const FusedCalls::Call *norm = nullptr;
  size_t largest = 0;
};

/// None where the calls are something else, or the largest magnitude lies in the place of an
/// operand.
std::optional<NormAndLargest> matchNormAndLargest(const FusedCalls &calls);

} // namespace dtc

#endif // DTC_CALLS_FUSION_NORMANDLARGEST_H
