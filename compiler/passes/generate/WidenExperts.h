//===- WidenExperts.h - Rows of experts for all tokens ---------*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_GENERATE_WIDENEXPERTS_H
#define DTC_COMPILER_PASSES_GENERATE_WIDENEXPERTS_H

#include "compiler/passes/generate/SequenceDims.h"

namespace dtc {

/// The value with `size` elements along `dim`, along which it is the same everywhere: a splat or a
/// broadcast. Null for another value, or one along which it is not.
mlir::Value resizeUniform(mlir::OpBuilder &builder, mlir::Value value, unsigned dim, int64_t size);

/// Gives each group of rows that tokens of a sequence are routed to, dtc.nonzero's, as many rows as
/// the sequence [batch, seq] has tokens, so that none is dropped. `positions` are those of the
/// function; they stay. Emits an error for an op that reads another value with a row for each.
mlir::LogicalResult widenExperts(mlir::func::FuncOp function, const SequenceDims &positions,
                                 mlir::Value tokens);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_GENERATE_WIDENEXPERTS_H
