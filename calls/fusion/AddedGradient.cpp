//===- AddedGradient.cpp - The gradient of a norm or a table, added to another one ===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/AddedGradient.h"

#include <algorithm>

namespace dtc {

std::optional<AddedGradient> matchAddedGradient(const FusedCalls &calls) {
  if (calls.calls.size() != 2 || calls.calls[1].signature.kernel != "add" ||
      !calls.calls[1].signature.attributes.empty())
    return std::nullopt;
  AddedGradient match{&calls.calls[0]};
  const FusedCalls::Call &add = calls.calls[1];
  size_t own = match.grad->outputs[0];
  if (calls.values[own].isKept || (add.inputs[0] == own) == (add.inputs[1] == own))
    return std::nullopt;
  match.added = add.inputs[0] == own ? add.inputs[1] : add.inputs[0];
  match.sum = add.outputs[0];
  const std::vector<size_t> &read = match.grad->inputs;
  bool isClear = std::ranges::all_of(calls.overlaps, [&](const FusedCalls::Overlap &each) {
    bool isAdded = each.made == match.sum && each.before == match.added && each.isSame;
    return each.made == own || (isAdded && std::ranges::find(read, match.added) == read.end());
  });
  return isClear && !calls.values[match.added].maker ? std::optional(match) : std::nullopt;
}

} // namespace dtc
