//===- ImportTorch.h - From a captured PyTorch model to model IR -*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_TORCH_IMPORTTORCH_H
#define DTC_COMPILER_IMPORT_TORCH_IMPORTTORCH_H

#include "compiler/import/ImportModel.h"

namespace dtc {

/// Whether a text is to be read as a captured model: MLIR, where a configuration is JSON.
bool isTorchCapture(llvm::StringRef text);

/// Builds the module of the model that python/dtc captured as `text`: one function @loss, with the
/// parameters and inputs that the capture has (see docs/python.md). Messages call the text
/// `fileName`. Returns null if the log has an error.
mlir::OwningOpRef<mlir::ModuleOp> importTorch(mlir::MLIRContext &context, llvm::StringRef text,
                                              llvm::StringRef fileName, ImportLog &log);

} // namespace dtc

#endif // DTC_COMPILER_IMPORT_TORCH_IMPORTTORCH_H
