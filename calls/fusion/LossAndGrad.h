//===- LossAndGrad.h - The loss of a classification and its gradient ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_FUSION_LOSSANDGRAD_H
#define DTC_CALLS_FUSION_LOSSANDGRAD_H

#include "calls/fusion/FusedCalls.h"

#include <optional>

namespace dtc {

/// The loss and its gradient, as numbers of values.
struct LossAndGrad {
  const FusedCalls::Call *loss = nullptr, *grad = nullptr;
  size_t dloss = 0;
  bool isBroadcast = false; // dloss is one number
};

/// None where the calls are something else, or the gradient lies anywhere but in the place of the
/// logits.
std::optional<LossAndGrad> matchLossAndGrad(const FusedCalls &calls);

} // namespace dtc

#endif // DTC_CALLS_FUSION_LOSSANDGRAD_H
