//===- DtcShapeOps.cpp - Constants and changes of shape -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/OpHelpers.h"

using namespace mlir;
using namespace dtc;

//===----------------------------------------------------------------------===//
// ConstantOp
//===----------------------------------------------------------------------===//

void ConstantOp::build(OpBuilder &builder, OperationState &state, RankedTensorType type,
                       double splat) {
  Type element = type.getElementType();
  Attribute value;
  if (isa<FloatType>(element))
    value = builder.getFloatAttr(element, splat);
  else
    value = builder.getIntegerAttr(element, static_cast<int64_t>(splat));
  build(builder, state, DenseElementsAttr::get(type, value));
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

ShardingRule ConstantOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors dims;
  for (int64_t size : getType().getShape())
    dims.push_back({getValue().isSplat() ? rule.addFactor(size) : rule.addWholeFactor(size)});
  rule.results.push_back(std::move(dims));
  return rule;
}

Operation *ConstantOp::buildLocal(OpBuilder &builder, ValueRange operands, TypeRange resultTypes) {
  Operation *op = cloneWithTypes(builder, *this, operands, resultTypes);
  auto local = cast<ConstantOp>(op);
  auto type = cast<RankedTensorType>(resultTypes.front());
  if (type != getType())
    local.setValueAttr(getValue().resizeSplat(type));
  return op;
}

StringRef ConstantOp::getKernelName() { return getValue().isSplat() ? "fill" : "constant"; }

DictionaryAttr ConstantOp::getKernelAttributes() {
  Builder builder(getContext());
  DenseElementsAttr value = getValue();
  if (!value.isSplat())
    return builder.getDictionaryAttr(builder.getNamedAttr("data", value));
  double number;
  if (isa<FloatType>(value.getElementType()))
    number = value.getSplatValue<APFloat>().convertToDouble();
  else if (value.getElementType().isInteger(1))
    number = value.getSplatValue<bool>() ? 1 : 0;
  else
    number = static_cast<double>(value.getSplatValue<APInt>().getSExtValue());
  return builder.getDictionaryAttr(builder.getNamedAttr("value", builder.getF64FloatAttr(number)));
}

//===----------------------------------------------------------------------===//
// BroadcastOp
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  RankedTensorType operand = getOperand().getType(), result = getType();
  if (operand.getElementType() != result.getElementType())
    return violates(*this, "broadcast-c1")
           << "result has elements of " << result.getElementType() << ", expected "
           << operand.getElementType() << " as the operand";
  if (static_cast<int64_t>(getDims().size()) != operand.getRank())
    return violates(*this, "broadcast-c2")
           << "dims are " << formatList(getDims()) << ", expected " << operand.getRank()
           << ", one for each dimension of the operand";
  if (!areIncreasingDims(getDims(), result.getRank()))
    return violates(*this, "broadcast-c3")
           << "dims are " << formatList(getDims())
           << ", expected increasing dimensions of the result " << result;
  for (auto [i, dim] : llvm::enumerate(getDims()))
    if (operand.getDimSize(i) != result.getDimSize(dim))
      return violates(*this, "broadcast-c4")
             << "dimension " << dim << " of the result has size " << result.getDimSize(dim)
             << ", expected " << operand.getDimSize(i) << " as dimension " << i
             << " of the operand";
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  return getOperand().getType() == getType() && !isAnnotated(*this) ? getOperand() : OpFoldResult();
}

ShardingRule BroadcastOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors operand, result;
  for (int64_t size : getType().getShape())
    result.push_back({rule.addFactor(size)});
  for (int64_t dim : getDims())
    operand.push_back(result[dim]);
  rule.operands.push_back(std::move(operand));
  rule.results.push_back(std::move(result));
  rule.linearOperands = {{0}};
  return rule;
}

LogicalResult BroadcastOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                    MutableArrayRef<Value> gradients) {
  SmallVector<int64_t> repeated;
  for (int64_t dim = 0; dim < getType().getRank(); ++dim)
    if (!llvm::is_contained(getDims(), dim))
      repeated.push_back(dim);
  gradients[0] = cotangents[0];
  if (!repeated.empty())
    gradients[0] = ReduceOp::create(builder, getLoc(), cotangents[0], ReductionKind::Sum, repeated);
  return success();
}

//===----------------------------------------------------------------------===//
// ReshapeOp
//===----------------------------------------------------------------------===//

void ReshapeOp::build(OpBuilder &builder, OperationState &state, Value operand,
                      ArrayRef<int64_t> shape) {
  build(builder, state, TypeRange{withShape(getTensorType(operand), shape)}, operand);
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType operand = getOperand().getType(), result = getType();
  if (operand.getElementType() != result.getElementType())
    return violates(*this, "reshape-c1")
           << "result has elements of " << result.getElementType() << ", expected "
           << operand.getElementType() << " as the operand";
  if (operand.getNumElements() != result.getNumElements())
    return violates(*this, "reshape-c2")
           << "result has " << result.getNumElements() << " elements, expected "
           << operand.getNumElements() << " as the operand";
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getOperand().getType() == getType() && !isAnnotated(*this))
    return getOperand();
  auto inner = getOperand().getDefiningOp<ReshapeOp>();
  if (!inner || isAnnotated(inner))
    return {};
  if (inner.getOperand().getType() == getType() && !isAnnotated(*this))
    return inner.getOperand();
  getOperandMutable().assign(inner.getOperand());
  return getResult();
}

ShardingRule ReshapeOp::getShardingRule() {
  return makeReshapeRule(getOperand().getType().getShape(), getType().getShape());
}

LogicalResult ReshapeOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                  MutableArrayRef<Value> gradients) {
  gradients[0] = ReshapeOp::create(builder, getLoc(), getOperand().getType(), cotangents[0]);
  return success();
}

//===----------------------------------------------------------------------===//
// TransposeOp
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType operand = getTensorType(adaptor.getOperand());
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  SmallVector<int64_t> sorted(permutation);
  llvm::sort(sorted);
  if (static_cast<int64_t>(sorted.size()) != operand.getRank() ||
      !areIncreasingDims(sorted, operand.getRank()))
    return inferenceError<TransposeOp>(location, "transpose-c1", "permutation is ",
                                       formatList(permutation), ", expected each dimension of ",
                                       operand, " once");
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(operand.getDimSize(dim));
  types.push_back(withShape(operand, shape));
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (llvm::is_sorted(getPermutation()) && !isAnnotated(*this))
    return getOperand();
  auto inner = getOperand().getDefiningOp<TransposeOp>();
  if (!inner || isAnnotated(inner))
    return {};
  SmallVector<int64_t> composed;
  for (int64_t dim : getPermutation())
    composed.push_back(inner.getPermutation()[dim]);
  setPermutation(composed);
  getOperandMutable().assign(inner.getOperand());
  return getResult();
}

ShardingRule TransposeOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors operand, result;
  for (int64_t size : getOperand().getType().getShape())
    operand.push_back({rule.addFactor(size)});
  for (int64_t dim : getPermutation())
    result.push_back(operand[dim]);
  rule.operands.push_back(std::move(operand));
  rule.results.push_back(std::move(result));
  rule.linearOperands = {{0}};
  return rule;
}

LogicalResult TransposeOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                    MutableArrayRef<Value> gradients) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [i, dim] : llvm::enumerate(getPermutation()))
    inverse[dim] = i;
  gradients[0] = TransposeOp::create(builder, getLoc(), cotangents[0], inverse);
  return success();
}

//===----------------------------------------------------------------------===//
// ZigzagOp
//===----------------------------------------------------------------------===//

LogicalResult ZigzagOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType operand = getTensorType(adaptor.getOperand());
  types.push_back(operand);
  // The parser infers the type before there are attributes; the verifier does it again.
  if (!adaptor.getDimAttr() || !adaptor.getPartsAttr())
    return success();
  int64_t dim = adaptor.getDim(), parts = adaptor.getParts();
  if (dim < 0 || dim >= operand.getRank())
    return inferenceError<ZigzagOp>(location, "zigzag-c1", "dim is ", dim, ", expected one of the ",
                                    operand.getRank(), " dimensions of ", operand);
  int64_t size = operand.getDimSize(dim);
  if (parts < 1 || parts > size / 2 || size % (2 * parts) != 0)
    return inferenceError<ZigzagOp>(location, "zigzag-c2", "dimension ", dim, " has ", size,
                                    " elements for ", parts,
                                    " parts, expected at least 1 part, of two chunks of equal "
                                    "size");
  return success();
}

/// One undoes the other.
OpFoldResult ZigzagOp::fold(FoldAdaptor) {
  auto inner = getOperand().getDefiningOp<ZigzagOp>();
  bool undoes = inner && inner.getDim() == getDim() && inner.getParts() == getParts() &&
                inner.getInverse() != getInverse();
  return undoes && !isAnnotated(*this) ? inner.getOperand() : OpFoldResult();
}

/// Each side of the dimension is whole by itself: a shard of one is no shard of the other.
ShardingRule ZigzagOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors operand, result;
  for (auto [dim, size] : llvm::enumerate(getOperand().getType().getShape())) {
    bool moves = static_cast<int64_t>(dim) == getDim();
    operand.push_back({moves ? rule.addWholeFactor(size) : rule.addFactor(size)});
    result.push_back({moves ? rule.addWholeFactor(size) : operand.back().front()});
  }
  rule.operands.push_back(std::move(operand));
  rule.results.push_back(std::move(result));
  rule.linearOperands = {{0}};
  return rule;
}

LogicalResult ZigzagOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                 MutableArrayRef<Value> gradients) {
  gradients[0] = ZigzagOp::create(builder, getLoc(), cotangents[0], getDim(), getParts(),
                                  /*inverse=*/!getInverse());
  return success();
}
