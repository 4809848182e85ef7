//===- ExpertRules.cpp - The experts of a captured model ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// python/dtc/torch/mixtures.py writes the ops. Shapes: T tokens, D width, X experts, B samples,
// C = T / B rows of an expert for a sample: no token is dropped.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ExpertRows.h"
#include "compiler/import/torch/AtenOp.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

static Results convertTopK(AtenOp &op) {
  Value x = op.required("self");
  std::optional<int64_t> k = op.integer("k");
  if (!x)
    return {};
  if (!torch::isFloat(x) || shapeOf(x).empty() || !k || *k < 1 || *k > shapeOf(x).back())
    return {op.fail("takes more elements than a row of floats has, or none")};
  return {TopKOp::create(op.rewriter, op.loc, getMaskType(x.getType()), x,
                         op.rewriter.getI64IntegerAttr(*k))};
}

/// The operand, if it is a tensor of floats, or of integers where `isIndex`, of the rank.
static Value operandOfRank(AtenOp &op, StringRef name, size_t rank, bool isIndex = false) {
  Value value = op.required(name);
  if (value && (shapeOf(value).size() != rank ||
                !(isIndex ? isIndexTensor(value.getType()) : torch::isFloat(value))))
    return op.fail("has an operand '" + name + "' that is no tensor of " + Twine(rank) +
                   " dimensions of the kind that it takes");
  return value;
}

/// chosen i1 [T, X], weights [T, X] -> the places of rows, the same for the experts, and weights,
/// all [X, B, C].
static Results convertRows(AtenOp &op) {
  Value chosen = op.required("chosen"), weights = operandOfRank(op, "weights", 2);
  std::optional<int64_t> samples = op.integer("samples");
  if (!chosen || !weights)
    return {};
  ArrayRef<int64_t> shape = shapeOf(chosen);
  if (!isMaskTensor(chosen.getType()) || shape != shapeOf(weights) || !samples || *samples < 1 ||
      shape[0] % *samples != 0)
    return {op.fail("has tokens that are not those of all samples, or that chose no experts")};
  SmallVector<int64_t> ofSamples{*samples, shape[0] / *samples, shape[1]};
  Routing routing;
  routing.isSelected = op.reshape(chosen, ofSamples);
  routing.capacity = ofSamples[1];
  ExpertRows(op.rewriter, op.loc).route(routing, op.reshape(weights, ofSamples));
  return {routing.rows, routing.rowsOfExperts, routing.weights};
}

/// x [T, D], rows [X, B, C] -> [X, B, C, D].
static Results convertDispatch(AtenOp &op) {
  Value x = operandOfRank(op, "x", 2);
  Routing routing;
  routing.rows = operandOfRank(op, "rows", 3, /*isIndex=*/true);
  if (!x || !routing.rows)
    return {};
  ArrayRef<int64_t> rows = shapeOf(routing.rows);
  Value tokens = op.reshape(x, {rows[1], rows[2], shapeOf(x)[1]});
  return {tokens ? ExpertRows(op.rewriter, op.loc).dispatch(tokens, routing) : Value()};
}

/// x [X, B, C, in], weight [X, out, in], or [X, in, out] if that is transposed -> [X, B, C, out].
static Results convertProduct(AtenOp &op) {
  Value x = operandOfRank(op, "x", 4), weight = operandOfRank(op, "weight", 3);
  Routing routing;
  routing.rowsOfExperts = operandOfRank(op, "rows", 3, /*isIndex=*/true);
  if (!x || !weight || !routing.rowsOfExperts)
    return {};
  bool isTransposed = op.flag("transposed");
  ArrayRef<int64_t> from = shapeOf(x), matrices = shapeOf(weight);
  int64_t selected = op.integer("selected").value_or(1);
  if (from.drop_back() != shapeOf(routing.rowsOfExperts) || matrices[0] != from[0] ||
      matrices[isTransposed ? 1 : 2] != from[3] || selected < 1 ||
      typeOf(x).getElementType() != typeOf(weight).getElementType())
    return {op.fail("multiplies rows and weights of shapes or types that do not fit")};
  routing.occupancy = occupancyOf(from[2], selected, from[0], from[2]);
  return {ExpertRows(op.rewriter, op.loc)
              .product(isTransposed ? "xbck,xkn->xbcn" : "xbck,xnk->xbcn", x, weight, routing)};
}

/// x [X, B, C, F], weights [X, B, C] -> [X, B, C, F].
static Results convertWeigh(AtenOp &op) {
  Value x = operandOfRank(op, "x", 4);
  Routing routing;
  routing.weights = op.convert(operandOfRank(op, "weights", 3), op.resultElement());
  if (!x || !routing.weights)
    return {};
  if (shapeOf(x).drop_back() != shapeOf(routing.weights) ||
      typeOf(x).getElementType() != op.resultElement())
    return {op.fail("weighs rows of a shape or a type that does not fit")};
  return {ExpertRows(op.rewriter, op.loc).weigh(x, routing)};
}

/// x [X, B, C, D], rows [X, B, C] -> [T, D].
static Results convertCombine(AtenOp &op) {
  Value x = operandOfRank(op, "x", 4);
  Routing routing;
  routing.rows = operandOfRank(op, "rows", 3, /*isIndex=*/true);
  if (!x || !routing.rows)
    return {};
  ArrayRef<int64_t> rows = shapeOf(x);
  if (rows.drop_back() != shapeOf(routing.rows))
    return {op.fail("adds up rows of a shape that does not fit")};
  auto type = RankedTensorType::get({rows[1], rows[2], rows[3]}, typeOf(x).getElementType());
  Value tokens = ExpertRows(op.rewriter, op.loc).combine(x, routing, type);
  return {op.reshape(tokens, {rows[1] * rows[2], rows[3]})};
}

/// What recognizeTopK() has left: operators that take numbers which depend on the batch.
static Results refuseNumbers(AtenOp &op) {
  return {op.fail("has a rule for the numbers that torch.topk gives alone; compare numbers with "
                  "torch.arange, and choose by torch.where")};
}

ArrayRef<Rule> dtc::torch::expertRules() {
  static const Rule rules[] = {
      {"aten.histc", refuseNumbers},
      {"aten.scatter", refuseNumbers},
      {"aten.topk", refuseNumbers},
      {"torch.combine_rows", convertCombine},
      {"torch.dispatch_rows", convertDispatch},
      {"torch.expert_product", convertProduct},
      {"torch.expert_rows", convertRows},
      {"torch.top_k", convertTopK},
      {"torch.weigh_rows", convertWeigh},
  };
  return rules;
}

bool dtc::torch::isExpertOp(StringRef name) {
  return name != "torch.top_k" &&
         llvm::any_of(expertRules(), [&](const Rule &rule) { return rule.name == name; });
}
