//===- NormAndLargest.cpp - A norm and the largest magnitude -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/NormAndLargest.h"

#include <algorithm>

namespace dtc {

std::optional<NormAndLargest> matchNormAndLargest(const FusedCalls &calls) {
  if (calls.calls.size() != 2 || calls.calls[1].signature.kernel != "largest_magnitude")
    return std::nullopt;
  NormAndLargest match{calls.calls.data(), calls.calls[1].outputs[0]};
  bool isApart = std::ranges::none_of(
      calls.overlaps, [&](const FusedCalls::Overlap &each) { return each.made == match.largest; });
  bool isOfNorm = calls.calls[1].inputs[0] == match.norm->outputs[0];
  return isApart && isOfNorm ? std::optional(match) : std::nullopt;
}

} // namespace dtc
