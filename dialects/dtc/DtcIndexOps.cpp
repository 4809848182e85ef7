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

/// Whether the dimensions of a table before the last two are those of `ids` before its last one.
static bool areSamplesOf(RankedTensorType table, RankedTensorType ids) {
  ArrayRef<int64_t> samples = table.getShape().drop_back(2);
  return samples.empty() || (ids.getRank() > static_cast<int64_t>(samples.size()) &&
                             ids.getShape().drop_back().take_back(samples.size()) == samples);
}

/// The terms of the table, of the indices and of the rows that they name, as einsums write them;
/// 'v' counts the rows of the table.
struct LookupTerms {
  std::string table, ids, rows;
};
static LookupTerms lookupTermsOf(RankedTensorType table) {
  std::string samples = StringRef("abcefghijk").take_front(table.getRank() - 2).str();
  std::string ids = samples.empty() ? "..." : "..." + samples + "n";
  return {samples + "vd", ids, ids + "d"};
}

LogicalResult EmbeddingOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType table = getTensorType(adaptor.getTable());
  RankedTensorType ids = getTensorType(adaptor.getIds());
  if (table.getRank() < 2)
    return inferenceError<EmbeddingOp>(location, "embedding-c1", "table has type ", table,
                                       ", expected rank 2 or more");
  if (!areSamplesOf(table, ids))
    return inferenceError<EmbeddingOp>(location, "embedding-c2", "table has type ", table,
                                       " and ids ", ids,
                                       ", expected the dimensions of the table before its last two "
                                       "in ids before its last one");
  SmallVector<int64_t> shape(ids.getShape());
  shape.push_back(table.getShape().back());
  types.push_back(withShape(table, shape));
  return success();
}

ShardingRule EmbeddingOp::getShardingRule() {
  RankedTensorType table = getTable().getType();
  LookupTerms terms = lookupTermsOf(table);
  ShardingRule rule = makeEquationRule(*this, terms.table + "," + terms.ids + "->" + terms.rows);
  rule.linearOperands = {{0}};
  rule.indexedFactors = {{/*operand=*/1, rule.operands[0][table.getRank() - 2].front()}};
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
  if (result.getRank() < 2 || result.getShape().back() != dy.getShape().back() ||
      result.getElementType() != wide)
    return violates(*this, "embedding_grad-c2")
           << "result has type " << result << ", expected tensor<vx" << dy.getShape().back() << "x"
           << wide << "> for some v";
  if (!areSamplesOf(result, getIds().getType()))
    return violates(*this, "embedding_grad-c3")
           << "result has type " << result << " and ids " << getIds().getType()
           << ", expected the dimensions of the result before its last two in ids before its last "
              "one";
  return success();
}

ShardingRule EmbeddingGradOp::getShardingRule() {
  LookupTerms terms = lookupTermsOf(getType());
  ShardingRule rule = makeEquationRule(*this, terms.ids + "," + terms.rows + "->" + terms.table);
  rule.linearOperands = {{1}};
  rule.indexedFactors = {{/*operand=*/0, rule.results[0][getType().getRank() - 2].front()}};
  return rule;
}

LogicalResult EmbeddingGradOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                        MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  gradients[1] = b.create<EmbeddingOp>(b.convertLike(cotangents[0], getDy()), getIds());
  return success();
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

//===----------------------------------------------------------------------===//
// TopKOp
//===----------------------------------------------------------------------===//

LogicalResult TopKOp::verify() {
  RankedTensorType type = getOperand().getType();
  if (type.getRank() == 0)
    return violates(*this, "top_k-c1")
           << "operand has type " << type << ", expected rank 1 or more";
  int64_t k = getK(), size = type.getShape().back();
  if (k < 1 || k > size)
    return violates(*this, "top_k-c2") << "k is " << k << ", expected at least 1 and at most the "
                                       << size << " elements of a row";
  return success();
}

ShardingRule TopKOp::getShardingRule() { return makeEquationRule(*this, "...N->...N"); }

//===----------------------------------------------------------------------===//
// NonzeroOp
//===----------------------------------------------------------------------===//

LogicalResult NonzeroOp::verify() {
  RankedTensorType operand = getOperand().getType(), result = getType();
  if (operand.getRank() == 0 || result.getRank() != operand.getRank() ||
      dropLastDim(result).getShape() != dropLastDim(operand).getShape() ||
      result.getShape().back() < 1 || result.getShape().back() > operand.getShape().back())
    return violates(*this, "nonzero-c1")
           << "operand has type " << operand << " and the result " << result
           << ", expected the same dimensions but the last, which is at least 1 and at most that "
              "of "
              "the operand";
  return success();
}

ShardingRule NonzeroOp::getShardingRule() { return makeEquationRule(*this, "...N->...C"); }
