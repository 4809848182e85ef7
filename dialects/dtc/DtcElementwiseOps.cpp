//===- DtcElementwiseOps.cpp - Element by element -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The sharding rules and in-place pairs are in DtcElementwiseOps.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/OpHelpers.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace dtc;

//===----------------------------------------------------------------------===//
// ConvertOp
//===----------------------------------------------------------------------===//

void ConvertOp::build(OpBuilder &builder, OperationState &state, Value operand, Type elementType) {
  build(builder, state, TypeRange{getTensorType(operand).clone(elementType)}, operand);
}

/// Whether both are float tensors. Gradients pass through conversions between these.
static bool isFloatConversion(ConvertOp op) {
  return isFloatTensor(op.getOperand().getType()) && isFloatTensor(op.getResult().getType());
}

ShardingRule ConvertOp::getShardingRule() {
  ShardingRule rule = makeElementwiseRule(*this);
  // Partial sums are rounded to 16 bits once they are complete.
  if (isFloatConversion(*this) && isWideTensor(getResult().getType()))
    rule.linearOperands = {{0}};
  return rule;
}

//===----------------------------------------------------------------------===//
// Folders
//===----------------------------------------------------------------------===//

OpFoldResult NegOp::fold(FoldAdaptor) {
  auto inner = getOperand().getDefiningOp<NegOp>();
  if (!inner || isAnnotated(inner) || isAnnotated(*this))
    return {};
  return inner.getOperand();
}

OpFoldResult ConvertOp::fold(FoldAdaptor) {
  return getOperand().getType() == getType() && !isAnnotated(*this) ? getOperand() : OpFoldResult();
}

namespace {
/// A sum of two tensors, both padded with zeros in one dimension so that one begins where the other
/// ends, is their concatenation, padded. The gradient of a tensor that is split has this form, such
/// as the gradient of the joint weight of queries, keys and values.
struct AddOfPads : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    auto first = op.getLhs().getDefiningOp<PadOp>(), second = op.getRhs().getDefiningOp<PadOp>();
    if (!first || !second || isAnnotated(op) || isAnnotated(first) || isAnnotated(second) ||
        !first->hasOneUse() || !second->hasOneUse() || first.getValue() != 0 ||
        second.getValue() != 0)
      return rewriter.notifyMatchFailure(op, "not a sum of two tensors padded with zeros");
    std::optional<int64_t> dim;
    for (int64_t d = 0; d < op.getType().getRank(); ++d) {
      bool padded =
          first.getLow()[d] || first.getHigh()[d] || second.getLow()[d] || second.getHigh()[d];
      if (padded && dim)
        return rewriter.notifyMatchFailure(op, "padded in several dimensions");
      if (padded)
        dim = d;
    }
    if (!dim)
      return rewriter.notifyMatchFailure(op, "not padded");
    if (first.getLow()[*dim] > second.getLow()[*dim])
      std::swap(first, second);
    int64_t end = first.getLow()[*dim] + getTensorType(first.getOperand()).getDimSize(*dim);
    if (end != second.getLow()[*dim])
      return rewriter.notifyMatchFailure(op, "the parts do not touch");
    // Parts that are joined already stay one list.
    SmallVector<Value> parts;
    for (PadOp pad : {first, second}) {
      auto concat = pad.getOperand().getDefiningOp<ConcatOp>();
      if (concat && int64_t(concat.getDim()) == *dim && concat->hasOneUse() && !isAnnotated(concat))
        llvm::append_range(parts, concat.getInputs());
      else
        parts.push_back(pad.getOperand());
    }
    Value joined = ConcatOp::create(rewriter, op.getLoc(), parts, *dim);
    SmallVector<int64_t> low(op.getType().getRank(), 0), high(low);
    low[*dim] = first.getLow()[*dim];
    high[*dim] = second.getHigh()[*dim];
    rewriter.replaceOpWithNewOp<PadOp>(op, joined, low, high, 0.0);
    return success();
  }
};
} // namespace

void AddOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<AddOfPads>(context);
}

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  if (isAnnotated(*this))
    return {};
  if (isSplatOf(adaptor.getRhs(), 0))
    return getLhs();
  if (isSplatOf(adaptor.getLhs(), 0))
    return getRhs();
  return {};
}

OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  return isSplatOf(adaptor.getRhs(), 0) && !isAnnotated(*this) ? getLhs() : OpFoldResult();
}

OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isAnnotated(*this))
    return {};
  if (isSplatOf(adaptor.getRhs(), 1))
    return getLhs();
  if (isSplatOf(adaptor.getLhs(), 1))
    return getRhs();
  return {};
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  return isSplatOf(adaptor.getRhs(), 1) && !isAnnotated(*this) ? getLhs() : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// Gradients: one operand
//===----------------------------------------------------------------------===//

LogicalResult NegOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                              MutableArrayRef<Value> gradients) {
  gradients[0] = ValueBuilder(builder, getLoc()).create<NegOp>(cotangents[0]);
  return success();
}

/// dx = sign(x) dy, with sign(0) = 0.
LogicalResult AbsOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                              MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  Value x = getOperand(), dy = cotangents[0], zero = b.splat(x, 0);
  Value minusDy = b.create<NegOp>(dy);
  Value ifNegative = b.select(b.compare(ComparePredicate::Less, x, zero), minusDy, zero);
  gradients[0] = b.select(b.compare(ComparePredicate::Greater, x, zero), dy, ifNegative);
  return success();
}

/// dx = y dy.
LogicalResult ExpOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                              MutableArrayRef<Value> gradients) {
  gradients[0] = ValueBuilder(builder, getLoc()).mul(cotangents[0], getResult());
  return success();
}

/// dx = dy / x.
LogicalResult LogOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                              MutableArrayRef<Value> gradients) {
  gradients[0] = ValueBuilder(builder, getLoc()).div(cotangents[0], getOperand());
  return success();
}

/// dx = dy / (2 y).
LogicalResult SqrtOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                               MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  gradients[0] = b.div(b.scale(cotangents[0], 0.5), getResult());
  return success();
}

/// dx = -dy y^3 / 2.
LogicalResult RsqrtOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  Value y = getResult();
  Value cube = b.mul(y, b.mul(y, y));
  gradients[0] = b.mul(b.scale(cotangents[0], -0.5), cube);
  return success();
}

/// dx = dy (1 - y^2).
LogicalResult TanhOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                               MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  Value y = getResult();
  Value square = b.mul(y, y);
  gradients[0] = b.mul(cotangents[0], b.sub(b.splat(y, 1), square));
  return success();
}

/// dx = dy y (1 - y).
LogicalResult SigmoidOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                  MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  Value y = getResult();
  gradients[0] = b.mul(cotangents[0], b.mul(y, b.sub(b.splat(y, 1), y)));
  return success();
}

/// dx = dy sigmoid(x).
LogicalResult SoftplusOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                   MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  gradients[0] = b.mul(cotangents[0], b.create<SigmoidOp>(getOperand()));
  return success();
}

LogicalResult ReluOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                               MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  Value zero = b.splat(getOperand(), 0);
  Value isPositive = b.compare(ComparePredicate::Greater, getOperand(), zero);
  gradients[0] = b.select(isPositive, cotangents[0], zero);
  return success();
}

LogicalResult SiluOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                               MutableArrayRef<Value> gradients) {
  gradients[0] = SiluGradOp::create(builder, getLoc(), getOperand(), cotangents[0]);
  return success();
}

LogicalResult GeluOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                               MutableArrayRef<Value> gradients) {
  gradients[0] =
      GeluGradOp::create(builder, getLoc(), getOperand(), cotangents[0], getApproximate());
  return success();
}

LogicalResult ConvertOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                  MutableArrayRef<Value> gradients) {
  // Through integers and masks there is no gradient.
  if (isFloatConversion(*this))
    gradients[0] = ConvertOp::create(builder, getLoc(), getOperand().getType(), cotangents[0]);
  return success();
}

//===----------------------------------------------------------------------===//
// Gradients: two and three operands
//===----------------------------------------------------------------------===//

LogicalResult AddOp::buildVjp(OpBuilder &, ValueRange cotangents, ArrayRef<bool>,
                              MutableArrayRef<Value> gradients) {
  gradients[0] = gradients[1] = cotangents[0];
  return success();
}

LogicalResult SubOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool> needed,
                              MutableArrayRef<Value> gradients) {
  gradients[0] = cotangents[0];
  if (needed[1])
    gradients[1] = ValueBuilder(builder, getLoc()).create<NegOp>(cotangents[0]);
  return success();
}

LogicalResult MulOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool> needed,
                              MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  if (needed[0])
    gradients[0] = b.mul(cotangents[0], getRhs());
  if (needed[1])
    gradients[1] = b.mul(cotangents[0], getLhs());
  return success();
}

/// dx = dz / y and dy = -dz z / y, where z = x / y.
LogicalResult DivOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool> needed,
                              MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  Value quotient = b.div(cotangents[0], getRhs());
  gradients[0] = quotient;
  if (needed[1])
    gradients[1] = b.create<NegOp>(b.mul(quotient, getResult()));
  return success();
}

/// The gradient of the chosen of two: x is chosen where `predicate` holds of x and y.
static void buildChoiceVjp(OpBuilder &builder, Location loc, ComparePredicate predicate, Value x,
                           Value y, Value cotangent, ArrayRef<bool> needed,
                           MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, loc);
  Value zero = b.splat(x, 0), half = b.scale(cotangent, 0.5);
  Value ifEqual = b.select(b.compare(ComparePredicate::Equal, x, y), half, zero);
  if (needed[0])
    gradients[0] = b.select(b.compare(predicate, x, y), cotangent, ifEqual);
  if (needed[1])
    gradients[1] = b.select(b.compare(predicate, y, x), cotangent, ifEqual);
}

LogicalResult MaximumOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool> needed,
                                  MutableArrayRef<Value> gradients) {
  buildChoiceVjp(builder, getLoc(), ComparePredicate::Greater, getLhs(), getRhs(), cotangents[0],
                 needed, gradients);
  return success();
}

LogicalResult MinimumOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool> needed,
                                  MutableArrayRef<Value> gradients) {
  buildChoiceVjp(builder, getLoc(), ComparePredicate::Less, getLhs(), getRhs(), cotangents[0],
                 needed, gradients);
  return success();
}

LogicalResult SelectOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool> needed,
                                 MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  Value zero = b.splat(getResult(), 0);
  if (needed[1])
    gradients[1] = b.select(getCondition(), cotangents[0], zero);
  if (needed[2])
    gradients[2] = b.select(getCondition(), zero, cotangents[0]);
  return success();
}
