//===- GatedActivation.h - An activation function and a gate --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_FUSION_GATEDACTIVATION_H
#define DTC_CALLS_FUSION_GATEDACTIVATION_H

#include "calls/fusion/FusedCalls.h"

#include <optional>

namespace dtc {

/// An activation function and the multiplication of its result by a gate, or the gradients of both,
/// and the largest magnitudes of the results, as numbers of values; none: not there.
struct GatedActivation {
  const FusedCalls::Call *activation = nullptr; // or its gradient
  bool isGradient = false;
  std::optional<size_t> dout, gate, act, x;   // that are read; forward without act
  std::optional<size_t> dact, dgate, dx, out; // that are made
  std::optional<size_t> largestDgate, largestDx, largestOut;
};

/// None where the calls are something else, operands overlap without being the same, or a largest
/// magnitude lies in the place of an operand.
std::optional<GatedActivation> matchGatedActivation(const FusedCalls &calls);

} // namespace dtc

#endif // DTC_CALLS_FUSION_GATEDACTIVATION_H
