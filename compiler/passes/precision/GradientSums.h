//===- GradientSums.h - Reductions of gradients between devices -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PRECISION_GRADIENTSUMS_H
#define DTC_COMPILER_PASSES_PRECISION_GRADIENTSUMS_H

#include "dialects/dtc/DtcInterfaces.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dtc {

/// The collectives of a partitioned function that sum gradients of parameters which an optimizer
/// reads, in the order of the function.
llvm::SmallVector<mlir::Operation *> findGradientSums(mlir::func::FuncOp function);

/// Those of the gradient that one optimizer op reads, in no particular order.
llvm::SmallVector<mlir::Operation *> findGradientSums(OptimizerOpInterface optimizer);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_PRECISION_GRADIENTSUMS_H
