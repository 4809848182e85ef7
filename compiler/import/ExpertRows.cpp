//===- ExpertRows.cpp - The rows of experts -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ExpertRows.h"

#include "dialects/dtc/DtcOps.h"

#include <algorithm>

using namespace mlir;
using namespace dtc;

static ArrayRef<int64_t> sizesOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static void setAxes(Value value, ArrayRef<StringRef> axes) {
  Builder builder(value.getContext());
  value.getDefiningOp()->setDiscardableAttr(DtcDialect::kAxesAttrName,
                                            builder.getStrArrayAttr(axes));
}

void ExpertRows::nameAsExperts(Value value) {
  static constexpr StringRef axes[] = {"experts", "expert_batch", "", ""};
  setAxes(value, ArrayRef(axes).take_front(sizesOf(value).size()));
}

void dtc::nameAsTokens(Value value) { setAxes(value, {"batch", "", ""}); }

/// Moves the dimension of experts to the front: [B, S, X] -> [X, B, S].
static Value byExpert(OpBuilder &builder, Location loc, Value x) {
  return TransposeOp::create(builder, loc, x, ArrayRef<int64_t>{2, 0, 1});
}

double dtc::occupancyOf(int64_t tokens, int64_t selected, int64_t experts, int64_t capacity) {
  return std::min(1.0, double(tokens * selected) / double(experts * capacity));
}

void ExpertRows::route(Routing &routing, Value weightsOfTokens) {
  ArrayRef<int64_t> shape = sizesOf(routing.isSelected);
  auto places = RankedTensorType::get({shape[2], shape[0], routing.capacity}, builder.getI32Type());
  routing.rows =
      NonzeroOp::create(builder, loc, places, byExpert(builder, loc, routing.isSelected));
  setAxes(routing.rows, {"", "batch", ""});
  // The experts compute the rows' indices once more for themselves, so that nothing else of the
  // routing goes there.
  routing.rowsOfExperts =
      NonzeroOp::create(builder, loc, places, byExpert(builder, loc, routing.isSelected));
  nameAsExperts(routing.rowsOfExperts);
  // [X, B, S] as tables of one column.
  Type element = cast<RankedTensorType>(weightsOfTokens.getType()).getElementType();
  auto table = RankedTensorType::get({shape[2], shape[0], shape[1], 1}, element);
  Value columns = ReshapeOp::create(builder, loc, table, byExpert(builder, loc, weightsOfTokens));
  Value ofRows = EmbeddingOp::create(builder, loc, columns, routing.rows);
  routing.weights =
      ReshapeOp::create(builder, loc, RankedTensorType::get(places.getShape(), element), ofRows);
  setAxes(routing.weights, {"", "batch", ""});
}

Value ExpertRows::dispatch(Value x, const Routing &routing) {
  Value rows = EmbeddingOp::create(builder, loc, x, routing.rows);
  // Where the tokens are; the experts' products take them to where the experts are.
  setAxes(rows, {"", "batch", "", ""});
  return rows;
}

Value ExpertRows::product(StringRef equation, Value x, Value weight, const Routing &routing) {
  Value y = GroupedProductOp::create(builder, loc, x, weight, routing.rowsOfExperts,
                                     builder.getStringAttr(equation), UnitAttr(),
                                     builder.getF64FloatAttr(routing.occupancy));
  nameAsExperts(y);
  return y;
}

Value ExpertRows::weigh(Value rows, const Routing &routing) {
  Value weights = BroadcastOp::create(builder, loc, rows.getType(), routing.weights,
                                      ArrayRef<int64_t>{0, 1, 2});
  nameAsExperts(weights);
  return MulOp::create(builder, loc, rows, weights);
}

Value ExpertRows::spreadBias(Value bias, Type rows) {
  Value ofRows = BroadcastOp::create(builder, loc, rows, bias, ArrayRef<int64_t>{0, 3});
  nameAsExperts(ofRows);
  return ofRows;
}

Value ExpertRows::combine(Value rows, const Routing &routing, Type tokens) {
  Value y = EmbeddingGradOp::create(builder, loc, tokens, routing.rows, rows);
  nameAsTokens(y);
  return y;
}
