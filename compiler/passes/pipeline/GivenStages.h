//===- GivenStages.h - Stages given by the user ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PIPELINE_GIVENSTAGES_H
#define DTC_COMPILER_PASSES_PIPELINE_GIVENSTAGES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <vector>

namespace dtc {

/// The number of the first op of each stage, where `given` says which layers each has: stages
/// separated by '|', in them names of layers and ranges such as h.0-h.3, separated by ','. Layers
/// are those of LayerName; ops of others belong to the stage of the op before them. Emits an error
/// at `function` for text that does not parse, another number of stages than `stages`, layers that
/// no op has, that are in two stages, or whose stages do not rise along the function, and for
/// stages without an op.
mlir::FailureOr<std::vector<size_t>> cutAtGivenStages(mlir::func::FuncOp function,
                                                      llvm::ArrayRef<mlir::Operation *> ops,
                                                      int64_t stages, llvm::StringRef given);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_PIPELINE_GIVENSTAGES_H
