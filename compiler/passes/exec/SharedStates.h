//===- SharedStates.h - States of several entry points --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_EXEC_SHAREDSTATES_H
#define DTC_COMPILER_PASSES_EXEC_SHAREDSTATES_H

#include "dialects/exec/Exec.h"

namespace dtc {

/// Gives all programs of one coordinate on the pipeline axis the same states in the same order:
/// those of the plan's own program, then those that only its other entry points have. Emits an
/// error where two of them have a state of one name that differ in type, shape or sharding, and
/// where an entry point does not have as many programs as the plan.
mlir::LogicalResult shareStates(mlir::ModuleOp module);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_EXEC_SHAREDSTATES_H
