//===- ExpertLayers.cpp - Routing tokens to experts -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Letters as in ModelBuilder.h, and X experts, C rows of an expert for a sequence.
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

Value ModelBuilder::expertsOfBestGroups(Value ranks, const RoutingKind &kind) {
  ArrayRef<int64_t> shape = shapeOf(ranks);
  Value grouped = reshape(ranks, {shape[0], shape[1], kind.groups, shape[2] / kind.groups});
  auto ofGroups = ReductionKind::Max;
  if (kind.groupScore == GroupScore::TwoBest) {
    ofGroups = ReductionKind::Sum;
    Value isBest = TopKOp::create(builder, loc, getMaskType(grouped.getType()), grouped,
                                  builder.getI64IntegerAttr(2));
    grouped = SelectOp::create(builder, loc, isBest, grouped, constant(shapeOf(grouped), 0));
  }
  Value best = ReduceOp::create(builder, loc, grouped, ofGroups, ArrayRef<int64_t>{3});
  Value isBest = TopKOp::create(builder, loc, getMaskType(best.getType()), best,
                                builder.getI64IntegerAttr(kind.selectedGroups));
  Type all = getMaskType(grouped.getType());
  Value ofExperts = BroadcastOp::create(builder, loc, all, isBest, ArrayRef<int64_t>{0, 1, 2});
  return ReshapeOp::create(builder, loc, getMaskType(ranks.getType()), ofExperts);
}

Routing ModelBuilder::route(Value logits, const RoutingKind &kind, Value bias) {
  ArrayRef<int64_t> shape = shapeOf(logits);
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
      sum = add(sum, constant(shapeOf(sum), kind.epsilon));
    weights = DivOp::create(
        builder, loc, weights,
        BroadcastOp::create(builder, loc, weights.getType(), sum, ArrayRef<int64_t>{0, 1}));
  }
  if (kind.factor != 1)
    weights = scale(weights, kind.factor);
  nameAsTokens(routing.scores);
  nameAsTokens(routing.isSelected);
  nameAsTokens(weights);
  routing.capacity = kind.capacity;
  routing.occupancy = occupancyOf(shape[1], kind.selected, shape[2], kind.capacity);
  ExpertRows(builder, loc).route(routing, weights);
  return routing;
}

Value ModelBuilder::dispatch(Value x, const Routing &routing) {
  return ExpertRows(builder, loc).dispatch(x, routing);
}

Value ModelBuilder::expertProduct(StringRef equation, Value x, Value weight,
                                  const Routing &routing) {
  return ExpertRows(builder, loc).product(equation, x, weight, routing);
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
    ExpertRows(builder, loc).nameAsExperts(dropped);
  Value down = scaleAdapter(expertProduct("xbci,xri->xbcr", dropped, a, routing));
  return add(y, expertProduct("xbcr,xir->xbci", down, b, routing));
}

Adapter ModelBuilder::addTensorAdapter(StringRef module, Value x, Dim experts, Dim in,
                                       const std::vector<Dim> &out, const Routing &routing) {
  Dim rank{options.lora->rank};
  llvm::SaveAndRestore prefixed(layerPrefix,
                                std::string(kAdapterPrefix) + layerPrefix + module.str() + ".");
  Adapter adapter;
  Value a = addParameter("lora_A.weight", {{experts, rank}, {in}},
                         uniform(1 / std::sqrt(static_cast<double>(in.size))));
  adapter.up = addParameter("lora_B.weight", {out, {rank, experts}}, zeros());
  adapter.down = scaleAdapter(expertProduct("xbci,xri->xbcr", x, a, routing));
  return adapter;
}

Value ModelBuilder::addTensorAdapterTo(Value y, Value down, Value up, const Routing &routing) {
  Value ofExperts = TransposeOp::create(builder, loc, up, ArrayRef<int64_t>{2, 0, 1});
  return add(y, expertProduct("xbcr,xir->xbci", down, ofExperts, routing));
}

Value ModelBuilder::weightRows(Value h, const Routing &routing) {
  return ExpertRows(builder, loc).weigh(h, routing);
}

Value ModelBuilder::addExpertBias(Value rows, Value bias) {
  return add(rows, ExpertRows(builder, loc).spreadBias(bias, rows.getType()));
}

Value ModelBuilder::addWeightedBias(Value rows, Value bias, const Routing &routing) {
  Value ofRows = ExpertRows(builder, loc).spreadBias(bias, rows.getType());
  return add(rows, weightRows(ofRows, routing));
}

Value ModelBuilder::combine(Value rows, const Routing &routing, Value x) {
  return ExpertRows(builder, loc).combine(rows, routing, x.getType());
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
                               constant(shapeOf(ofSequences), double(routing.capacity)));
  excess = MaximumOp::create(builder, loc, excess, constant(shapeOf(excess), 0));
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
  if (shapeOf(others.counts).size() == 1)
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
  loads.tokens += double(shapeOf(chosen)[0] * shapeOf(chosen)[1]);
  return loads;
}

Value ModelBuilder::balanceLoss(const ExpertLoads &loads) {
  int64_t experts = shapeOf(loads.counts).back();
  bool ofSequences = shapeOf(loads.counts).size() == 2;
  auto sequences = double(loads.sequences);
  double tokens = loads.tokens / sequences;
  Value product = einsum(ofSequences ? "be,be->" : "e,e->", loads.counts, loads.shares);
  return mul(product, constant({}, double(experts) / (tokens * tokens * sequences)));
}
