//===- StageFunctions.h - Functions of the pipeline coordinates -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PIPELINE_STAGEFUNCTIONS_H
#define DTC_COMPILER_PASSES_PIPELINE_STAGEFUNCTIONS_H

#include "compiler/passes/pipeline/OpPlacement.h"

namespace dtc {

/// Replaces `function` by one function for each of the `devices`, coordinates on the pipeline axis
/// in rising order, called "<name>.<coordinate>". `schedules` has for each coordinate the numbers
/// of ops of its body (see bodyOf) and microbatches, as dist.microbatch_loop wants them. A function
/// is the same whatever other devices have one.
void buildStageFunctions(mlir::func::FuncOp function, dist::MicrobatchLoopOp loop,
                         const PipelineProgram &program, const OpPlacement &placement,
                         llvm::ArrayRef<std::vector<int64_t>> schedules,
                         llvm::ArrayRef<int64_t> devices);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_PIPELINE_STAGEFUNCTIONS_H
