//===- Parts.h - The parts of fused ops -------------------------*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_TORCH_PARTS_H
#define DTC_COMPILER_IMPORT_TORCH_PARTS_H

#include "compiler/import/torch/AtenOp.h"

#include "mlir/IR/PatternMatch.h"

#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace dtc::torch {

/// The number that all elements of a constant are, or of what repeats one.
inline std::optional<double> splatOf(mlir::Value value) {
  if (auto broadcast = value.getDefiningOp<BroadcastOp>())
    return splatOf(broadcast.getOperand());
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant || !constant.getValue().isSplat() || !isFloat(value))
    return std::nullopt;
  return constant.getValue().getSplatValue<mlir::APFloat>().convertToDouble();
}

/// Whether two numbers are equal when they are rounded to f32.
inline bool isNear(double value, double wanted) {
  return std::abs(value - wanted) <= 1e-7 * std::abs(wanted);
}

/// The operands of an op of two, in both orders.
template <typename Op> std::array<std::pair<mlir::Value, mlir::Value>, 2> bothOrders(Op op) {
  return {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())};
}

/// x, where the value is an `Op` of x and a number in any order; and the number.
template <typename Op> std::optional<std::pair<mlir::Value, double>> withNumber(mlir::Value value) {
  auto op = value.getDefiningOp<Op>();
  if (!op)
    return std::nullopt;
  for (auto [x, number] : bothOrders(op))
    if (std::optional<double> found = splatOf(number))
      return std::pair(x, *found);
  return std::nullopt;
}

inline bool isSquareOf(mlir::Value value, mlir::Value x) {
  auto mul = value.getDefiningOp<MulOp>();
  return mul && mul.getLhs() == x && mul.getRhs() == x;
}

/// Adds the patterns that make RMS norms and layer norms of their parts.
void addNormPatterns(mlir::RewritePatternSet &patterns, Conversion &conversion);

} // namespace dtc::torch

#endif // DTC_COMPILER_IMPORT_TORCH_PARTS_H
