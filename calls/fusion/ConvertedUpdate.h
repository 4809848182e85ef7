//===- ConvertedUpdate.h - The update of a parameter and its conversion to 16 bits ===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_FUSION_CONVERTEDUPDATE_H
#define DTC_CALLS_FUSION_CONVERTEDUPDATE_H

#include "calls/fusion/FusedCalls.h"

#include <optional>

namespace dtc {

/// The update of a parameter, and the conversion of the result to bf16 or f16, the number of a
/// value.
struct ConvertedUpdate {
  const FusedCalls::Call *update = nullptr;
  DType to = DType::BF16;
  size_t converted = 0;
};

/// None for other calls, or if the converted value lies in the bytes of an operand.
std::optional<ConvertedUpdate> matchConvertedUpdate(const FusedCalls &calls);

} // namespace dtc

#endif // DTC_CALLS_FUSION_CONVERTEDUPDATE_H
