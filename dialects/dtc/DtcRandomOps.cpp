//===- DtcRandomOps.cpp - Random masks ------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/OpHelpers.h"

using namespace mlir;
using namespace dtc;

LogicalResult DropoutOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (!(adaptor.getRate() >= 0 && adaptor.getRate() < 1))
    return inferenceError<DropoutOp>(location, "dropout-c1", "rate is ", adaptor.getRate(),
                                     ", expected at least 0 and less than 1");
  types.push_back(adaptor.getOperand().getType());
  return expectRandomKey<DropoutOp>(location, "dropout-c2", adaptor.getKey());
}

ShardingRule DropoutOp::getShardingRule() {
  ShardingRule rule = makeEquationRule(*this, "...,K->...");
  rule.linearOperands = {{0}};
  for (unsigned dim = 0; dim < getOperand().getType().getRank(); ++dim)
    rule.randomDims.push_back({0, dim});
  return rule;
}

DictionaryAttr DropoutOp::getKernelAttributes() {
  NamedAttrList attributes;
  attributes.set("rate", getRateAttr());
  addRandomKernelAttributes(*this, getOperand().getType().getShape(), attributes);
  return attributes.getDictionary(getContext());
}

LogicalResult DropoutOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                  MutableArrayRef<Value> gradients) {
  gradients[0] = DropoutOp::create(builder, getLoc(), cotangents[0], getKey(), getRate(),
                                   getNumber(), getShapeAttr(), getShardingAttr());
  return success();
}
