//===- ReadModel.h - Model IR from a file ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_READMODEL_H
#define DTC_COMPILER_DRIVER_READMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/SourceMgr.h"

namespace dtc {

/// Parses the main file of `sources` and verifies the module; null after a diagnostic. What the
/// file gives a location of its own, such as the name of a layer, knows its line and column as
/// well.
mlir::OwningOpRef<mlir::ModuleOp> readModel(const llvm::SourceMgr &sources,
                                            mlir::MLIRContext *context);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_READMODEL_H
