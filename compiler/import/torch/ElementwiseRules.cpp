//===- ElementwiseRules.cpp - Arithmetic and activations ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Operands are converted to the element type of the result, which PyTorch's type promotion chose,
// and broadcast to its shape.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"

#include <fmt/format.h>

#include <cmath>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

/// The operand `name` as floats; PyTorch gives integers the result's type.
static Value floatOperand(AtenOp &op, StringRef name = "self") {
  Value x = op.convert(op.required(name), op.resultElement());
  return x && !torch::isFloat(x) ? op.fail("gives integers, for which there is no rule") : x;
}

template <typename Op> static Results convertUnary(AtenOp &op) {
  Value x = floatOperand(op);
  return {x ? op.elementwise<Op>(x) : x};
}

template <typename Op> static Results convertBinary(AtenOp &op) {
  RankedTensorType type = op.resultType();
  Value lhs = op.operandOrScalar("self", type), rhs = op.operandOrScalar("other", type);
  if (!lhs || !rhs)
    return {};
  if (!isNumericTensor(type) || (std::is_same_v<Op, DivOp> && !isFloatTensor(type)))
    return {op.fail("has no rule for elements of this type")};
  return {op.elementwise<Op>({lhs, rhs})};
}

/// self + alpha other; `isReversed` is of rsub, other - alpha self.
template <typename Op, bool isReversed = false> static Results convertSum(AtenOp &op) {
  RankedTensorType type = op.resultType();
  if (!isNumericTensor(type))
    return {op.fail("has no rule for truth values")};
  Value lhs = op.operandOrScalar(isReversed ? "other" : "self", type);
  Value rhs = op.operandOrScalar(isReversed ? "self" : "other", type);
  // x + 0, as models write positions that begin later in other cases.
  if (!isReversed && lhs && op.number("other") == 0.0)
    return {lhs};
  rhs = op.scale(rhs, op.number("alpha").value_or(1));
  return {lhs && rhs ? op.elementwise<Op>({lhs, rhs}) : Value()};
}

static Results convertDiv(AtenOp &op) {
  if (!op.string("rounding_mode").empty())
    return {op.fail("rounds its result, for which there is no rule")};
  std::optional<double> divisor = op.number("other");
  if (divisor && *divisor != 0 && isFloatTensor(op.resultType()))
    return {op.scale(op.operandOrScalar("self", op.resultType()), 1 / *divisor)};
  return convertBinary<DivOp>(op);
}

static Results convertMul(AtenOp &op) {
  std::optional<double> factor = op.number("other");
  if (factor && isNumericTensor(op.resultType()))
    return {op.scale(op.operandOrScalar("self", op.resultType()), *factor)};
  return convertBinary<MulOp>(op);
}

static Results convertNeg(AtenOp &op) {
  Value x = op.required("self");
  if (!x || torch::isFloat(x))
    return {x ? op.elementwise<NegOp>(x) : x};
  if (!isIndexTensor(x.getType()))
    return {op.fail("has no rule for truth values")};
  return {op.elementwise<SubOp>({op.constant(shapeOf(x), op.resultElement(), 0), x})};
}

static Results convertSquare(AtenOp &op) {
  Value x = floatOperand(op);
  return {x ? op.elementwise<MulOp>({x, x}) : x};
}

static Results convertReciprocal(AtenOp &op) {
  Value x = floatOperand(op);
  if (!x)
    return {};
  return {op.elementwise<DivOp>({op.constant(shapeOf(x), op.resultElement(), 1), x})};
}

/// Products for the small whole exponents that models have, roots for halves.
static Results convertPow(AtenOp &op) {
  if (!op.operand("self") && op.number("self"))
    return {op.fail("has a base that is a number; write it as exp(exponent * log(base))")};
  Value x = floatOperand(op);
  std::optional<double> exponent = op.number("exponent");
  if (!x)
    return {};
  if (!exponent)
    return {op.fail("has an exponent that is a tensor; write it as exp(exponent * log(x))")};
  double whole = std::floor(std::abs(*exponent));
  double half = std::abs(*exponent) - whole;
  if ((half != 0 && half != 0.5) || whole > 8)
    return {
        op.fail(fmt::format("has the exponent {}, expected a multiple of 0.5 from -8 to 8; write "
                            "it as exp(exponent * log(x))",
                            *exponent))};
  Value product = half != 0 ? op.elementwise<SqrtOp>(x) : Value();
  for (int i = 0; i < int(whole); ++i)
    product = product ? op.elementwise<MulOp>({product, x}) : x;
  Value one = op.constant(shapeOf(x), op.resultElement(), 1);
  if (!product)
    return {one};
  return {*exponent < 0 ? op.elementwise<DivOp>({one, product}) : product};
}

/// x, and the bound `name` where x is beyond it. At a bound that is a number PyTorch gives x no
/// gradient; where x equals a bound that is a tensor, both have half of it, as those of a maximum
/// do.
static Value limit(AtenOp &op, Value x, StringRef name, bool isLower) {
  if (!x || (!op.operand(name) && !op.number(name)))
    return x;
  Value bound = op.operandOrScalar(name, op.resultType());
  if (!bound)
    return {};
  if (op.operand(name) || !torch::isFloat(x))
    return isLower ? op.elementwise<MaximumOp>({x, bound}) : op.elementwise<MinimumOp>({x, bound});
  auto beyond = isLower ? ComparePredicate::LessOrEqual : ComparePredicate::GreaterOrEqual;
  Value isBeyond = CompareOp::create(op.rewriter, op.loc, x, bound, beyond);
  return SelectOp::create(op.rewriter, op.loc, isBeyond, bound, x);
}

static Results convertClamp(AtenOp &op) {
  RankedTensorType type = op.resultType();
  Value x = op.operandOrScalar("self", type);
  if (!isNumericTensor(type))
    return {op.fail("has no rule for truth values")};
  x = limit(op, x, "min", /*isLower=*/true);
  return {limit(op, x, "max", /*isLower=*/false)};
}

static Results convertGelu(AtenOp &op) {
  Value x = floatOperand(op);
  if (!x)
    return {};
  StringRef form = op.string("approximate");
  if (form != "tanh" && form != "none" && !form.empty())
    return {op.fail("has the approximation \"" + form + "\", expected none or tanh")};
  auto kind = form == "tanh" ? GeluApproximation::Tanh : GeluApproximation::None;
  return {GeluOp::create(op.rewriter, op.loc, x, kind)};
}

/// Those of GELU were recognized (RecognizeActivations.cpp).
static Results convertErf(AtenOp &op) {
  return {op.fail("has a rule only in GELU, 0.5 x (1 + erf(x / sqrt(2)))")};
}

/// A mask of where x is more than zero; at zero PyTorch takes the derivative from below.
static Value isAbove(AtenOp &op, Value x) {
  return CompareOp::create(op.rewriter, op.loc, x, op.constant(shapeOf(x), op.resultElement(), 0),
                           ComparePredicate::Greater);
}

/// x above zero, slope x elsewhere.
static Results convertLeakyRelu(AtenOp &op) {
  Value x = floatOperand(op);
  if (!x)
    return {};
  Value below = op.scale(x, op.number("negative_slope").value_or(0.01));
  return {SelectOp::create(op.rewriter, op.loc, isAbove(op, x), x, below)};
}

/// scale relu(x) + scale alpha (e^(input_scale min(x, 0)) - 1).
static Results convertElu(AtenOp &op) {
  Value x = floatOperand(op);
  if (!x)
    return {};
  double scale = op.number("scale").value_or(1);
  Value zero = op.constant(shapeOf(x), op.resultElement(), 0);
  Value below = SelectOp::create(op.rewriter, op.loc, isAbove(op, x), zero, x);
  below = op.elementwise<ExpOp>(op.scale(below, op.number("input_scale").value_or(1)));
  below = op.elementwise<SubOp>({below, op.constant(shapeOf(x), op.resultElement(), 1)});
  below = op.scale(below, scale * op.number("alpha").value_or(1));
  return {op.elementwise<AddOp>({op.scale(op.elementwise<ReluOp>(x), scale), below})};
}

static Results convertSoftplus(AtenOp &op) {
  // Beyond PyTorch's threshold of 20 the two differ by less than 3e-9.
  if (op.number("beta").value_or(1) != 1 || op.number("threshold").value_or(20) < 20)
    return {op.fail("has another beta than 1 or a threshold below 20, for which there is no rule")};
  return convertUnary<SoftplusOp>(op);
}

/// A change of the element type, or of properties without meaning for a compiler: device and
/// strides.
static Results convertTo(AtenOp &op) {
  return {op.convert(op.required("self"), op.resultElement())};
}

/// The same value. Names of dimensions, by which --shard splits them, are put on what gives it.
static Results convertAlias(AtenOp &op) {
  Value x = op.required("self");
  auto names = op.op->getAttrOfType<ArrayAttr>("axes");
  if (!x || !names)
    return convertTo(op);
  if (names.size() != shapeOf(x).size() || !llvm::all_of(names, llvm::IsaPred<StringAttr>))
    return {op.fail("names other dimensions than its operand has")};
  takeRequests(x, op.op, names, op.conversion);
  return {x};
}

static Results convertDropout(AtenOp &op) {
  Value x = op.required("input");
  if (!op.flag("train"))
    return {x};
  return {op.dropout(x, op.number("p").value_or(0.5))};
}

ArrayRef<Rule> dtc::torch::elementwiseRules() {
  static const Rule rules[] = {
      {"aten._to_copy", convertTo},
      {"aten.abs", convertUnary<AbsOp>},
      {"aten.add", convertSum<AddOp>},
      {"aten.alias", convertAlias},
      {"aten.clamp", convertClamp},
      {"aten.clamp_max", convertClamp},
      {"aten.clamp_min", convertClamp},
      {"aten.clone", convertTo},
      {"aten.contiguous", convertTo},
      {"aten.div", convertDiv},
      {"aten.dropout", convertDropout},
      {"aten.elu", convertElu},
      {"aten.erf", convertErf},
      {"aten.exp", convertUnary<ExpOp>},
      {"aten.gelu", convertGelu},
      {"aten.leaky_relu", convertLeakyRelu},
      {"aten.log", convertUnary<LogOp>},
      {"aten.maximum", convertBinary<MaximumOp>},
      {"aten.minimum", convertBinary<MinimumOp>},
      {"aten.mul", convertMul},
      {"aten.neg", convertNeg},
      {"aten.pow", convertPow},
      {"aten.reciprocal", convertReciprocal},
      {"aten.relu", convertUnary<ReluOp>},
      {"aten.rsqrt", convertUnary<RsqrtOp>},
      {"aten.rsub", convertSum<SubOp, true>},
      {"aten.sigmoid", convertUnary<SigmoidOp>},
      {"aten.silu", convertUnary<SiluOp>},
      {"aten.softplus", convertSoftplus},
      {"aten.sqrt", convertUnary<SqrtOp>},
      {"aten.square", convertSquare},
      {"aten.sub", convertSum<SubOp>},
      {"aten.tanh", convertUnary<TanhOp>},
      {"aten.to", convertTo},
  };
  return rules;
}
