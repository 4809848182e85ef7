//===- DtcNormOps.cpp - Softmax and norms over the last dimension ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/OpHelpers.h"

#include <cmath>

using namespace mlir;
using namespace dtc;

/// The labels of the constraints of expectRows.
struct RowLabels {
  StringRef rank, weights;
};

/// Checks that x has a last dimension, and gamma and beta that dimension alone.
template <typename OpT>
static LogicalResult expectRows(std::optional<Location> location, const RowLabels &labels, Value x,
                                ArrayRef<std::pair<StringRef, Value>> weights) {
  RankedTensorType type = getTensorType(x);
  if (type.getRank() == 0)
    return inferenceError<OpT>(location, labels.rank, "x has type ", type,
                               ", expected rank 1 or more");
  for (auto [name, weight] : weights)
    if (failed(expectType<OpT>(location, labels.weights, name, weight,
                               withShape(type, type.getShape().back()))))
      return failure();
  return success();
}

template <typename OpT>
static LogicalResult expectEpsilon(std::optional<Location> location, StringRef label, double eps) {
  if (std::isfinite(eps) && eps >= 0)
    return success();
  return inferenceError<OpT>(location, label, "eps is ", eps,
                             ", expected a finite number that is not negative");
}

//===----------------------------------------------------------------------===//
// SoftmaxOp, SoftmaxGradOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyScale(Operation *op, StringRef label, double scale) {
  if (std::isfinite(scale))
    return success();
  return violates(op, label) << "scale is " << scale << ", expected a finite number";
}

/// The op's attributes without those that have their defaults.
static DictionaryAttr getSoftmaxKernelAttributes(Operation *op) {
  NamedAttrList attributes(inherentAttributes(op));
  if (auto causal = dyn_cast_or_null<BoolAttr>(attributes.get("causal"));
      causal && !causal.getValue())
    attributes.erase("causal");
  if (auto scale = dyn_cast_or_null<FloatAttr>(attributes.get("scale"));
      scale && scale.getValueAsDouble() == 1)
    attributes.erase("scale");
  return attributes.getDictionary(op->getContext());
}

LogicalResult SoftmaxOp::verify() {
  RankedTensorType type = getType();
  if (type.getRank() == 0)
    return violates(*this, "softmax-c1")
           << "operand has type " << type << ", expected rank 1 or more";
  if (getCausal() && type.getRank() < 2)
    return violates(*this, "softmax-c2")
           << "is causal and its operand has type " << type
           << ", expected rank 2 or more: rows, and the columns that they see";
  if (getCausal() && type.getShape().end()[-2] > type.getShape().back())
    return violates(*this, "softmax-c3")
           << "is causal and its operand has " << type.getShape().end()[-2] << " rows and "
           << type.getShape().back()
           << " columns, expected no more rows than columns; the first rows would "
              "see none";
  return verifyScale(*this, "softmax-c4", getScale());
}

ShardingRule SoftmaxOp::getShardingRule() {
  return makeEquationRule(*this, getCausal() ? "...MN->...MN" : "...N->...N");
}

DictionaryAttr SoftmaxOp::getKernelAttributes() { return getSoftmaxKernelAttributes(*this); }

/// The mask of a column depends on its number, and a shard of the simpler ops does not know it: a
/// causal softmax stays whole.
FailureOr<SmallVector<Value>> SoftmaxOp::decompose(OpBuilder &builder) {
  if (getCausal())
    return failure();
  ValueBuilder b(builder, getLoc());
  Value x = b.widen(getOperand());
  if (getScale() != 1)
    x = b.scale(x, getScale());
  Value max = b.broadcastLeading(b.reduceLast(ReductionKind::Max, x), x);
  Value exp = b.create<ExpOp>(b.sub(x, max));
  Value sum = b.broadcastLeading(b.reduceLast(ReductionKind::Sum, exp), x);
  return SmallVector<Value>{b.convertLike(b.div(exp, sum), getOperand())};
}

LogicalResult SoftmaxOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                  MutableArrayRef<Value> gradients) {
  gradients[0] =
      SoftmaxGradOp::create(builder, getLoc(), getResult(), cotangents[0], getScaleAttr());
  return success();
}

LogicalResult SoftmaxGradOp::verify() {
  if (getType().getRank() == 0)
    return violates(*this, "softmax_grad-c1")
           << "operands have type " << getType() << ", expected rank 1 or more";
  return verifyScale(*this, "softmax_grad-c2", getScale());
}

ShardingRule SoftmaxGradOp::getShardingRule() {
  ShardingRule rule = makeEquationRule(*this, "...N,...N->...N");
  rule.linearOperands = {{1}};
  return rule;
}

DictionaryAttr SoftmaxGradOp::getKernelAttributes() { return getSoftmaxKernelAttributes(*this); }

FailureOr<SmallVector<Value>> SoftmaxGradOp::decompose(OpBuilder &builder) {
  ValueBuilder b(builder, getLoc());
  Value y = b.widen(getY());
  Value dy = b.widen(getDy());
  Value sum = b.reduceLast(ReductionKind::Sum, b.mul(y, dy));
  Value dx = b.mul(y, b.sub(dy, b.broadcastLeading(sum, dy)));
  if (getScale() != 1)
    dx = b.scale(dx, getScale());
  return SmallVector<Value>{b.convertLike(dx, getY())};
}

//===----------------------------------------------------------------------===//
// LayerNormOp
//===----------------------------------------------------------------------===//

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(
          expectRows<LayerNormOp>(location, {"layer_norm-c1", "layer_norm-c2"}, adaptor.getX(),
                                  {{"gamma", adaptor.getGamma()}, {"beta", adaptor.getBeta()}})) ||
      failed(expectEpsilon<LayerNormOp>(location, "layer_norm-c3", adaptor.getEps())))
    return failure();
  RankedTensorType x = getTensorType(adaptor.getX());
  RankedTensorType statistic = dropLastDim(getWideTensor(x));
  types.append({x, statistic, statistic});
  return success();
}

ShardingRule LayerNormOp::getShardingRule() {
  return makeEquationRule(*this, "...N,N,N->...N,...,...");
}

FailureOr<SmallVector<Value>> LayerNormOp::decompose(OpBuilder &builder) {
  ValueBuilder b(builder, getLoc());
  Value x = b.widen(getX());
  Value gamma = b.widen(getGamma());
  Value beta = b.widen(getBeta());
  Value mean = b.meanLast(x);
  Value centered = b.sub(x, b.broadcastLeading(mean, x));
  Value variance = b.meanLast(b.mul(centered, centered));
  Value rstd = b.create<RsqrtOp>(b.add(variance, b.splat(variance, getEps())));
  Value normalized = b.mul(centered, b.broadcastLeading(rstd, x));
  Value scaled = b.mul(normalized, b.broadcastTrailing(gamma, x));
  Value y = b.add(scaled, b.broadcastTrailing(beta, x));
  return SmallVector<Value>{b.convertLike(y, getX()), mean, rstd};
}

LogicalResult LayerNormOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                    MutableArrayRef<Value> gradients) {
  if (cotangents[1] || cotangents[2])
    // No constraint: the op is valid, but has no such gradient.
    return emitOpError() << "a gradient by mean or rstd was asked for, expected one by y alone";
  auto grad = LayerNormGradOp::create(builder, getLoc(), getX(), getGamma(), getMean(), getRstd(),
                                      cotangents[0]);
  llvm::copy(grad.getResults(), gradients.begin());
  return success();
}

//===----------------------------------------------------------------------===//
// LayerNormGradOp
//===----------------------------------------------------------------------===//

LogicalResult LayerNormGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                Adaptor adaptor, SmallVectorImpl<Type> &types) {
  using Op = LayerNormGradOp;
  if (failed(expectRows<Op>(location, {"layer_norm_grad-c1", "layer_norm_grad-c2"}, adaptor.getX(),
                            {{"gamma", adaptor.getGamma()}})))
    return failure();
  RankedTensorType x = getTensorType(adaptor.getX());
  RankedTensorType statistic = dropLastDim(getWideTensor(x));
  if (failed(
          expectType<Op>(location, "layer_norm_grad-c3", "mean", adaptor.getMean(), statistic)) ||
      failed(
          expectType<Op>(location, "layer_norm_grad-c3", "rstd", adaptor.getRstd(), statistic)) ||
      failed(expectType<Op>(location, "layer_norm_grad-c4", "dy", adaptor.getDy(), x)))
    return failure();
  RankedTensorType sum = getWideTensor(getTensorType(adaptor.getGamma()));
  types.append({x, sum, sum});
  return success();
}

ShardingRule LayerNormGradOp::getShardingRule() {
  ShardingRule rule = makeEquationRule(*this, "...N,N,...,...,...N->...N,N,N");
  rule.linearOperands = {{4}};
  return rule;
}

FailureOr<SmallVector<Value>> LayerNormGradOp::decompose(OpBuilder &builder) {
  ValueBuilder b(builder, getLoc());
  Value x = b.widen(getX());
  Value dy = b.widen(getDy());
  Value gamma = b.widen(getGamma());
  Value rstd = b.broadcastLeading(getRstd(), x);
  Value normalized = b.mul(b.sub(x, b.broadcastLeading(getMean(), x)), rstd);
  Value scaled = b.mul(dy, b.broadcastTrailing(gamma, x));
  Value mean = b.broadcastLeading(b.meanLast(scaled), x);
  Value projection = b.broadcastLeading(b.meanLast(b.mul(scaled, normalized)), x);
  Value parallel = b.mul(normalized, projection);
  Value dx = b.mul(rstd, b.sub(b.sub(scaled, mean), parallel));
  dx = b.convertLike(dx, getX());
  Value dgamma = b.sumLeading(b.mul(dy, normalized));
  return SmallVector<Value>{dx, dgamma, b.sumLeading(dy)};
}

//===----------------------------------------------------------------------===//
// RmsNormOp
//===----------------------------------------------------------------------===//

LogicalResult RmsNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(expectRows<RmsNormOp>(location, {"rms_norm-c1", "rms_norm-c2"}, adaptor.getX(),
                                   {{"gamma", adaptor.getGamma()}})) ||
      failed(expectEpsilon<RmsNormOp>(location, "rms_norm-c3", adaptor.getEps())))
    return failure();
  RankedTensorType x = getTensorType(adaptor.getX());
  types.append({x, dropLastDim(getWideTensor(x))});
  return success();
}

ShardingRule RmsNormOp::getShardingRule() { return makeEquationRule(*this, "...N,N->...N,..."); }

FailureOr<SmallVector<Value>> RmsNormOp::decompose(OpBuilder &builder) {
  ValueBuilder b(builder, getLoc());
  Value x = b.widen(getX());
  Value gamma = b.widen(getGamma());
  Value square = b.meanLast(b.mul(x, x));
  Value rstd = b.create<RsqrtOp>(b.add(square, b.splat(square, getEps())));
  Value normalized = b.mul(x, b.broadcastLeading(rstd, x));
  Value y = b.mul(normalized, b.broadcastTrailing(gamma, x));
  return SmallVector<Value>{b.convertLike(y, getX()), rstd};
}

LogicalResult RmsNormOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                  MutableArrayRef<Value> gradients) {
  if (cotangents[1])
    // No constraint: the op is valid, but has no such gradient.
    return emitOpError() << "a gradient by rstd was asked for, expected one by y alone";
  auto grad =
      RmsNormGradOp::create(builder, getLoc(), getX(), getGamma(), getRstd(), cotangents[0]);
  llvm::copy(grad.getResults(), gradients.begin());
  return success();
}

//===----------------------------------------------------------------------===//
// RmsNormGradOp
//===----------------------------------------------------------------------===//

LogicalResult RmsNormGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                              Adaptor adaptor, SmallVectorImpl<Type> &types) {
  using Op = RmsNormGradOp;
  if (failed(expectRows<Op>(location, {"rms_norm_grad-c1", "rms_norm_grad-c2"}, adaptor.getX(),
                            {{"gamma", adaptor.getGamma()}})))
    return failure();
  RankedTensorType x = getTensorType(adaptor.getX());
  if (failed(expectType<Op>(location, "rms_norm_grad-c3", "rstd", adaptor.getRstd(),
                            dropLastDim(getWideTensor(x)))) ||
      failed(expectType<Op>(location, "rms_norm_grad-c4", "dy", adaptor.getDy(), x)))
    return failure();
  types.append({x, getWideTensor(getTensorType(adaptor.getGamma()))});
  return success();
}

ShardingRule RmsNormGradOp::getShardingRule() {
  ShardingRule rule = makeEquationRule(*this, "...N,N,...,...N->...N,N");
  rule.linearOperands = {{3}};
  return rule;
}

FailureOr<SmallVector<Value>> RmsNormGradOp::decompose(OpBuilder &builder) {
  ValueBuilder b(builder, getLoc());
  Value x = b.widen(getX());
  Value dy = b.widen(getDy());
  Value gamma = b.widen(getGamma());
  Value rstd = b.broadcastLeading(getRstd(), x);
  Value normalized = b.mul(x, rstd);
  Value scaled = b.mul(dy, b.broadcastTrailing(gamma, x));
  Value projection = b.broadcastLeading(b.meanLast(b.mul(scaled, normalized)), x);
  Value dx = b.mul(rstd, b.sub(scaled, b.mul(normalized, projection)));
  dx = b.convertLike(dx, getX());
  return SmallVector<Value>{dx, b.sumLeading(b.mul(dy, normalized))};
}
