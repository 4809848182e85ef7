//===- DtcCacheOps.cpp - Ops of the key-value cache -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/OpHelpers.h"

#include <cmath>

using namespace mlir;
using namespace dtc;

/// Checks that `value` has one index for each sample of `x`.
template <typename OpT>
static LogicalResult expectIndexForEach(std::optional<Location> location, StringRef label,
                                        StringRef name, Value value, RankedTensorType x) {
  auto expected =
      RankedTensorType::get({x.getDimSize(0)}, IntegerType::get(value.getContext(), 32));
  return expectType<OpT>(location, label, name, value, expected);
}

//===----------------------------------------------------------------------===//
// CacheUpdateOp
//===----------------------------------------------------------------------===//

LogicalResult CacheUpdateOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                              Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType cache = getTensorType(adaptor.getCache()),
                   rows = getTensorType(adaptor.getRows());
  if (cache.getRank() < 2)
    return inferenceError<CacheUpdateOp>(location, "cache_update-c1", "cache has type ", cache,
                                         ", expected at least 2 dimensions: samples and rows");
  if (rows.getRank() != cache.getRank() || rows.getElementType() != cache.getElementType() ||
      rows.getDimSize(0) != cache.getDimSize(0) ||
      rows.getShape().drop_front(2) != cache.getShape().drop_front(2))
    return inferenceError<CacheUpdateOp>(location, "cache_update-c2", "rows have type ", rows,
                                         ", expected those of ", cache, " but for dimension 1");
  types.push_back(cache);
  return expectIndexForEach<CacheUpdateOp>(location, "cache_update-c3", "positions",
                                           adaptor.getPositions(), cache);
}

ShardingRule CacheUpdateOp::getShardingRule() {
  return makeEquationRule(*this, "bT...,bS...,b->bT...");
}

//===----------------------------------------------------------------------===//
// CachedAttentionOp
//===----------------------------------------------------------------------===//

LogicalResult CachedAttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                  Adaptor adaptor, SmallVectorImpl<Type> &types) {
  using OpT = CachedAttentionOp;
  HeadLabels labels = {"cached_attention-c1", "cached_attention-c2", "cached_attention-c3",
                       "cached_attention-c4"};
  RankedTensorType q = getTensorType(adaptor.getQ()), k = getTensorType(adaptor.getK());
  if (failed(expectHeads<OpT>(location, labels, q, k, adaptor.getV())) ||
      failed(expectIndexForEach<OpT>(location, "cached_attention-c5", "positions",
                                     adaptor.getPositions(), q)))
    return failure();
  if (!std::isfinite(adaptor.getScale()))
    return inferenceError<OpT>(location, "cached_attention-c6", "scale is ", adaptor.getScale(),
                               ", expected a finite number");
  if (failed(expectScores<OpT>(
          location, {"cached_attention-c7", /*causal=*/"", "cached_attention-c8"}, adaptor,
          /*causal=*/true)))
    return failure();
  if (adaptor.getSinks() &&
      failed(expectType<OpT>(location, "cached_attention-c9", "sinks", adaptor.getSinks(),
                             withShape(q, {q.getDimSize(2)}))))
    return failure();
  types.push_back(q);
  return success();
}

ShardingRule CachedAttentionOp::getShardingRule() {
  return makeEquationRule(*this, getSinks() ? "bS(gr)D,bTgD,bTgD,b,(gr)->bS(gr)D"
                                            : "bS(gr)D,bTgD,bTgD,b->bS(gr)D");
}

/// Counts half of the keys, or those of the window: how many a query sees is known only when it
/// runs.
double CachedAttentionOp::getFlops() {
  return getAttentionFlops(getQ().getType(), getK().getType(), /*causal=*/true, getWindow());
}

//===----------------------------------------------------------------------===//
// SelectRowOp
//===----------------------------------------------------------------------===//

LogicalResult SelectRowOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType x = getTensorType(adaptor.getX());
  if (x.getRank() < 2)
    return inferenceError<SelectRowOp>(location, "select_row-c1", "x has type ", x,
                                       ", expected at least 2 dimensions: samples and rows");
  SmallVector<int64_t> shape(x.getShape());
  shape[1] = 1;
  types.push_back(withShape(x, shape));
  return expectIndexForEach<SelectRowOp>(location, "select_row-c2", "rows", adaptor.getRows(), x);
}

ShardingRule SelectRowOp::getShardingRule() {
  ShardingRule rule = makeEquationRule(*this, "bS...,b->bR...");
  rule.linearOperands = {{0}};
  return rule;
}
