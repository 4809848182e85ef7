//===- UnpackSequences.h - One document in each sequence ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_GENERATE_UNPACKSEQUENCES_H
#define DTC_COMPILER_PASSES_GENERATE_UNPACKSEQUENCES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dtc {

/// Makes of a loss of packed documents that of sequences of one document each: attention no longer
/// reads the input "segments", and the input "positions" is no longer read where it would count
/// from 0 on. Other uses of the two stay.
void unpackSequences(mlir::func::FuncOp function);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_GENERATE_UNPACKSEQUENCES_H
