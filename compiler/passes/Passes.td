//===- Passes.td - All passes of the compiler --------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each folder declares its passes in a Passes.td of its own.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PASSES_TD
#define DTC_COMPILER_PASSES_PASSES_TD

include "compiler/passes/collectives/Passes.td"
include "compiler/passes/exec/Passes.td"
include "compiler/passes/generate/Passes.td"
include "compiler/passes/pipeline/Passes.td"
include "compiler/passes/precision/Passes.td"
include "compiler/passes/recompute/Passes.td"
include "compiler/passes/sharding/Passes.td"
include "compiler/passes/spmd/Passes.td"
include "compiler/passes/train/Passes.td"

#endif // DTC_COMPILER_PASSES_PASSES_TD
