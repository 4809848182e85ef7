//===- RemoveDropout.h - Removal of dropout for inference -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_TRAIN_REMOVEDROPOUT_H
#define DTC_COMPILER_PASSES_TRAIN_REMOVEDROPOUT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dtc {

/// Has the ops of the function that draw a mask for training give what they would without it.
void removeDropout(mlir::func::FuncOp function);

/// Erases the arguments that nothing reads, but for states other than the step state. Results keep
/// the arguments that they update.
void eraseUnusedInputs(mlir::func::FuncOp function);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_TRAIN_REMOVEDROPOUT_H
