//===- ModelTypes.h - The importer of each model type ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// To add a model type, write its importer in a file of its own, declare it here, and enter it in
// the table in ImportModel.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_MODELTYPES_H
#define DTC_COMPILER_IMPORT_MODELTYPES_H

#include "compiler/import/ConfigReader.h"
#include "compiler/import/ImportModel.h"
#include "compiler/import/ModelBuilder.h"

namespace dtc {

/// Reads all fields of `reader`, and builds the model unless that finds an error; then the result
/// is null.
using ModelImporter = mlir::OwningOpRef<mlir::ModuleOp>(mlir::MLIRContext &context,
                                                        ConfigReader &reader,
                                                        const ImportOptions &options);

ModelImporter importGpt2;
ModelImporter importLlama;

//===----------------------------------------------------------------------===//
// Fields that model types share
//===----------------------------------------------------------------------===//

/// `embed` / `heads`; an error unless that is an integer. `embedField` and `headsField` are the
/// names of the fields.
int64_t checkHeadSize(ConfigReader &reader, llvm::StringRef embedField, int64_t embed,
                      llvm::StringRef headsField, int64_t heads);

/// Reports a sequence that is longer than the model's positions.
void checkSequence(ConfigReader &reader, llvm::StringRef positionsField, int64_t positions,
                   const ImportOptions &options);

/// The activation function by its name in transformers.
Activation readActivation(ConfigReader &reader, llvm::StringRef field, llvm::StringRef fallback);

/// Reports fields of any transformers configuration that make another model of it than the
/// importers build. `architectures` are the classes that they do build.
void checkCommonFields(ConfigReader &reader, llvm::ArrayRef<llvm::StringRef> architectures);

} // namespace dtc

#endif // DTC_COMPILER_IMPORT_MODELTYPES_H
