//===- OuterPasses.h - Passes of replicas that differ ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_OUTER_OUTERPASSES_H
#define DTC_COMPILER_PASSES_OUTER_OUTERPASSES_H

#include "dialects/dist/Dist.h"
#include "dialects/dtc/DtcOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace dtc {

#define GEN_PASS_DECL
#include "compiler/passes/OuterPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/OuterPasses.h.inc"

/// The value times a constant, elementwise, on the stage of `like`, which may be null.
mlir::Value multiplied(mlir::OpBuilder &builder, mlir::Value value, double factor,
                       mlir::Operation *like = nullptr);

/// The reduction of a value over one axis, with a reason for reports: each device along it has the
/// value of one `each`.
mlir::Value reducedOver(mlir::OpBuilder &builder, mlir::Value value, ReductionKind kind,
                        llvm::StringRef mesh, llvm::StringRef axis, llvm::StringRef what,
                        llvm::StringRef each = "replica");

} // namespace dtc

#endif // DTC_COMPILER_PASSES_OUTER_OUTERPASSES_H
