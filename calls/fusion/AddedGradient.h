//===- AddedGradient.h - The gradient of a norm or a table, added to another one ===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_FUSION_ADDEDGRADIENT_H
#define DTC_CALLS_FUSION_ADDEDGRADIENT_H

#include "calls/fusion/FusedCalls.h"

#include <optional>

namespace dtc {

/// The gradient of a norm, or of an embedding's table, and the addition of something else to its
/// first result, as numbers of values.
struct AddedGradient {
  const FusedCalls::Call *grad = nullptr;
  size_t added = 0, sum = 0;
};

/// None where the calls are something else, or the sum lies where the gradient reads.
std::optional<AddedGradient> matchAddedGradient(const FusedCalls &calls);

} // namespace dtc

#endif // DTC_CALLS_FUSION_ADDEDGRADIENT_H
