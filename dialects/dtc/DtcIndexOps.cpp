//===- DtcIndexOps.cpp - Lookups by index ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/OpHelpers.h"

using namespace mlir;
using namespace dtc;

//===----------------------------------------------------------------------===//
// EmbeddingOp
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType table = getTensorType(adaptor.getTable());
  if (table.getRank() != 2)
    return inferenceError<EmbeddingOp>(location, "embedding-c1", "table has type ", table,
                                       ", expected rank 2");
  SmallVector<int64_t> shape(getTensorType(adaptor.getIds()).getShape());
  shape.push_back(table.getDimSize(1));
  types.push_back(withShape(table, shape));
  return success();
}

ShardingRule EmbeddingOp::getShardingRule() {
  ShardingRule rule = makeEquationRule(*this, "vd,...->...d");
  rule.linearOperands = {{0}};
  rule.indexedFactors = {{/*operand=*/1, /*factor=*/rule.operands[0][0].front()}};
  return rule;
}

LogicalResult EmbeddingOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                    MutableArrayRef<Value> gradients) {
  gradients[0] = EmbeddingGradOp::create(builder, getLoc(), getWideTensor(getTable().getType()),
                                         getIds(), cotangents[0]);
  return success();
}

//===----------------------------------------------------------------------===//
// EmbeddingGradOp
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingGradOp::verify() {
  RankedTensorType dy = getDy().getType(), result = getType();
  if (dy.getRank() == 0 || dropLastDim(dy).getShape() != getIds().getType().getShape())
    return violates(*this, "embedding_grad-c1")
           << "dy has type " << dy << ", expected the dimensions of ids, " << getIds().getType()
           << ", and one more";
  Type wide = getWideType(dy.getElementType());
  if (result.getRank() != 2 || result.getDimSize(1) != dy.getShape().back() ||
      result.getElementType() != wide)
    return violates(*this, "embedding_grad-c2")
           << "result has type " << result << ", expected tensor<vx" << dy.getShape().back() << "x"
           << wide << "> for some v";
  return success();
}

ShardingRule EmbeddingGradOp::getShardingRule() {
  ShardingRule rule = makeEquationRule(*this, "...,...d->vd");
  rule.linearOperands = {{1}};
  rule.indexedFactors = {{/*operand=*/0, /*factor=*/rule.results[0][0].front()}};
  return rule;
}

//===----------------------------------------------------------------------===//
// PickOp
//===----------------------------------------------------------------------===//

LogicalResult PickOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                       Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType x = getTensorType(adaptor.getX()), ids = getTensorType(adaptor.getIds());
  if (x.getRank() == 0 || dropLastDim(x).getShape() != ids.getShape())
    return inferenceError<PickOp>(location, "pick-c1", "x has type ", x,
                                  ", expected the dimensions of ids, ", ids, ", and one more");
  types.push_back(dropLastDim(x));
  return success();
}

ShardingRule PickOp::getShardingRule() {
  ShardingRule rule = makeEquationRule(*this, "...v,...->...");
  rule.linearOperands = {{0}};
  rule.indexedFactors = {{/*operand=*/1, /*factor=*/rule.operands[0].back().front()}};
  return rule;
}

LogicalResult PickOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                               MutableArrayRef<Value> gradients) {
  gradients[0] = PickGradOp::create(builder, getLoc(), getX().getType(), getIds(), cotangents[0]);
  return success();
}

//===----------------------------------------------------------------------===//
// PickGradOp
//===----------------------------------------------------------------------===//

LogicalResult PickGradOp::verify() {
  RankedTensorType ids = getIds().getType(), dy = getDy().getType(), result = getType();
  if (dy.getShape() != ids.getShape())
    return violates(*this, "pick_grad-c1")
           << "dy has type " << dy << ", expected the shape of ids, " << ids;
  if (result.getRank() == 0 || dropLastDim(result) != dy)
    return violates(*this, "pick_grad-c2")
           << "result has type " << result << ", expected the dimensions of dy, " << dy
           << ", and one more";
  return success();
}

ShardingRule PickGradOp::getShardingRule() {
  ShardingRule rule = makeEquationRule(*this, "...,...->...v");
  rule.linearOperands = {{1}};
  rule.indexedFactors = {{/*operand=*/0, /*factor=*/rule.results[0].back().front()}};
  return rule;
}
