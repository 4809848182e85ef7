//===- Weights.h - Weights of products --------------------------*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_TORCH_WEIGHTS_H
#define DTC_COMPILER_IMPORT_TORCH_WEIGHTS_H

#include "dialects/dtc/DtcOps.h"

namespace dtc::torch {

/// The terms of an einsum.
struct Terms {
  explicit Terms(EinsumOp op) {
    auto [operands, right] = op.getEquation().split("->");
    std::tie(lhs, rhs) = operands.split(',');
    result = right;
  }
  llvm::StringRef lhs, rhs, result;
};

/// Whether a value is a parameter, or a reshape or a slice of one.
inline bool isWeight(mlir::Value value) {
  while (mlir::Operation *op = value.getDefiningOp()) {
    if (!mlir::isa<ReshapeOp, SliceOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return true;
}

} // namespace dtc::torch

#endif // DTC_COMPILER_IMPORT_TORCH_WEIGHTS_H
