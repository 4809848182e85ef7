//===- KnownOp.h - ATen ops of known values ---------------------*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_TORCH_KNOWNOP_H
#define DTC_COMPILER_IMPORT_TORCH_KNOWNOP_H

#include "compiler/import/torch/AtenOp.h"
#include "compiler/import/torch/ConstantTensor.h"

namespace dtc::torch {

using MaybeConstant = std::optional<ConstantTensor>;

/// An op, with the values of those operands that are known at import.
struct KnownOp : AtenArguments {
  KnownOp(mlir::Operation *op, const ConstantMap &constants)
      : AtenArguments(op), constants(constants),
        type(mlir::cast<mlir::RankedTensorType>(op->getResult(0).getType())) {}

  MaybeConstant known(llvm::StringRef name) const { return known(operand(name)); }
  MaybeConstant known(mlir::Value value) const {
    auto found = value ? constants.find(value) : constants.end();
    return found == constants.end() ? MaybeConstant() : MaybeConstant(found->second);
  }
  /// The operand or the number, of the result's shape.
  MaybeConstant knownOrNumber(llvm::StringRef name) const {
    if (MaybeConstant value = known(name))
      return value->broadcast(type.getShape());
    if (std::optional<double> value = number(name))
      return ConstantTensor::splat(mlir::Float64Type::get(op->getContext()), type.getShape(),
                                   *value);
    return std::nullopt;
  }
  mlir::Type element() const { return type.getElementType(); }
  llvm::ArrayRef<int64_t> shape() const { return type.getShape(); }

  const ConstantMap &constants;
  mlir::RankedTensorType type;
};

/// How the result of an operator follows from known operands; nothing where it does not.
using Evaluator = MaybeConstant (*)(const KnownOp &op);

/// Views, parts and lookups, by operator.
Evaluator findShapeEvaluator(llvm::StringRef name);

} // namespace dtc::torch

#endif // DTC_COMPILER_IMPORT_TORCH_KNOWNOP_H
