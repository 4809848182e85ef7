//===- DtcInterfaces.h - Interfaces of ops --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCINTERFACES_H
#define DTC_DIALECTS_DTC_DTCINTERFACES_H

#include "dialects/dtc/ShardingRule.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"

namespace dtc {

/// How an op treats 16-bit floats (see PrecisionOpInterface).
enum class PrecisionClass {
  Low,    ///< made for them: it reads 16 bits where it can, and computes inside in the wide type
  Follow, ///< takes the type of its operands, the widest if they differ
  Wide,   ///< loses too much in 16 bits: it computes on wide operands
};

/// Builds the op with other operands and result types, at the same location. All its attributes are
/// kept but `dist.sharding`, which described the old types.
mlir::Operation *cloneWithTypes(mlir::OpBuilder &builder, mlir::Operation *op,
                                mlir::ValueRange operands, mlir::TypeRange resultTypes);

/// The number of elements of the largest operand or result.
double defaultFlops(mlir::Operation *op);

/// The op's inherent attributes as a kernel takes them: an enum becomes its name, a string; unit
/// attributes are left out.
mlir::DictionaryAttr inherentAttributes(mlir::Operation *op);

/// Checks the op's result types; the error says which result has which type and which is expected.
mlir::LogicalResult verifyResultTypes(mlir::Operation *op, mlir::TypeRange expected);

namespace OpTrait {

/// The op's result types are those that it infers from its operands and attributes.
template <typename ConcreteOp>
class HasInferredTypes : public mlir::OpTrait::TraitBase<ConcreteOp, HasInferredTypes> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) {
    mlir::SmallVector<mlir::Type> expected;
    if (failed(ConcreteOp::inferReturnTypes(
            op->getContext(), op->getLoc(), op->getOperands(), op->getDiscardableAttrDictionary(),
            op->getPropertiesStorage(), op->getRegions(), expected)))
      return mlir::failure();
    return verifyResultTypes(op, expected);
  }
};

// DtcInterfaces.td describes these traits.
template <typename ConcreteOp>
class MovesElements : public mlir::OpTrait::TraitBase<ConcreteOp, MovesElements> {};
template <typename ConcreteOp>
class SameElements : public mlir::OpTrait::TraitBase<ConcreteOp, SameElements> {};
template <typename ConcreteOp>
class CarriesSums : public mlir::OpTrait::TraitBase<ConcreteOp, CarriesSums> {};
template <typename ConcreteOp>
class IsView : public mlir::OpTrait::TraitBase<ConcreteOp, IsView> {};
template <typename ConcreteOp>
class MatrixProducts : public mlir::OpTrait::TraitBase<ConcreteOp, MatrixProducts> {};

} // namespace OpTrait
} // namespace dtc

#include "dialects/dtc/DtcInterfaces.h.inc"

#endif // DTC_DIALECTS_DTC_DTCINTERFACES_H
