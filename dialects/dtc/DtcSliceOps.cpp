//===- DtcSliceOps.cpp - Slices of tensors --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/OpHelpers.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dtc;

/// A rule of one operand and one result of the same rank. Dimensions of the same size where
/// `isParallel` are parallel, the others are whole, each side for itself.
static ShardingRule makeBlockRule(RankedTensorType operand, RankedTensorType result) {
  ShardingRule rule;
  TensorFactors operandDims, resultDims;
  for (auto [from, to] : llvm::zip_equal(operand.getShape(), result.getShape())) {
    bool same = from == to;
    operandDims.push_back({same ? rule.addFactor(from) : rule.addWholeFactor(from)});
    resultDims.push_back({same ? operandDims.back().front() : rule.addWholeFactor(to)});
  }
  rule.operands.push_back(std::move(operandDims));
  rule.results.push_back(std::move(resultDims));
  return rule;
}

//===----------------------------------------------------------------------===//
// SliceOp
//===----------------------------------------------------------------------===//

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                        Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType operand = getTensorType(adaptor.getOperand());
  ArrayRef<int64_t> offsets = adaptor.getOffsets(), sizes = adaptor.getSizes();
  size_t rank = operand.getRank();
  if (offsets.size() != rank || sizes.size() != rank)
    return inferenceError<SliceOp>(location, "slice-c1", "offsets are ", formatList(offsets),
                                   " and sizes ", formatList(sizes), ", expected ", rank,
                                   " each, one for each dimension of the operand");
  for (size_t i = 0; i < rank; ++i) {
    int64_t size = operand.getDimSize(i);
    if (sizes[i] < 1 || sizes[i] > size || offsets[i] < 0 || offsets[i] > size - sizes[i])
      return inferenceError<SliceOp>(location, "slice-c2", "dimension ", i, " has offset ",
                                     offsets[i], " and size ", sizes[i],
                                     ", expected a block of at least 1 inside ", size);
  }
  types.push_back(withShape(operand, sizes));
  return success();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  return getOperand().getType() == getType() && !isAnnotated(*this) ? getOperand() : OpFoldResult();
}

ShardingRule SliceOp::getShardingRule() {
  ShardingRule rule = makeBlockRule(getOperand().getType(), getType());
  rule.linearOperands = {{0}};
  return rule;
}

Operation *SliceOp::buildLocal(OpBuilder &builder, ValueRange operands, TypeRange resultTypes) {
  Operation *op = cloneWithTypes(builder, *this, operands, resultTypes);
  cast<SliceOp>(op).setSizes(cast<RankedTensorType>(resultTypes.front()).getShape());
  return op;
}

DictionaryAttr SliceOp::getKernelAttributes() {
  return DictionaryAttr::get(getContext(),
                             {NamedAttribute(getOffsetsAttrName(), getOffsetsAttr())});
}

LogicalResult SliceOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                MutableArrayRef<Value> gradients) {
  SmallVector<int64_t> behind;
  for (auto [size, offset, length] :
       llvm::zip_equal(getOperand().getType().getShape(), getOffsets(), getSizes()))
    behind.push_back(size - offset - length);
  gradients[0] = PadOp::create(builder, getLoc(), cotangents[0], getOffsets(), behind, 0.0);
  return success();
}

//===----------------------------------------------------------------------===//
// PadOp
//===----------------------------------------------------------------------===//

LogicalResult PadOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                      Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType operand = getTensorType(adaptor.getOperand());
  ArrayRef<int64_t> low = adaptor.getLow(), high = adaptor.getHigh();
  size_t rank = operand.getRank();
  if (low.size() != rank || high.size() != rank)
    return inferenceError<PadOp>(location, "pad-c1", "low is ", formatList(low), " and high ",
                                 formatList(high), ", expected ", rank,
                                 " each, one for each dimension of the operand");
  // Larger ones are in no tensor, and their sums would overflow.
  constexpr int64_t kMax = int64_t(1) << 60;
  SmallVector<int64_t> shape;
  for (size_t i = 0; i < rank; ++i) {
    if (low[i] < 0 || high[i] < 0 || low[i] > kMax || high[i] > kMax)
      return inferenceError<PadOp>(location, "pad-c2", "dimension ", i, " has low ", low[i],
                                   " and high ", high[i], ", expected at least 0 and at most 2^60");
    shape.push_back(low[i] + operand.getDimSize(i) + high[i]);
  }
  types.push_back(withShape(operand, shape));
  return success();
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  return getOperand().getType() == getType() && !isAnnotated(*this) ? getOperand() : OpFoldResult();
}

ShardingRule PadOp::getShardingRule() {
  ShardingRule rule = makeBlockRule(getOperand().getType(), getType());
  if (getValue() == 0)
    rule.linearOperands = {{0}};
  return rule;
}

DictionaryAttr PadOp::getKernelAttributes() {
  return DictionaryAttr::get(getContext(), {NamedAttribute(getLowAttrName(), getLowAttr()),
                                            NamedAttribute(getValueAttrName(), getValueAttr())});
}

LogicalResult PadOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                              MutableArrayRef<Value> gradients) {
  gradients[0] = SliceOp::create(builder, getLoc(), cotangents[0], getLow(),
                                 getOperand().getType().getShape());
  return success();
}

//===----------------------------------------------------------------------===//
// ConcatOp
//===----------------------------------------------------------------------===//

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (adaptor.getInputs().empty())
    return inferenceError<ConcatOp>(location, "concat-c1",
                                    "found no operands, expected at least one");
  RankedTensorType first = getTensorType(adaptor.getInputs().front());
  int64_t dim = adaptor.getDimAttr().getInt();
  if (dim < 0 || dim >= first.getRank())
    return inferenceError<ConcatOp>(location, "concat-c2", "dim is ", dim,
                                    ", expected a dimension of ", first);
  SmallVector<int64_t> shape(first.getShape());
  for (auto [i, input] : llvm::enumerate(adaptor.getInputs().drop_front())) {
    RankedTensorType type = getTensorType(input);
    SmallVector<int64_t> expected(first.getShape());
    if (type.getRank() == first.getRank())
      expected[dim] = type.getDimSize(dim);
    if (type != withShape(first, expected))
      return inferenceError<ConcatOp>(location, "concat-c3", "operand #", i + 1, " has type ", type,
                                      ", expected that of operand #0, ", first,
                                      ", but for the size of dimension ", dim);
    if (llvm::AddOverflow(shape[dim], type.getDimSize(dim), shape[dim]))
      return inferenceError<ConcatOp>(location, "concat-c4", "the sizes of dimension ", dim,
                                      " add up to more than 2^63 - 1");
  }
  types.push_back(withShape(first, shape));
  return success();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 && !isAnnotated(*this) ? getInputs().front() : OpFoldResult();
}

ShardingRule ConcatOp::getShardingRule() {
  ShardingRule rule;
  int64_t dim = getDim();
  TensorFactors result;
  for (auto [i, size] : llvm::enumerate(getType().getShape()))
    result.push_back(
        {static_cast<int64_t>(i) == dim ? rule.addWholeFactor(size) : rule.addFactor(size)});
  auto &linear = rule.linearOperands.emplace_back();
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    TensorFactors operand = result;
    operand[dim] = {rule.addWholeFactor(getTensorType(input).getDimSize(dim))};
    rule.operands.push_back(std::move(operand));
    linear.push_back(i);
  }
  rule.results.push_back(std::move(result));
  return rule;
}

LogicalResult ConcatOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool> needed,
                                 MutableArrayRef<Value> gradients) {
  int64_t dim = getDim();
  SmallVector<int64_t> offsets(getType().getRank());
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    ArrayRef<int64_t> sizes = getTensorType(input).getShape();
    if (needed[i])
      gradients[i] = SliceOp::create(builder, getLoc(), cotangents[0], offsets, sizes);
    offsets[dim] += sizes[dim];
  }
  return success();
}
