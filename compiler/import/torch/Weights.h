//===- Weights.h - Weights of products --------------------------*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_TORCH_WEIGHTS_H
#define DTC_COMPILER_IMPORT_TORCH_WEIGHTS_H

#include "dialects/dtc/DtcOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace dtc::torch {

/// The terms of an equation.
struct Terms {
  explicit Terms(EinsumOp op) : Terms(op.getEquation()) {}
  explicit Terms(llvm::StringRef equation) {
    auto [operands, right] = equation.split("->");
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

/// An einsum, or the product of the rows of experts, with a weight.
struct WeightProduct {
  mlir::Value lhs, weight, result;
  Terms terms;

  static std::optional<WeightProduct> of(mlir::Operation *op) {
    if (auto einsum = mlir::dyn_cast<EinsumOp>(op); einsum && isWeight(einsum.getRhs()))
      return WeightProduct{einsum.getLhs(), einsum.getRhs(), einsum.getResult(), Terms(einsum)};
    if (auto grouped = mlir::dyn_cast<GroupedProductOp>(op); grouped && isWeight(grouped.getRhs()))
      return WeightProduct{grouped.getLhs(), grouped.getRhs(), grouped.getResult(),
                           Terms(grouped.getEquation())};
    return std::nullopt;
  }
};

/// Dimension `dim` of one shape is the dimensions [dim, dim + count) of another.
struct Split {
  int64_t dim, count;
};

/// How a reshape splits one dimension, if it does nothing else.
std::optional<Split> findSplit(llvm::ArrayRef<int64_t> merged, llvm::ArrayRef<int64_t> split);

/// The sizes with dimension `dim` replaced by others.
llvm::SmallVector<int64_t> replaced(llvm::ArrayRef<int64_t> shape, int64_t dim,
                                    llvm::ArrayRef<int64_t> sizes);

/// The one dimension that a slice does not keep whole.
std::optional<int64_t> slicedDim(SliceOp slice);

/// Makes the parts of a parameter a dimension of it where they have the same size, and parameters
/// of their own where they are rows of different numbers. So each part can be split among devices,
/// and the gradient of the parameter is put together from those of its parts.
void splitParameters(mlir::func::FuncOp function);

/// Patterns that move reshapes which merge samples and positions after what works on rows.
void addKeepSamples(mlir::RewritePatternSet &patterns);

} // namespace dtc::torch

#endif // DTC_COMPILER_IMPORT_TORCH_WEIGHTS_H
