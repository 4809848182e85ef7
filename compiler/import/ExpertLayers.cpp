//===- ExpertLayers.cpp - Routing tokens to experts -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A mixture of experts in ops that say nothing of devices (Shazeer et al. 2017, arXiv:1701.06538;
// Lepikhin et al., "GShard", arXiv:2006.16668): each expert has a fixed number of rows for the
// tokens of each sequence, and rows without a token are zeros. Which tokens an expert gets depends
// on their sequence alone, so that all layouts route alike. Letters as in ModelBuilder.h, and X
// experts, C rows of an expert for a sequence.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ModelBuilder.h"
#include "dialects/dtc/DtcOps.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;

static ArrayRef<int64_t> dimsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static void nameDims(OpBuilder &builder, Value value, ArrayRef<StringRef> axes) {
  value.getDefiningOp()->setDiscardableAttr(DtcDialect::kAxesAttrName,
                                            builder.getStrArrayAttr(axes));
}

/// The logical axes of what experts compute, [X, B, C, ...].
static constexpr StringRef kAxesOfExperts[] = {"experts", "expert_batch", "", ""};

/// Moves the dimension of experts to the front: [B, S, X] -> [X, B, S].
static Value byExpert(OpBuilder &builder, Location loc, Value x) {
  return TransposeOp::create(builder, loc, x, ArrayRef<int64_t>{2, 0, 1});
}

Routing ModelBuilder::route(Value logits, const RoutingKind &kind) {
  ArrayRef<int64_t> shape = dimsOf(logits);
  Routing routing;
  // In the model's own type, so that nothing is rounded where a plan computes in 16 bits: a
  // conversion is not narrowed.
  logits = ConvertOp::create(builder, loc, logits, elementType);
  routing.scores = SoftmaxOp::create(builder, loc, logits, /*causal=*/false, /*scale=*/1.0);
  routing.isSelected = TopKOp::create(builder, loc, getMaskType(logits.getType()), routing.scores,
                                      builder.getI64IntegerAttr(kind.selected));
  Value weights =
      SelectOp::create(builder, loc, routing.isSelected, routing.scores, constant(shape, 0));
  if (kind.normalizes) {
    Value sum = ReduceOp::create(builder, loc, weights, ReductionKind::Sum, ArrayRef<int64_t>{2});
    weights = DivOp::create(
        builder, loc, weights,
        BroadcastOp::create(builder, loc, weights.getType(), sum, ArrayRef<int64_t>{0, 1}));
  }
  // Routing is where the tokens are; of what it gives only the rows' weights go to the experts.
  nameDims(builder, routing.scores, {"batch", "", ""});
  nameDims(builder, routing.isSelected, {"batch", "", ""});
  nameDims(builder, weights, {"batch", "", ""});
  routing.occupancy =
      std::min(1.0, double(shape[1] * kind.selected) / double(shape[2] * kind.capacity));
  auto places = RankedTensorType::get({shape[2], shape[0], kind.capacity}, builder.getI32Type());
  routing.rows =
      NonzeroOp::create(builder, loc, places, byExpert(builder, loc, routing.isSelected));
  nameDims(builder, routing.rows, {"", "batch", ""});
  // The experts have the rows' indices as well, of their own: nothing else of the routing goes
  // there.
  routing.rowsOfExperts =
      NonzeroOp::create(builder, loc, places, byExpert(builder, loc, routing.isSelected));
  nameDims(builder, routing.rowsOfExperts, ArrayRef(kAxesOfExperts).take_front(3));
  // [X, B, S] as tables of one column.
  Value columns = reshape(byExpert(builder, loc, weights), {shape[2], shape[0], shape[1], 1});
  Value ofRows = EmbeddingOp::create(builder, loc, columns, routing.rows);
  routing.weights = reshape(ofRows, places.getShape(), {"", "batch", ""});
  return routing;
}

Value ModelBuilder::dispatch(Value x, const Routing &routing) {
  Value rows = EmbeddingOp::create(builder, loc, x, routing.rows);
  // Where the tokens are; the experts' products take them to where the experts are.
  nameDims(builder, rows, {"", "batch", "", ""});
  return rows;
}

Value ModelBuilder::expertProduct(StringRef equation, Value x, Value weight,
                                  const Routing &routing) {
  Value y = GroupedProductOp::create(builder, loc, x, weight, routing.rowsOfExperts,
                                     builder.getStringAttr(equation), UnitAttr(),
                                     builder.getF64FloatAttr(routing.occupancy));
  nameDims(builder, y, kAxesOfExperts);
  return y;
}

Value ModelBuilder::weightRows(Value h, const Routing &routing) {
  Value weights =
      BroadcastOp::create(builder, loc, h.getType(), routing.weights, ArrayRef<int64_t>{0, 1, 2});
  nameDims(builder, weights, kAxesOfExperts);
  return mul(h, weights);
}

Value ModelBuilder::combine(Value rows, const Routing &routing, Value x) {
  Value y = EmbeddingGradOp::create(builder, loc, x.getType(), routing.rows, rows);
  nameDims(builder, y, {"batch", "", ""});
  return y;
}

Value ModelBuilder::balanceLoss(ArrayRef<Routing> layers, bool ofSequences) {
  ArrayRef<int64_t> shape = dimsOf(layers.front().scores);
  SmallVector<int64_t> summed{1};
  if (!ofSequences)
    summed.insert(summed.begin(), 0);
  auto sumOf = [&](auto &&valueOf) {
    Value sum;
    for (const Routing &layer : layers) {
      Value ofLayer = ReduceOp::create(builder, loc, valueOf(layer), ReductionKind::Sum, summed);
      sum = sum ? add(sum, ofLayer) : ofLayer;
    }
    return sum;
  };
  Value counts = sumOf([&](const Routing &layer) {
    return ConvertOp::create(builder, loc, layer.isSelected, elementType);
  });
  Value scores = sumOf([](const Routing &layer) { return layer.scores; });
  double sequences = ofSequences ? double(shape[0]) : 1;
  double tokens = double(shape[0] * shape[1]) * double(layers.size()) / sequences;
  Value product = einsum(ofSequences ? "be,be->" : "e,e->", counts, scores);
  return mul(product, constant({}, double(shape[2]) / (tokens * tokens * sequences)));
}
