//===- ExportPlan.h - From exec IR to a plan ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_EXPORT_EXPORTPLAN_H
#define DTC_COMPILER_EXPORT_EXPORTPLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

namespace dtc {

namespace plan {
class Plan;
} // namespace plan

/// Writes the module's exec.program, whose memory is planned, as a plan. Emits an error for IR that
/// a plan cannot hold.
mlir::LogicalResult exportPlan(mlir::ModuleOp module, llvm::StringRef modelName, plan::Plan &plan);

} // namespace dtc

#endif // DTC_COMPILER_EXPORT_EXPORTPLAN_H
