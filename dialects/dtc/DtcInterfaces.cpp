//===- DtcInterfaces.cpp - Interfaces of ops ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/DtcInterfaces.h"
#include "dialects/dtc/DtcDialect.h"

#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;

#include "dialects/dtc/DtcInterfaces.cpp.inc"

Operation *dtc::cloneWithTypes(OpBuilder &builder, Operation *op, ValueRange operands,
                               TypeRange resultTypes) {
  OperationState state(op->getLoc(), op->getName(), operands, resultTypes);
  for (NamedAttribute attribute : op->getAttrs())
    if (attribute.getName() != "dist.sharding")
      state.attributes.append(attribute);
  return builder.create(state);
}

double dtc::defaultFlops(Operation *op) {
  double largest = 0;
  auto visit = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      largest = std::max(largest, static_cast<double>(tensor.getNumElements()));
  };
  llvm::for_each(op->getOperandTypes(), visit);
  llvm::for_each(op->getResultTypes(), visit);
  return largest;
}

DictionaryAttr dtc::inherentAttributes(Operation *op) {
  MLIRContext *context = op->getContext();
  NamedAttrList attributes;
  for (StringAttr name : op->getName().getAttributeNames()) {
    Attribute value = op->getInherentAttr(name).value_or(Attribute());
    // The types show the effect of a unit attribute.
    if (!value || isa<UnitAttr>(value))
      continue;
    auto string = [&](StringRef text) -> Attribute { return StringAttr::get(context, text); };
    value = llvm::TypeSwitch<Attribute, Attribute>(value)
                .Case([&](ReduceKindAttr kind) { return string(dtc::name(kind.getValue())); })
                .Case([&](ComparePredicateAttr predicate) {
                  return string(stringifyEnum(predicate.getValue()));
                })
                .Case([&](GeluApproximationAttr approximation) {
                  return string(stringifyEnum(approximation.getValue()));
                })
                .Default([](Attribute other) { return other; });
    attributes.append(name, value);
  }
  return attributes.getDictionary(context);
}

LogicalResult dtc::verifyResultTypes(Operation *op, TypeRange expected) {
  for (auto [index, found, wanted] : llvm::enumerate(op->getResultTypes(), expected))
    if (found != wanted)
      // No constraint: the trait HasInferredTypes, of every op that infers its types.
      return op->emitOpError() << "result #" << index << " has type " << found << ", expected "
                               << wanted;
  return success();
}
