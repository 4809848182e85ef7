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
#include "plan/AdapterNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

#include <cmath>

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

Value ModelBuilder::expertsOfBestGroups(Value ranks, const RoutingKind &kind) {
  ArrayRef<int64_t> shape = dimsOf(ranks);
  Value grouped = reshape(ranks, {shape[0], shape[1], kind.groups, shape[2] / kind.groups});
  auto ofGroups = ReductionKind::Max;
  if (kind.groupScore == GroupScore::TwoBest) {
    ofGroups = ReductionKind::Sum;
    Value isBest = TopKOp::create(builder, loc, getMaskType(grouped.getType()), grouped,
                                  builder.getI64IntegerAttr(2));
    grouped = SelectOp::create(builder, loc, isBest, grouped, constant(dimsOf(grouped), 0));
  }
  Value best = ReduceOp::create(builder, loc, grouped, ofGroups, ArrayRef<int64_t>{3});
  Value isBest = TopKOp::create(builder, loc, getMaskType(best.getType()), best,
                                builder.getI64IntegerAttr(kind.selectedGroups));
  Type all = getMaskType(grouped.getType());
  Value ofExperts = BroadcastOp::create(builder, loc, all, isBest, ArrayRef<int64_t>{0, 1, 2});
  return ReshapeOp::create(builder, loc, getMaskType(ranks.getType()), ofExperts);
}

Routing ModelBuilder::route(Value logits, const RoutingKind &kind, Value bias) {
  ArrayRef<int64_t> shape = dimsOf(logits);
  Routing routing;
  // In the model's own type, so that nothing is rounded where a plan computes in 16 bits: a
  // conversion is not narrowed.
  logits = ConvertOp::create(builder, loc, logits, elementType);
  routing.areShares = kind.scores != RouterScores::Sigmoid;
  routing.scores =
      routing.areShares
          ? Value(SoftmaxOp::create(builder, loc, logits, /*causal=*/false, /*scale=*/1.0))
          : Value(SigmoidOp::create(builder, loc, logits));
  bool ofSelected = kind.scores == RouterScores::SoftmaxOfSelected;
  Value ranks = ofSelected ? logits : routing.scores;
  if (bias)
    ranks = addBias(ranks, ConvertOp::create(builder, loc, bias, elementType));
  if (kind.selectedGroups < kind.groups)
    ranks = SelectOp::create(builder, loc, expertsOfBestGroups(ranks, kind), ranks,
                             constant(shape, -1e30));
  routing.isSelected = TopKOp::create(builder, loc, getMaskType(logits.getType()), ranks,
                                      builder.getI64IntegerAttr(kind.selected));
  Value weights =
      SelectOp::create(builder, loc, routing.isSelected, ofSelected ? logits : routing.scores,
                       constant(shape, ofSelected ? -1e30 : 0));
  if (ofSelected)
    weights = SoftmaxOp::create(builder, loc, weights, /*causal=*/false, /*scale=*/1.0);
  if (kind.normalizes) {
    Value sum = ReduceOp::create(builder, loc, weights, ReductionKind::Sum, ArrayRef<int64_t>{2});
    if (kind.epsilon != 0)
      sum = add(sum, constant(dimsOf(sum), kind.epsilon));
    weights = DivOp::create(
        builder, loc, weights,
        BroadcastOp::create(builder, loc, weights.getType(), sum, ArrayRef<int64_t>{0, 1}));
  }
  if (kind.factor != 1)
    weights = scale(weights, kind.factor);
  // Routing is where the tokens are; only the rows' weights go from there to the experts.
  nameDims(builder, routing.scores, {"batch", "", ""});
  nameDims(builder, routing.isSelected, {"batch", "", ""});
  nameDims(builder, weights, {"batch", "", ""});
  routing.capacity = kind.capacity;
  routing.occupancy =
      std::min(1.0, double(shape[1] * kind.selected) / double(shape[2] * kind.capacity));
  auto places = RankedTensorType::get({shape[2], shape[0], kind.capacity}, builder.getI32Type());
  routing.rows =
      NonzeroOp::create(builder, loc, places, byExpert(builder, loc, routing.isSelected));
  nameDims(builder, routing.rows, {"", "batch", ""});
  // The experts compute the rows' indices once more for themselves, so that nothing else of the
  // routing goes there.
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

Value ModelBuilder::adaptExperts(Value y, const FileStack &layers, Value x, Dim experts, Dim in,
                                 Dim out, const Routing &routing) {
  std::vector<std::string> modules;
  for (int64_t number = layers.begin; number < layers.end; ++number)
    modules.push_back(layerPrefix + layers.tensor(number));
  if (!loraTargets.matchAll(modules))
    return y;
  Dim rank{options.lora->rank};
  llvm::SaveAndRestore prefixed(layerPrefix, std::string(kAdapterPrefix) + layerPrefix);
  auto parameter = [&](StringRef part, Dim rows, Dim columns, Attribute init) {
    FileStack stack = layers;
    stack.after += ("." + part + ".weight").str();
    return addParameter(stack.name(), {{experts}, {rows}, {columns}}, init);
  };
  // As PEFT draws the adapter of a linear layer.
  Value a = parameter("lora_A", rank, in, uniform(1 / std::sqrt(static_cast<double>(in.size))));
  Value b = parameter("lora_B", out, rank, zeros());
  Value dropped = dropout(x, options.lora->dropout);
  // Where the experts are, so that the rows come there once for the layers and their adapters.
  if (dropped != x)
    nameDims(builder, dropped, kAxesOfExperts);
  Value down = scaleAdapter(expertProduct("xbci,xri->xbcr", dropped, a, routing));
  return add(y, expertProduct("xbcr,xir->xbci", down, b, routing));
}

Value ModelBuilder::weightRows(Value h, const Routing &routing) {
  Value weights =
      BroadcastOp::create(builder, loc, h.getType(), routing.weights, ArrayRef<int64_t>{0, 1, 2});
  nameDims(builder, weights, kAxesOfExperts);
  return mul(h, weights);
}

Value ModelBuilder::addExpertBias(Value rows, Value bias) {
  Value ofRows = BroadcastOp::create(builder, loc, rows.getType(), bias, ArrayRef<int64_t>{0, 3});
  nameDims(builder, ofRows, kAxesOfExperts);
  return add(rows, ofRows);
}

Value ModelBuilder::addWeightedBias(Value rows, Value bias, const Routing &routing) {
  Value ofRows = BroadcastOp::create(builder, loc, rows.getType(), bias, ArrayRef<int64_t>{0, 3});
  nameDims(builder, ofRows, kAxesOfExperts);
  return add(rows, weightRows(ofRows, routing));
}

Value ModelBuilder::combine(Value rows, const Routing &routing, Value x) {
  Value y = EmbeddingGradOp::create(builder, loc, x.getType(), routing.rows, rows);
  nameDims(builder, y, {"batch", "", ""});
  return y;
}

Value ModelBuilder::tokensOfExperts(const Routing &routing) {
  Value chosen = ConvertOp::create(builder, loc, routing.isSelected, elementType);
  return ReduceOp::create(builder, loc, chosen, ReductionKind::Sum, ArrayRef<int64_t>{0, 1});
}

Value ModelBuilder::droppedTokens(const Routing &routing) {
  Value chosen = ConvertOp::create(builder, loc, routing.isSelected, elementType);
  Value ofSequences =
      ReduceOp::create(builder, loc, chosen, ReductionKind::Sum, ArrayRef<int64_t>{1});
  Value excess = SubOp::create(builder, loc, ofSequences,
                               constant(dimsOf(ofSequences), double(routing.capacity)));
  excess = MaximumOp::create(builder, loc, excess, constant(dimsOf(excess), 0));
  return ReduceOp::create(builder, loc, excess, ReductionKind::Sum, ArrayRef<int64_t>{0});
}

ExpertLoads ModelBuilder::noLoads(int64_t experts, bool ofSequences) {
  SmallVector<int64_t> shape{experts};
  if (ofSequences)
    shape.insert(shape.begin(), options.batch);
  ExpertLoads loads;
  loads.counts = constant(shape, 0);
  loads.shares = constant(shape, 0);
  loads.sequences = ofSequences ? options.batch : 1;
  return loads;
}

ExpertLoads ModelBuilder::addLoads(const ExpertLoads &others, const Routing &routing) {
  SmallVector<int64_t> summed{1};
  if (dimsOf(others.counts).size() == 1)
    summed.insert(summed.begin(), 0);
  auto plus = [&](Value sum, Value value) {
    return add(sum, ReduceOp::create(builder, loc, value, ReductionKind::Sum, summed));
  };
  Value shares = routing.scores;
  if (!routing.areShares) {
    Value sum = ReduceOp::create(builder, loc, shares, ReductionKind::Sum, ArrayRef<int64_t>{2});
    sum = BroadcastOp::create(builder, loc, shares.getType(), sum, ArrayRef<int64_t>{0, 1});
    shares = DivOp::create(builder, loc, shares, sum);
  }
  ExpertLoads loads = others;
  Value chosen = ConvertOp::create(builder, loc, routing.isSelected, elementType);
  loads.counts = plus(others.counts, chosen);
  loads.shares = plus(others.shares, shares);
  loads.tokens += double(dimsOf(chosen)[0] * dimsOf(chosen)[1]);
  return loads;
}

Value ModelBuilder::balanceLoss(const ExpertLoads &loads) {
  int64_t experts = dimsOf(loads.counts).back();
  bool ofSequences = dimsOf(loads.counts).size() == 2;
  auto sequences = double(loads.sequences);
  double tokens = loads.tokens / sequences;
  Value product = einsum(ofSequences ? "be,be->" : "e,e->", loads.counts, loads.shares);
  return mul(product, constant({}, double(experts) / (tokens * tokens * sequences)));
}
