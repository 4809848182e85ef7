//===- ModelOps.cpp - Ops of imported models ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ModelOps.h"

#include "dialects/dtc/DtcOps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace dtc;

RankedTensorType ModelOps::getType(ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, elementType);
}

Value ModelOps::constant(ArrayRef<int64_t> shape, double value) {
  return ConstantOp::create(builder, loc, getType(shape), value);
}

Value ModelOps::einsum(StringRef equation, Value lhs, Value rhs) {
  return EinsumOp::create(builder, loc, lhs, rhs, equation);
}

Value ModelOps::add(Value lhs, Value rhs) { return AddOp::create(builder, loc, lhs, rhs); }

Value ModelOps::residual(Value x) {
  // Between the blocks a value may be split along the sequence where inside them it cannot.
  x.getDefiningOp()->setDiscardableAttr(DtcDialect::kAxesAttrName,
                                        builder.getStrArrayAttr({"", "residual_seq", ""}));
  return x;
}

Value ModelOps::mul(Value lhs, Value rhs) { return MulOp::create(builder, loc, lhs, rhs); }

Value ModelOps::scale(Value x, double factor) { return mul(x, constant(shapeOf(x), factor)); }

Value ModelOps::mulRows(Value x, Value factors) {
  SmallVector<int64_t> rows(shapeOf(x).drop_back());
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, rows.size()));
  return mul(x, BroadcastOp::create(builder, loc, x.getType(), reshape(factors, rows), dims));
}

Value ModelOps::clip(Value x, double limit) {
  Value low = MaximumOp::create(builder, loc, x, constant(shapeOf(x), -limit));
  return MinimumOp::create(builder, loc, low, constant(shapeOf(x), limit));
}

Value ModelOps::clipAbove(Value x, double limit) {
  return MinimumOp::create(builder, loc, x, constant(shapeOf(x), limit));
}

Value ModelOps::shift(Value x, double number) { return add(x, constant(shapeOf(x), number)); }

Value ModelOps::softcap(Value x, double cap) {
  return scale(TanhOp::create(builder, loc, scale(x, 1 / cap)), cap);
}

Value ModelOps::reshape(Value x, ArrayRef<int64_t> shape, ArrayRef<StringRef> axes) {
  auto op = ReshapeOp::create(builder, loc, getType(shape), x);
  if (!axes.empty())
    op->setDiscardableAttr(DtcDialect::kAxesAttrName, builder.getStrArrayAttr(axes));
  return op;
}

Value ModelOps::activation(Activation kind, Value x) {
  switch (kind) {
  case Activation::GeluTanh:
    return GeluOp::create(builder, loc, x, GeluApproximation::Tanh);
  case Activation::Gelu:
    return GeluOp::create(builder, loc, x, GeluApproximation::None);
  case Activation::Relu:
    return ReluOp::create(builder, loc, x);
  case Activation::Silu:
    return SiluOp::create(builder, loc, x);
  case Activation::Tanh:
    return TanhOp::create(builder, loc, x);
  case Activation::Sigmoid:
    return SigmoidOp::create(builder, loc, x);
  }
  llvm_unreachable("all kinds are handled");
}

Value ModelOps::addBias(Value x, Value bias) {
  int64_t rank = shapeOf(x).size();
  int64_t biasRank = shapeOf(bias).size();
  auto dims = llvm::to_vector(llvm::seq<int64_t>(rank - biasRank, rank));
  return add(x, BroadcastOp::create(builder, loc, x.getType(), bias, dims));
}

Value ModelOps::select(Value x, int64_t dim, int64_t index) {
  SmallVector<int64_t> sizes(shapeOf(x));
  sizes.erase(sizes.begin() + dim);
  return reshape(take(x, dim, index, 1), sizes);
}

Value ModelOps::take(Value x, int64_t dim, int64_t begin, int64_t size) {
  SmallVector<int64_t> sizes(shapeOf(x));
  if (sizes[dim] == size)
    return x;
  sizes[dim] = size;
  SmallVector<int64_t> offsets(sizes.size(), 0);
  offsets[dim] = begin;
  return SliceOp::create(builder, loc, x, offsets, sizes);
}

Value ModelOps::concat(Value first, Value second, int64_t dim) {
  return ConcatOp::create(builder, loc, ValueRange{first, second}, dim);
}

Value ModelOps::halvesOfPairs(Value x, int64_t dim) {
  SmallVector<int64_t> shape(shapeOf(x)), pairs(shape);
  pairs[dim] = 2;
  pairs.insert(pairs.begin() + dim, shape[dim] / 2);
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, pairs.size()));
  std::swap(order[dim], order[dim + 1]);
  return reshape(TransposeOp::create(builder, loc, reshape(x, pairs), order), shape);
}

Value ModelOps::forEachHead(Value x, Dim heads) {
  ArrayRef<int64_t> shape = shapeOf(x);
  auto op = BroadcastOp::create(builder, loc, getType({shape[0], shape[1], heads.size, shape[2]}),
                                x, ArrayRef<int64_t>{0, 1, 3});
  op->setDiscardableAttr(DtcDialect::kAxesAttrName,
                         builder.getStrArrayAttr({"", "", heads.axis, ""}));
  return op;
}
