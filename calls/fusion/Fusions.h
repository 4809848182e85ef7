//===- Fusions.h - Calls that one kernel computes on a GPU ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The calls for which the CUDA backend has one kernel. A simulated GPU that computes calls together
// has one kernel for the same calls.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_FUSION_FUSIONS_H
#define DTC_CALLS_FUSION_FUSIONS_H

#include "calls/fusion/AddedGradient.h"
#include "calls/fusion/ConvertedUpdate.h"
#include "calls/fusion/FusedProduct.h"
#include "calls/fusion/GatedActivation.h"
#include "calls/fusion/LossAndGrad.h"
#include "calls/fusion/NormAndLargest.h"

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace dtc {

/// Pointers in it are to calls of the FusedCalls.
using Fusion = std::variant<FusedProduct, AddedGradient, LossAndGrad, GatedActivation,
                            ConvertedUpdate, NormAndLargest>;

/// None if there is no kernel for all the calls.
std::optional<Fusion> findFusion(const FusedCalls &calls);

/// Whether there is a fusion of calls of kernels with these names, for some operands.
bool mayHaveFusion(const std::vector<std::string_view> &kernels);

} // namespace dtc

#endif // DTC_CALLS_FUSION_FUSIONS_H
