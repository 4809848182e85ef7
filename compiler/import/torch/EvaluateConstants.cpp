//===- EvaluateConstants.cpp - ATen ops of known values -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Masks and positions are made of these: PyTorch computes them in each step, dtc once.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/KnownOp.h"

#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

static MaybeConstant evaluateFill(const KnownOp &op) {
  StringRef name = op.name();
  double value = name.contains("ones") ? 1 : 0;
  if (name.starts_with("full") || name == "scalar_tensor") {
    std::optional<double> given = op.number(name == "scalar_tensor" ? "s" : "fill_value");
    if (!given)
      return std::nullopt;
    value = *given;
  }
  return ConstantTensor::splat(op.element(), op.shape(), value);
}

static MaybeConstant evaluateArange(const KnownOp &op) {
  double start = op.number("start").value_or(0), step = op.number("step").value_or(1);
  if (op.shape().size() != 1 || op.shape()[0] > kMaxConstantElements)
    return std::nullopt;
  std::vector<double> values;
  for (int64_t i = 0; i < op.shape()[0]; ++i)
    values.push_back(rounded(start + double(i) * step, op.element()));
  return ConstantTensor(op.element(), op.shape(), std::move(values));
}

static MaybeConstant evaluateConstant(const KnownOp &op) {
  auto elements = op.op->getAttrOfType<DenseElementsAttr>("value");
  return elements && elements.getType() == op.type ? ConstantTensor::get(elements) : std::nullopt;
}

template <double (*function)(double)> static MaybeConstant evaluateUnary(const KnownOp &op) {
  MaybeConstant x = op.known("self");
  if (!x)
    return std::nullopt;
  return mapElements({*x}, op.element(), op.shape(),
                     [](ArrayRef<double> values) { return function(values[0]); });
}

static double same(double x) { return x; }
static double negate(double x) { return -x; }
static double isZero(double x) { return x == 0; }
static double reciprocal(double x) { return 1 / x; }
static double rootReciprocal(double x) { return 1 / std::sqrt(x); }

static MaybeConstant evaluateNot(const KnownOp &op) {
  return op.element().isInteger(1) ? evaluateUnary<isZero>(op) : std::nullopt;
}

template <double (*function)(double, double)>
static MaybeConstant evaluateBinary(const KnownOp &op) {
  MaybeConstant lhs = op.knownOrNumber("self");
  MaybeConstant rhs = op.knownOrNumber(op.name() == "pow" ? "exponent" : "other");
  if (!lhs || !rhs || !op.string("rounding_mode").empty())
    return std::nullopt;
  // A number beside floats is one of their type: 0.1 is equal to an f32 of 0.1.
  if (op.known("self") && !op.operand(op.name() == "pow" ? "exponent" : "other") &&
      isa<FloatType>(lhs->element))
    rhs = rhs->converted(lhs->element);
  double alpha = op.number("alpha").value_or(1);
  bool isReversed = op.name() == "rsub";
  return mapElements({*lhs, *rhs}, op.element(), op.shape(), [&](ArrayRef<double> values) {
    return isReversed ? function(values[1], alpha * values[0])
                      : function(values[0], alpha * values[1]);
  });
}

static double add(double x, double y) { return x + y; }
static double subtract(double x, double y) { return x - y; }
static double multiply(double x, double y) { return x * y; }
static double divide(double x, double y) { return x / y; }
static double larger(double x, double y) { return std::max(x, y); }
static double smaller(double x, double y) { return std::min(x, y); }
static double isEqual(double x, double y) { return x == y; }
static double isNotEqual(double x, double y) { return x != y; }
static double isLess(double x, double y) { return x < y; }
static double isLessOrEqual(double x, double y) { return x <= y; }
static double isGreater(double x, double y) { return x > y; }
static double isGreaterOrEqual(double x, double y) { return x >= y; }
static double both(double x, double y) { return x != 0 && y != 0; }
static double either(double x, double y) { return x != 0 || y != 0; }

/// `isLogical`: bitwise operators are known of truth values alone.
template <double (*function)(double, double)> static MaybeConstant evaluateBits(const KnownOp &op) {
  return op.element().isInteger(1) ? evaluateBinary<function>(op) : std::nullopt;
}

static MaybeConstant evaluateChoice(const KnownOp &op) {
  bool fills = op.name() == "masked_fill";
  MaybeConstant condition = op.knownOrNumber(fills ? "mask" : "condition");
  MaybeConstant onTrue = op.knownOrNumber(fills ? "value" : "self");
  MaybeConstant onFalse = op.knownOrNumber(fills ? "self" : "other");
  if (!condition || !onTrue || !onFalse)
    return std::nullopt;
  return mapElements({*condition, *onTrue, *onFalse}, op.element(), op.shape(),
                     [](ArrayRef<double> values) { return values[values[0] != 0 ? 1 : 2]; });
}

static const llvm::StringMap<Evaluator> &evaluators() {
  static const llvm::StringMap<Evaluator> table = {
      {"torch.constant", evaluateConstant},
      {"aten.__and__", evaluateBits<both>},
      {"aten.__or__", evaluateBits<either>},
      {"aten._to_copy", evaluateUnary<same>},
      {"aten.abs", evaluateUnary<std::fabs>},
      {"aten.add", evaluateBinary<add>},
      {"aten.alias", evaluateUnary<same>},
      {"aten.arange", evaluateArange},
      {"aten.bitwise_and", evaluateBits<both>},
      {"aten.bitwise_not", evaluateNot},
      {"aten.bitwise_or", evaluateBits<either>},
      {"aten.clone", evaluateUnary<same>},
      {"aten.contiguous", evaluateUnary<same>},
      {"aten.cos", evaluateUnary<std::cos>},
      {"aten.detach", evaluateUnary<same>},
      {"aten.div", evaluateBinary<divide>},
      {"aten.empty", evaluateFill}, // its elements say nothing
      {"aten.eq", evaluateBinary<isEqual>},
      {"aten.exp", evaluateUnary<std::exp>},
      {"aten.full", evaluateFill},
      {"aten.full_like", evaluateFill},
      {"aten.ge", evaluateBinary<isGreaterOrEqual>},
      {"aten.gt", evaluateBinary<isGreater>},
      {"aten.le", evaluateBinary<isLessOrEqual>},
      {"aten.lift_fresh_copy", evaluateUnary<same>},
      {"aten.log", evaluateUnary<std::log>},
      {"aten.logical_and", evaluateBinary<both>},
      {"aten.logical_not", evaluateUnary<isZero>},
      {"aten.logical_or", evaluateBinary<either>},
      {"aten.lt", evaluateBinary<isLess>},
      {"aten.masked_fill", evaluateChoice},
      {"aten.maximum", evaluateBinary<larger>},
      {"aten.minimum", evaluateBinary<smaller>},
      {"aten.mul", evaluateBinary<multiply>},
      {"aten.ne", evaluateBinary<isNotEqual>},
      {"aten.neg", evaluateUnary<negate>},
      {"aten.new_ones", evaluateFill},
      {"aten.new_zeros", evaluateFill},
      {"aten.ones", evaluateFill},
      {"aten.ones_like", evaluateFill},
      {"aten.pow", evaluateBinary<std::pow>},
      {"aten.reciprocal", evaluateUnary<reciprocal>},
      {"aten.rsqrt", evaluateUnary<rootReciprocal>},
      {"aten.rsub", evaluateBinary<subtract>},
      {"aten.scalar_tensor", evaluateFill},
      {"aten.sin", evaluateUnary<std::sin>},
      {"aten.sqrt", evaluateUnary<std::sqrt>},
      {"aten.sub", evaluateBinary<subtract>},
      {"aten.to", evaluateUnary<same>},
      {"aten.where", evaluateChoice},
      {"aten.zeros", evaluateFill},
      {"aten.zeros_like", evaluateFill},
  };
  return table;
}

std::optional<ConstantTensor> dtc::torch::evaluate(Operation *op, const ConstantMap &constants) {
  StringRef name = op->getName().getStringRef();
  Evaluator evaluator = evaluators().lookup(name);
  if (!evaluator)
    evaluator = findShapeEvaluator(name);
  if (!evaluator || op->getNumResults() != 1)
    return std::nullopt;
  MaybeConstant result = evaluator(KnownOp(op, constants));
  // Malformed captures may give other shapes; their ops stay, and rules report them.
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (!result || ArrayRef(result->shape) != type.getShape())
    return std::nullopt;
  return result->converted(type.getElementType());
}
