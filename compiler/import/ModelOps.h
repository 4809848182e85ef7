//===- ModelOps.h - Ops of imported models --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Shapes in comments: B batch, S sequence, D embedding, H heads, E size of a head.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_MODELOPS_H
#define DTC_COMPILER_IMPORT_MODELOPS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace dtc {

/// A dimension of a parameter: its size and its logical axis, "" for none.
struct Dim {
  int64_t size;
  llvm::StringRef axis = "";
};

/// The functions that models apply element by element in their MLPs.
enum class Activation { GeluTanh, Gelu, Relu, Silu, Tanh, Sigmoid };

/// Makes ops where its builder stands, at its location. Elements are of its element type.
class ModelOps {
public:
  mlir::Value einsum(llvm::StringRef equation, mlir::Value lhs, mlir::Value rhs);
  mlir::Value add(mlir::Value lhs, mlir::Value rhs);
  /// Marks `x` [B, S, D] as a value of the residual stream: its sequence is the logical axis
  /// "residual_seq".
  mlir::Value residual(mlir::Value x);
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs);
  mlir::Value scale(mlir::Value x, double factor);
  /// `x` [B, S, D], each row times the one element of its row in `factors` [B, S, 1].
  mlir::Value mulRows(mlir::Value x, mlir::Value factors);
  /// x, and -limit or limit where it is outside of them.
  mlir::Value clip(mlir::Value x, double limit);
  /// x, and limit where it is larger.
  mlir::Value clipAbove(mlir::Value x, double limit);
  /// x + number.
  mlir::Value shift(mlir::Value x, double number);
  /// cap * tanh(x / cap).
  mlir::Value softcap(mlir::Value x, double cap);
  /// `axes` names the result's dimensions; empty: they have no names.
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape,
                      llvm::ArrayRef<llvm::StringRef> axes = {});
  mlir::Value activation(Activation kind, mlir::Value x);

  /// `x` plus `bias`, which has x's last dimensions.
  mlir::Value addBias(mlir::Value x, mlir::Value bias);

  /// The part of `x` at `index` of `dim`, without that dimension.
  mlir::Value select(mlir::Value x, int64_t dim, int64_t index);

  /// Elements [begin, begin + size) of the dimension `dim`.
  mlir::Value take(mlir::Value x, int64_t dim, int64_t begin, int64_t size);

  /// The values one after the other along the dimension `dim`.
  mlir::Value concat(mlir::Value first, mlir::Value second, int64_t dim);

  /// `x` whose elements 0, 2, 4... of the dimension `dim` come before elements 1, 3, 5...
  mlir::Value halvesOfPairs(mlir::Value x, int64_t dim);

  /// x [B, S, E] for each of `heads`: [B, S, H, E].
  mlir::Value forEachHead(mlir::Value x, Dim heads);

  mlir::Value zero() { return constant({}, 0); }

protected:
  explicit ModelOps(mlir::MLIRContext &context)
      : builder(&context), loc(mlir::NameLoc::get(builder.getStringAttr("model"))) {}

  static llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
  }
  mlir::RankedTensorType getType(llvm::ArrayRef<int64_t> shape);
  mlir::Value constant(llvm::ArrayRef<int64_t> shape, double value);

  mlir::OpBuilder builder;
  mlir::Type elementType;
  mlir::Location loc;
};

} // namespace dtc

#endif // DTC_COMPILER_IMPORT_MODELOPS_H
