//===- SchedulePipeline.h - A function for each pipeline coordinate -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PIPELINE_SCHEDULEPIPELINE_H
#define DTC_COMPILER_PASSES_PIPELINE_SCHEDULEPIPELINE_H

#include "compiler/passes/Passes.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>

namespace dtc {

/// Whether the function of a device, a coordinate on the pipeline axis, is to be built. `schedule`
/// has the numbers of ops of its body and microbatches, as dist.microbatch_loop has them.
using IsDeviceNeeded = llvm::function_ref<bool(int64_t device, llvm::ArrayRef<int64_t> schedule)>;

/// dtc-schedule-pipeline as a function, for those who need the functions of some devices only. Asks
/// `isNeeded` once for each device, in their order, and leaves a function for each one that is
/// needed: the same as beside those of all others. Fails with a diagnostic.
mlir::LogicalResult schedulePipeline(mlir::ModuleOp module,
                                     const SchedulePipelinePassOptions &options,
                                     IsDeviceNeeded isNeeded);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_PIPELINE_SCHEDULEPIPELINE_H
