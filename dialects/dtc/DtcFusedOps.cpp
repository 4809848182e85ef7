//===- DtcFusedOps.cpp - Where a fused kernel matters ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/OpHelpers.h"

#include <cmath>

using namespace mlir;
using namespace dtc;

//===----------------------------------------------------------------------===//
// RotaryOp
//===----------------------------------------------------------------------===//

LogicalResult RotaryOp::verify() {
  if (getType().getRank() != 4 || getType().getDimSize(3) % 2 != 0)
    return emitOpError() << "operand has type " << getType()
                         << ", expected rank 4 and an even last dimension";
  if (!std::isfinite(getTheta()) || getTheta() <= 0)
    return emitOpError() << "theta is " << getTheta() << ", expected a finite positive number";
  return success();
}

ShardingRule RotaryOp::getShardingRule() {
  ShardingRule rule = makeEquationRule(*this, "bShD->bShD");
  rule.linearOperands = {{0}};
  return rule;
}

/// A rotation's transpose is its inverse.
LogicalResult RotaryOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                 MutableArrayRef<Value> gradients) {
  gradients[0] = RotaryOp::create(builder, getLoc(), cotangents[0], getTheta(), !getInverse());
  return success();
}

//===----------------------------------------------------------------------===//
// AttentionOp, AttentionGradOp
//===----------------------------------------------------------------------===//

/// Checks the operands that attention and its gradient share.
template <typename OpT>
static LogicalResult expectAttention(std::optional<Location> location,
                                     typename OpT::Adaptor adaptor) {
  RankedTensorType q = getTensorType(adaptor.getQ()), k = getTensorType(adaptor.getK());
  if (q.getRank() != 4)
    return inferenceError<OpT>(location, "q has type ", q, ", expected rank 4");
  if (k.getRank() != 4 || k.getDimSize(0) != q.getDimSize(0) ||
      k.getDimSize(3) != q.getDimSize(3) || k.getElementType() != q.getElementType())
    return inferenceError<OpT>(location, "k has type ", k, ", expected tensor<", q.getDimSize(0),
                               "xtxgx", q.getDimSize(3), "x", q.getElementType(),
                               "> for some t and g");
  if (q.getDimSize(2) % k.getDimSize(2) != 0)
    return inferenceError<OpT>(location, "k has ", k.getDimSize(2),
                               " heads, expected a divisor of the ", q.getDimSize(2), " of q");
  if (failed(expectType<OpT>(location, "v", adaptor.getV(), k)))
    return failure();
  if (adaptor.getCausal() && k.getDimSize(1) < q.getDimSize(1))
    return inferenceError<OpT>(location, "causal with ", q.getDimSize(1), " queries and ",
                               k.getDimSize(1), " keys, expected no more queries than keys");
  if (!std::isfinite(adaptor.getScale()))
    return inferenceError<OpT>(location, "scale is ", adaptor.getScale(),
                               ", expected a finite number");
  return success();
}

/// The type of lse, [b,h,s], for q of [b,s,h,d].
static RankedTensorType getLseType(RankedTensorType q) {
  return withShape(q, {q.getDimSize(0), q.getDimSize(2), q.getDimSize(1)});
}

/// The two products q k^T and p v of attention: 2 b h s t d each, half of it if causal.
static double getAttentionFlops(RankedTensorType q, RankedTensorType k, bool causal) {
  double flops =
      4.0 * static_cast<double>(q.getNumElements()) * static_cast<double>(k.getDimSize(1));
  return causal ? flops / 2 : flops;
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(expectAttention<AttentionOp>(location, adaptor)))
    return failure();
  RankedTensorType q = getTensorType(adaptor.getQ());
  types.append({q, getLseType(q)});
  return success();
}

ShardingRule AttentionOp::getShardingRule() {
  return makeEquationRule(*this, "bS(gr)D,bTgD,bTgD->bS(gr)D,b(gr)S");
}

double AttentionOp::getFlops() {
  return getAttentionFlops(getQ().getType(), getK().getType(), getCausal());
}

LogicalResult AttentionOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                    MutableArrayRef<Value> gradients) {
  if (cotangents[1])
    return emitOpError() << "a gradient by lse was asked for, expected one by out alone";
  auto grad = AttentionGradOp::create(builder, getLoc(), getQ(), getK(), getV(), getOut(), getLse(),
                                      cotangents[0], getCausal(), getScale());
  llvm::copy(grad.getResults(), gradients.begin());
  return success();
}

LogicalResult AttentionGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                Adaptor adaptor, SmallVectorImpl<Type> &types) {
  using Op = AttentionGradOp;
  if (failed(expectAttention<Op>(location, adaptor)))
    return failure();
  RankedTensorType q = getTensorType(adaptor.getQ()), k = getTensorType(adaptor.getK());
  if (failed(expectType<Op>(location, "out", adaptor.getOut(), q)) ||
      failed(expectType<Op>(location, "lse", adaptor.getLse(), getLseType(q))) ||
      failed(expectType<Op>(location, "dout", adaptor.getDout(), q)))
    return failure();
  types.append({q, k, k});
  return success();
}

ShardingRule AttentionGradOp::getShardingRule() {
  ShardingRule rule =
      makeEquationRule(*this, "bS(gr)D,bTgD,bTgD,bS(gr)D,b(gr)S,bS(gr)D->bS(gr)D,bTgD,bTgD");
  rule.linearOperands = {{5}};
  return rule;
}

double AttentionGradOp::getFlops() {
  // Five products, of which one computes the scores again.
  return 2.5 * getAttentionFlops(getQ().getType(), getK().getType(), getCausal());
}

//===----------------------------------------------------------------------===//
// CrossEntropyOp
//===----------------------------------------------------------------------===//

/// Checks that the labels have the shape of the logits without its last dimension.
template <typename OpT>
static LogicalResult expectLabels(std::optional<Location> location, Value logits, Value labels) {
  RankedTensorType type = getTensorType(logits);
  if (type.getRank() > 0 && dropLastDim(type).getShape() == getTensorType(labels).getShape())
    return success();
  return inferenceError<OpT>(location, "logits have type ", type,
                             ", expected the dimensions of the labels, ", labels.getType(),
                             ", and one more");
}

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                               Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(expectLabels<CrossEntropyOp>(location, adaptor.getLogits(), adaptor.getLabels())))
    return failure();
  types.append(2, dropLastDim(getTensorType(adaptor.getLogits())));
  return success();
}

ShardingRule CrossEntropyOp::getShardingRule() {
  return makeEquationRule(*this, "...V,...->...,...");
}

FailureOr<SmallVector<Value>> CrossEntropyOp::decompose(OpBuilder &builder) {
  ValueBuilder b(builder, getLoc());
  Value x = getLogits();
  Value max = b.reduceLast(ReduceKind::Max, x);
  Value exp = b.create<ExpOp>(b.sub(x, b.broadcastLeading(max, x)));
  Value lse = b.add(b.create<LogOp>(b.reduceLast(ReduceKind::Sum, exp)), max);
  return SmallVector<Value>{b.sub(lse, b.create<PickOp>(x, getLabels())), lse};
}

LogicalResult CrossEntropyOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                       MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  Value x = getLogits();
  if (cotangents[0])
    gradients[0] = b.create<CrossEntropyGradOp>(x, getLabels(), getLse(), cotangents[0]);
  if (cotangents[1]) {
    // The gradient of lse is the softmax.
    Value softmax = b.create<ExpOp>(b.sub(x, b.broadcastLeading(getLse(), x)));
    Value byLse = b.mul(b.broadcastLeading(cotangents[1], x), softmax);
    gradients[0] = gradients[0] ? b.add(gradients[0], byLse) : byLse;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// CrossEntropyGradOp
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                   Adaptor adaptor, SmallVectorImpl<Type> &types) {
  using Op = CrossEntropyGradOp;
  if (failed(expectLabels<Op>(location, adaptor.getLogits(), adaptor.getLabels())))
    return failure();
  RankedTensorType logits = getTensorType(adaptor.getLogits());
  if (failed(expectType<Op>(location, "lse", adaptor.getLse(), dropLastDim(logits))) ||
      failed(expectType<Op>(location, "dloss", adaptor.getDloss(), dropLastDim(logits))))
    return failure();
  types.push_back(logits);
  return success();
}

ShardingRule CrossEntropyGradOp::getShardingRule() {
  ShardingRule rule = makeEquationRule(*this, "...v,...,...,...->...v");
  rule.linearOperands = {{3}};
  rule.indexedFactors = {{/*operand=*/1, /*factor=*/rule.operands[0].back().front()}};
  return rule;
}
