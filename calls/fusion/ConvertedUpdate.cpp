//===- ConvertedUpdate.cpp - The update of a parameter and its conversion to 16 bits ===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/ConvertedUpdate.h"

#include <algorithm>

namespace dtc {

std::optional<ConvertedUpdate> matchConvertedUpdate(const FusedCalls &calls) {
  if (calls.calls.size() != 2 || calls.calls[1].signature.kernel != "convert")
    return std::nullopt;
  const FusedCalls::Call &update = calls.calls[0], &convert = calls.calls[1];
  ConvertedUpdate match{&update, convert.signature.outputs[0].dtype, convert.outputs[0]};
  bool isKept =
      std::ranges::all_of(update.outputs, [&](size_t value) { return calls.values[value].isKept; });
  bool isApart = std::ranges::none_of(calls.overlaps, [&](const FusedCalls::Overlap &each) {
    return each.made == match.converted;
  });
  bool isMatch = isKept && isApart && (match.to == DType::BF16 || match.to == DType::F16) &&
                 convert.signature.inputs[0].dtype == DType::F32 && !update.outputs.empty() &&
                 convert.inputs[0] == update.outputs[0];
  return isMatch ? std::optional(match) : std::nullopt;
}

} // namespace dtc
