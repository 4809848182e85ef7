//===- LossAndGrad.cpp - The loss of a classification and its gradient ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/LossAndGrad.h"

#include <algorithm>
#include <string>

namespace dtc {

std::optional<LossAndGrad> matchLossAndGrad(const FusedCalls &calls) {
  LossAndGrad match;
  const FusedCalls::Call *broadcast = nullptr;
  for (const FusedCalls::Call &call : calls.calls) {
    const std::string &kernel = call.signature.kernel;
    const FusedCalls::Call **place = kernel == "cross_entropy"        ? &match.loss
                                     : kernel == "cross_entropy_grad" ? &match.grad
                                     : kernel == "broadcast"          ? &broadcast
                                                                      : nullptr;
    if (!place || *place)
      return std::nullopt;
    *place = &call;
  }
  if (!match.loss || !match.grad)
    return std::nullopt;
  match.dloss = match.grad->inputs[3];
  if (broadcast) {
    match.isBroadcast = broadcast->outputs[0] == match.dloss &&
                        broadcast->signature.inputs[0].numElements() == 1 &&
                        !calls.values[match.dloss].isKept;
    if (!match.isBroadcast)
      return std::nullopt;
    match.dloss = broadcast->inputs[0];
  }
  size_t logits = match.loss->inputs[0], dlogits = match.grad->outputs[0];
  bool isClear = std::ranges::all_of(calls.overlaps, [&](const FusedCalls::Overlap &each) {
    bool isWritten = calls.values[each.made].isKept || each.made == dlogits;
    return !isWritten || (each.made == dlogits && each.before == logits && each.isSame);
  });
  bool agrees = match.grad->inputs[0] == logits && match.grad->inputs[1] == match.loss->inputs[1] &&
                match.grad->inputs[2] == match.loss->outputs[1];
  return agrees && isClear && !calls.values[match.dloss].maker ? std::optional(match)
                                                               : std::nullopt;
}

} // namespace dtc
