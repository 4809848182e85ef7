//===- AddedGradient.cpp - The gradient of a norm or a table, added to another one ===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/AddedGradient.h"

#include "calls/ReduceCall.h"

#include <algorithm>
#include <string>
#include <variant>

namespace dtc {

/// A block has no registers for the sums of wider rows beside those of gamma and beta.
static constexpr int64_t kMostColumns = 2048;

/// Whether a call sums all rows of a value, in full precision.
static bool sumsRows(const FusedCalls::Call &call, size_t value) {
  if (call.signature.kernel != "reduce" || call.inputs[0] != value || !checkReduce(call.signature))
    return false;
  const AttributeMap &attributes = call.signature.attributes;
  const auto *kind = std::get_if<std::string>(&attributes.at("kind"));
  const auto *dims = std::get_if<std::vector<int64_t>>(&attributes.at("dims"));
  const TensorType &in = call.signature.inputs[0], &out = call.signature.outputs[0];
  if (!kind || *kind != "sum" || !dims || out.dtype != wideType(in.dtype) ||
      dims->size() + 1 != in.shape.size() || in.shape.back() > kMostColumns)
    return false;
  // The dimensions increase, so that these are all but the last.
  return dims->empty() || dims->back() + 2 == static_cast<int64_t>(in.shape.size());
}

/// The other operand of a plain addition to a value that nothing else reads.
static std::optional<size_t> addedTo(const FusedCalls &calls, const FusedCalls::Call &add,
                                     size_t value) {
  if (add.signature.kernel != "add" || !add.signature.attributes.empty() ||
      calls.values[value].isKept || (add.inputs[0] == value) == (add.inputs[1] == value))
    return std::nullopt;
  return add.inputs[0] == value ? add.inputs[1] : add.inputs[0];
}

std::optional<AddedGradient> matchAddedGradient(const FusedCalls &calls) {
  if (calls.calls.size() < 2 || calls.calls.size() > 3)
    return std::nullopt;
  const FusedCalls::Call &add = calls.calls[1];
  size_t own = calls.calls[0].outputs[0];
  std::optional<size_t> added = addedTo(calls, add, own);
  if (!added || (calls.calls.size() == 3 && !sumsRows(calls.calls[2], add.outputs[0])))
    return std::nullopt;
  AddedGradient match{&calls.calls[0], *added, add.outputs[0]};
  const std::vector<size_t> &read = match.grad->inputs;
  bool isClear = std::ranges::all_of(calls.overlaps, [&](const FusedCalls::Overlap &each) {
    bool isAdded = each.made == match.sum && each.before == match.added && each.isSame;
    return each.made == own || (isAdded && std::ranges::find(read, match.added) == read.end());
  });
  return isClear && !calls.values[match.added].maker ? std::optional(match) : std::nullopt;
}

} // namespace dtc
