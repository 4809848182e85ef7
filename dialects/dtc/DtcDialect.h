//===- DtcDialect.h - The dtc dialect, its types and attributes -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCDIALECT_H
#define DTC_DIALECTS_DTC_DTCDIALECT_H

#include "dialects/dtc/EnumName.h"
#include "support/Kinds.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"

#include "dialects/dtc/DtcDialect.h.inc"
#include "dialects/dtc/DtcEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dtc/DtcAttributes.h.inc"

namespace dtc {

/// Attributes that say which gradient belongs to which op, where something has to follow that: the
/// number of an op of the loss, and, on an op that computes gradients, the number of the op that
/// they belong to.
inline constexpr llvm::StringLiteral kOpNumberAttrName = "dtc.op";
inline constexpr llvm::StringLiteral kGradientOfAttrName = "dtc.gradient_of";

/// Whether the type is one of the dialect's tensors: ranked, without an encoding, of static sizes
/// of at least 1 whose product is at most 2^56 (so that sizes in bytes cannot overflow), with
/// elements of f32, f64, bf16, f16, i32 or i1.
bool isAnyTensor(mlir::Type type);
/// The same, or with elements of 8 bits: f8E4M3FN or f8E5M2.
bool isStoredTensor(mlir::Type type);
/// A tensor of the dialect with elements of f32, f64, bf16 or f16.
bool isFloatTensor(mlir::Type type);
/// A tensor of the dialect with elements of f32 or f64.
bool isWideTensor(mlir::Type type);
/// A tensor of the dialect with elements of i32.
bool isIndexTensor(mlir::Type type);
/// A tensor of the dialect with elements of i1.
bool isMaskTensor(mlir::Type type);
/// A tensor of the dialect with elements of f32, f64, bf16, f16 or i32.
bool isNumericTensor(mlir::Type type);

/// The type for sums and statistics of elements of a float type: f32 for bf16 and f16, else the
/// type itself. The same for tensors of them.
mlir::Type getWideType(mlir::Type elementType);
mlir::RankedTensorType getWideTensor(mlir::RankedTensorType type);

/// The tensor type with elements of i1 and the shape of `type`; i1 itself if that is no ranked
/// tensor.
mlir::Type getMaskType(mlir::Type type);

/// Whether the attribute is an initializer of parameters: #dtc.normal, #dtc.uniform, #dtc.zeros or
/// #dtc.ones.
bool isInitializer(mlir::Attribute attribute);

} // namespace dtc

#endif // DTC_DIALECTS_DTC_DTCDIALECT_H
