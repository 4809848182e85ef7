//===- OpHelpers.cpp - Helpers of op implementations ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/OpHelpers.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dtc;

RankedTensorType dtc::withShape(RankedTensorType type, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, type.getElementType());
}

RankedTensorType dtc::dropLastDim(RankedTensorType type) {
  return withShape(type, type.getShape().drop_back());
}

std::string dtc::formatList(ArrayRef<int64_t> values) {
  return "[" +
         llvm::join(llvm::map_range(values, [](int64_t v) { return std::to_string(v); }), ", ") +
         "]";
}

bool dtc::areIncreasingDims(ArrayRef<int64_t> dims, int64_t rank) {
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < (i == 0 ? 0 : dims[i - 1] + 1) || dims[i] >= rank)
      return false;
  return true;
}

bool dtc::isAnnotated(Operation *op) {
  return llvm::any_of(op->getDiscardableAttrs(), [](NamedAttribute attr) {
    return attr.getName() != kOpNumberAttrName && attr.getName() != kGradientOfAttrName;
  });
}

bool dtc::isSplatOf(Attribute attribute, double value) {
  auto elements = dyn_cast_or_null<DenseElementsAttr>(attribute);
  if (!elements || !elements.isSplat())
    return false;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().convertToDouble() == value;
  if (elements.getElementType().isInteger(32))
    return static_cast<double>(elements.getSplatValue<APInt>().getSExtValue()) == value;
  return false;
}

double dtc::getAttentionFlops(RankedTensorType q, RankedTensorType k, bool causal,
                              std::optional<int64_t> window) {
  double queries = q.getDimSize(1), keys = k.getDimSize(1);
  double scores = causal ? queries * keys / 2 : queries * keys;
  if (window) {
    // The first queries have fewer keys before them than the window.
    double width = std::min<double>(*window, keys),
           growing = std::max(width - (keys - queries), 0.0);
    scores = std::min(scores, queries * width - growing * growing / 2);
  }
  return 4.0 * static_cast<double>(q.getNumElements()) / queries * scores;
}

/// The dimensions first, first + 1, ... last - 1.
static SmallVector<int64_t> range(int64_t first, int64_t last) {
  return llvm::to_vector(llvm::seq<int64_t>(first, last));
}

Value ValueBuilder::widen(Value x) {
  Type wide = getWideType(getTensorType(x).getElementType());
  return wide == getTensorType(x).getElementType() ? x : create<ConvertOp>(x, wide);
}

Value ValueBuilder::convertLike(Value x, Value like) {
  Type element = getTensorType(like).getElementType();
  return element == getTensorType(x).getElementType() ? x : create<ConvertOp>(x, element);
}

Value ValueBuilder::splat(Value like, double value) {
  return create<ConstantOp>(getTensorType(like), value);
}

Value ValueBuilder::broadcastLeading(Value x, Value like) {
  return create<BroadcastOp>(like.getType(), x, range(0, getTensorType(x).getRank()));
}

Value ValueBuilder::broadcastTrailing(Value x, Value like) {
  int64_t rank = getTensorType(like).getRank();
  return create<BroadcastOp>(like.getType(), x, range(rank - getTensorType(x).getRank(), rank));
}

Value ValueBuilder::reduceLast(ReductionKind kind, Value x) {
  int64_t rank = getTensorType(x).getRank();
  return create<ReduceOp>(x, kind, range(rank - 1, rank));
}

Value ValueBuilder::sumLeading(Value x) {
  int64_t rank = getTensorType(x).getRank();
  if (rank == 1)
    return x;
  return create<ReduceOp>(x, ReductionKind::Sum, range(0, rank - 1));
}

Value ValueBuilder::meanLast(Value x) {
  return scale(reduceLast(ReductionKind::Sum, x), 1.0 / getTensorType(x).getShape().back());
}
