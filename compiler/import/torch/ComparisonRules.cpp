//===- ComparisonRules.cpp - Comparisons, truth values, choices -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// dtc has no logic of truth values; they are i32 numbers of 0 and 1 where they are combined.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

/// The type in which two operands are compared or combined: that of a float if there is one.
static Type commonElement(AtenOp &op, StringRef lhs, StringRef rhs) {
  Type index = op.rewriter.getI32Type(), found = index;
  for (StringRef name : {lhs, rhs}) {
    Value value = op.operand(name);
    if (!value || !torch::isFloat(value))
      continue;
    Type element = typeOf(value).getElementType();
    if (found == index || element.getIntOrFloatBitWidth() > found.getIntOrFloatBitWidth())
      found = element;
  }
  return found == index && op.isFloat(rhs) ? Type(op.rewriter.getF32Type()) : found;
}

template <ComparePredicate predicate> static Results convertCompare(AtenOp &op) {
  auto type = RankedTensorType::get(op.resultType().getShape(), commonElement(op, "self", "other"));
  Value lhs = op.operandOrScalar("self", type), rhs = op.operandOrScalar("other", type);
  if (!lhs || !rhs)
    return {};
  return {CompareOp::create(op.rewriter, op.loc, lhs, rhs, predicate)};
}

/// A truth value from a number.
static Value isNonzero(AtenOp &op, Value x) {
  if (!x || isMaskTensor(x.getType()))
    return x;
  Value zero = op.constant(shapeOf(x), typeOf(x).getElementType(), 0);
  return CompareOp::create(op.rewriter, op.loc, x, zero, ComparePredicate::NotEqual);
}

/// With `isLogical`, operands may be any numbers; the bitwise operators have a rule for truth
/// values alone.
template <typename Op, bool isLogical> static Results convertLogic(AtenOp &op) {
  auto asNumber = [&](StringRef name) -> Value {
    Value x = op.required(name);
    if (x && !isLogical && !isMaskTensor(x.getType()))
      return op.fail("has no rule for bits of integers");
    x = op.convert(isNonzero(op, x), op.rewriter.getI32Type());
    return op.broadcastTo(x, op.resultType().getShape());
  };
  Value lhs = asNumber("self"), rhs = asNumber("other");
  return {lhs && rhs ? isNonzero(op, op.elementwise<Op>({lhs, rhs})) : Value()};
}

static Results convertNot(AtenOp &op) {
  Value x = op.required("self");
  if (x && op.name() == "bitwise_not" && !isMaskTensor(x.getType()))
    return {op.fail("has no rule for bits of integers")};
  x = op.convert(isNonzero(op, x), op.rewriter.getI32Type());
  if (!x)
    return {};
  Value zero = op.constant(shapeOf(x), typeOf(x).getElementType(), 0);
  return {CompareOp::create(op.rewriter, op.loc, x, zero, ComparePredicate::Equal)};
}

/// The choice between two tensors of the result's type. There is an op for floats; for integers the
/// choice is c x + (1 - c) y.
static Value choose(AtenOp &op, Value condition, Value onTrue, Value onFalse) {
  if (!condition || !onTrue || !onFalse)
    return {};
  if (!isMaskTensor(condition.getType()))
    return op.fail("has a condition that is no truth value");
  if (torch::isFloat(onTrue))
    return SelectOp::create(op.rewriter, op.loc, condition, onTrue, onFalse);
  Type index = op.rewriter.getI32Type();
  Value c = op.convert(condition, index);
  Value rest = op.elementwise<SubOp>({op.constant(shapeOf(c), index, 1), c});
  Value sum = op.elementwise<AddOp>({op.elementwise<MulOp>({c, op.convert(onTrue, index)}),
                                     op.elementwise<MulOp>({rest, op.convert(onFalse, index)})});
  return op.convert(sum, op.resultElement());
}

static Results convertWhere(AtenOp &op) {
  RankedTensorType type = op.resultType();
  Value condition = op.broadcastTo(op.required("condition"), type.getShape());
  Value onTrue = op.operandOrScalar("self", type), onFalse = op.operandOrScalar("other", type);
  return {choose(op, condition, onTrue, onFalse)};
}

static Results convertMaskedFill(AtenOp &op) {
  RankedTensorType type = op.resultType();
  Value condition = op.broadcastTo(op.required("mask"), type.getShape());
  Value onTrue = op.operandOrScalar("value", type), onFalse = op.operandOrScalar("self", type);
  return {choose(op, condition, onTrue, onFalse)};
}

ArrayRef<Rule> dtc::torch::comparisonRules() {
  static const Rule rules[] = {
      {"aten.__and__", convertLogic<MinimumOp, false>},
      {"aten.__or__", convertLogic<MaximumOp, false>},
      {"aten.bitwise_and", convertLogic<MinimumOp, false>},
      {"aten.bitwise_not", convertNot},
      {"aten.bitwise_or", convertLogic<MaximumOp, false>},
      {"aten.eq", convertCompare<ComparePredicate::Equal>},
      {"aten.ge", convertCompare<ComparePredicate::GreaterOrEqual>},
      {"aten.gt", convertCompare<ComparePredicate::Greater>},
      {"aten.le", convertCompare<ComparePredicate::LessOrEqual>},
      {"aten.logical_and", convertLogic<MinimumOp, true>},
      {"aten.logical_not", convertNot},
      {"aten.logical_or", convertLogic<MaximumOp, true>},
      {"aten.lt", convertCompare<ComparePredicate::Less>},
      {"aten.masked_fill", convertMaskedFill},
      {"aten.ne", convertCompare<ComparePredicate::NotEqual>},
      {"aten.where", convertWhere},
  };
  return rules;
}
