//===- RecomputeActivations.h - Recomputation of activations --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_RECOMPUTE_RECOMPUTEACTIVATIONS_H
#define DTC_COMPILER_PASSES_RECOMPUTE_RECOMPUTEACTIVATIONS_H

#include "compiler/analysis/Recompute.h"
#include "compiler/passes/Passes.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace dtc {

/// The choice for a device. All numbers are estimates.
struct DeviceSavedBytes {
  int64_t bytes = 0;         ///< kept for the backward pass, of all microbatches in flight
  double seconds = 0;        ///< of what is recomputed, for a microbatch
  double forwardSeconds = 0; ///< of the forward pass, for a microbatch
};

/// The choices for one module, by the device and the bound on the bytes that it keeps.
using KnownRecomputeChoices = std::map<std::pair<int, int64_t>, RecomputeChoice>;

/// dtc-recompute-activations as a function, for those who want to know what it chose: the devices
/// of a pipeline by coordinate, or one for all. Fails with a diagnostic. `known`: choices of
/// earlier calls with copies of the same module, which has one function, and options that differ in
/// `keepBytes` alone; these are not searched again.
mlir::FailureOr<std::vector<DeviceSavedBytes>>
recomputeActivations(mlir::ModuleOp module, const RecomputeActivationsPassOptions &options,
                     KnownRecomputeChoices *known = nullptr);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_RECOMPUTE_RECOMPUTEACTIVATIONS_H
