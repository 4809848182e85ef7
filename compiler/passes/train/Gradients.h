//===- Gradients.h - Reverse-mode differentiation -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_TRAIN_GRADIENTS_H
#define DTC_COMPILER_PASSES_TRAIN_GRADIENTS_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "mlir/Support/LLVM.h"

namespace dtc {

/// Builds, at the builder's insertion point, the gradients of the scalar `loss` by each of `wrt`,
/// all in `block`, which is straight-line code, times `seed`, a scalar of the loss's type (null:
/// 1). Where the loss does not depend on a value its
/// gradient is zero. Ops are differentiated in reverse order through DifferentiableOpInterface;
/// contributions to one value are added in the order in which they arise. Fails with a diagnostic
/// at an op that the loss depends on and that has no gradient. With `numberOps` the ops of the
/// block get the attribute dtc.op, and the new ones dtc.gradient_of.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
buildGradients(mlir::OpBuilder &builder, mlir::Block &block, mlir::Value loss, mlir::ValueRange wrt,
               mlir::Value seed = {}, bool numberOps = false);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_TRAIN_GRADIENTS_H
