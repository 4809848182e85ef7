//===- AtenOp.h - An ATen op in conversion ----------------------*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The rules of a conversion take an AtenOp and return the values that replace its results.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_TORCH_ATENOP_H
#define DTC_COMPILER_IMPORT_TORCH_ATENOP_H

#include "compiler/import/torch/Conversion.h"
#include "dialects/dtc/DtcOps.h"

#include "mlir/IR/PatternMatch.h"

#include <optional>

namespace dtc::torch {

/// The arguments of an ATen op by the names of the operator's schema. Each is an operand, which the
/// array "operands" names, or an attribute.
class AtenArguments {
public:
  explicit AtenArguments(mlir::Operation *op) : op(op) {}

  /// The name of the operator: "linear".
  llvm::StringRef name() const;

  /// The operand of that name; null if there is none.
  mlir::Value operand(llvm::StringRef name) const;
  /// The elements of a list of tensors, in order; those that are absent are null.
  llvm::SmallVector<mlir::Value> list(llvm::StringRef name) const;

  // Attributes; nothing where they are absent or of another kind.
  std::optional<int64_t> integer(llvm::StringRef name) const;
  /// A float, an integer or a truth value.
  std::optional<double> number(llvm::StringRef name) const;
  std::optional<llvm::ArrayRef<int64_t>> integers(llvm::StringRef name) const;
  bool flag(llvm::StringRef name) const;
  bool isFloat(llvm::StringRef name) const;
  llvm::StringRef string(llvm::StringRef name) const;
  /// The dimension that an attribute names, counted from the last one if it is negative; nothing
  /// where a tensor of the rank has no such dimension.
  std::optional<int64_t> dim(llvm::StringRef name, int64_t rank) const;
  /// The dimensions that an array (or one integer) names, in increasing order. All of them where it
  /// is absent or empty.
  std::optional<llvm::SmallVector<int64_t>> dims(llvm::StringRef name, int64_t rank) const;

  mlir::Operation *op;
};

/// An ATen op that is being replaced, and a builder of dtc ops in its place. Where a value cannot
/// be made the reason is an error of the log and the value null; a function that is given a null
/// value returns one.
class AtenOp : public AtenArguments {
public:
  AtenOp(mlir::Operation *op, mlir::PatternRewriter &rewriter, Conversion &conversion)
      : AtenArguments(op), rewriter(rewriter), conversion(conversion), loc(op->getLoc()) {}

  /// Reports what is wrong with the op; null.
  mlir::Value fail(const llvm::Twine &problem) const;

  /// The operand of that name; where there is none, that is reported.
  mlir::Value required(llvm::StringRef name) const;
  mlir::RankedTensorType resultType(unsigned index = 0) const;
  mlir::Type resultElement() const { return resultType().getElementType(); }

  /// The operand, or the scalar attribute, of that name as a tensor of the type.
  mlir::Value operandOrScalar(llvm::StringRef name, mlir::RankedTensorType type) const;

  mlir::Value constant(llvm::ArrayRef<int64_t> shape, mlir::Type element, double value) const;
  mlir::Value convert(mlir::Value x, mlir::Type element) const;
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape) const;
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation) const;
  /// `x` with the dimensions exchanged.
  mlir::Value swapDims(mlir::Value x, int64_t first, int64_t second) const;
  /// `x`, repeated along dimensions of size 1 and new leading ones.
  mlir::Value broadcastTo(mlir::Value x, llvm::ArrayRef<int64_t> shape) const;
  /// `x`, whose dimensions are the given ones of the shape, repeated along the others.
  mlir::Value broadcastAlong(mlir::Value x, llvm::ArrayRef<int64_t> shape,
                             llvm::ArrayRef<int64_t> dims) const;
  mlir::Value slice(mlir::Value x, int64_t dim, int64_t begin, int64_t size) const;
  /// `x` with `count` zeros after the last element of the dimension.
  mlir::Value pad(mlir::Value x, int64_t dim, int64_t count) const;
  mlir::Value concat(mlir::ValueRange values, int64_t dim) const;
  mlir::Value einsum(llvm::StringRef equation, mlir::Value lhs, mlir::Value rhs) const;
  /// `x` with the dimensions removed, or of size 1 if they are kept.
  mlir::Value reduce(mlir::Value x, ReductionKind kind, llvm::ArrayRef<int64_t> dims,
                     bool keep) const;
  mlir::Value dropout(mlir::Value x, double rate) const;
  mlir::Value scale(mlir::Value x, double factor) const;

  /// An op whose operands have one type, which is the result's.
  template <typename Op> mlir::Value elementwise(mlir::ValueRange operands) const {
    for (mlir::Value operand : operands)
      if (!operand || operand.getType() != operands[0].getType())
        return operand ? fail("has operands of different types") : mlir::Value();
    return Op::create(rewriter, loc, operands[0].getType(), operands).getResult();
  }

  mlir::PatternRewriter &rewriter;
  Conversion &conversion;
  mlir::Location loc;
};

inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return typeOf(value).getShape(); }
inline bool isFloat(mlir::Value value) {
  return mlir::isa<mlir::FloatType>(typeOf(value).getElementType());
}

} // namespace dtc::torch

#endif // DTC_COMPILER_IMPORT_TORCH_ATENOP_H
