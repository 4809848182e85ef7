//===- ClosingReductions.h - Gradients reduced in the last microbatch -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_EXEC_CLOSINGREDUCTIONS_H
#define DTC_COMPILER_PASSES_EXEC_CLOSINGREDUCTIONS_H

#include "dialects/exec/Exec.h"

#include "llvm/ADT/DenseSet.h"

namespace dtc {

/// The closing instructions of a program that is not exported yet, as plan/ClosingInstructions.h
/// defines them: those in the loop over microbatches that read a sum over microbatches, or what
/// such an instruction makes, and the waits for them.
llvm::DenseSet<mlir::Operation *> findClosing(exec::ProgramOp program);

/// Moves reductions of sums, such as those of gradients, from the task after the loop over
/// microbatches into the task of the loop that runs last: each behind the last of its sums and
/// before the next product, so that it runs while the backward pass of the last microbatch goes on.
/// What pads or rounds a sum for a reduction moves with it. A task that sends values to another
/// device takes none, as a slow reduction would delay the send; its device waits for other stages
/// after it anyway.
void startClosingReductions(exec::ProgramOp program);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_EXEC_CLOSINGREDUCTIONS_H
