//===- ReductionRules.cpp - Sums, means and softmax -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

/// The reduction over the dimensions that "dim" names, or all.
static Value reduceNamed(AtenOp &op, ReductionKind kind, int64_t &count) {
  Value x = op.required("self");
  if (!x)
    return x;
  auto dims = op.dims("dim", shapeOf(x).size());
  if (!dims)
    return op.fail("names a dimension twice, or one that does not exist");
  count = 1;
  for (int64_t dim : *dims)
    count *= shapeOf(x)[dim];
  // Truth values and integers are added as floats, which count exactly up to 2^24.
  bool isCount = !torch::isFloat(x) && kind == ReductionKind::Sum && count < (1 << 24) &&
                 (isMaskTensor(x.getType()) || isa<FloatType>(op.resultElement()));
  if (isCount)
    x = op.convert(x, op.rewriter.getF32Type());
  else if (isa<FloatType>(op.resultElement()))
    x = op.convert(x, op.resultElement());
  return op.convert(op.reduce(x, kind, *dims, op.flag("keepdim")), op.resultElement());
}

template <ReductionKind kind> static Results convertReduction(AtenOp &op) {
  int64_t count = 1;
  return {reduceNamed(op, kind, count)};
}

/// The largest elements, of two tensors or of rows. dtc does not know where in a row they are.
static Results convertMax(AtenOp &op) {
  if (Value other = op.operand("other"))
    return {op.elementwise<MaximumOp>(
        {op.broadcastTo(op.convert(op.required("self"), op.resultElement()),
                        op.resultType().getShape()),
         op.broadcastTo(op.convert(other, op.resultElement()), op.resultType().getShape())})};
  Results results = convertReduction<ReductionKind::Max>(op);
  if (op.op->getNumResults() == 1)
    return results;
  if (!op.op->getResult(1).use_empty())
    return {op.fail("gives the places of the largest elements, for which there is no rule; use the "
                    "elements alone, or torch.topk of one")};
  results.push_back(op.constant(op.resultType(1).getShape(), op.resultType(1).getElementType(), 0));
  return results;
}

static Results convertMean(AtenOp &op) {
  int64_t count = 1;
  Value sum = reduceNamed(op, ReductionKind::Sum, count);
  return {op.scale(sum, 1 / double(count))};
}

/// The sum of squared distances from the mean, divided by the count less the correction.
static Results convertVar(AtenOp &op) {
  Value x = op.convert(op.required("self"), op.resultElement());
  auto dims = x ? op.dims("dim", shapeOf(x).size()) : std::nullopt;
  if (!dims)
    return {x ? op.fail("names a dimension twice, or one that does not exist") : x};
  double count = 1;
  for (int64_t dim : *dims)
    count *= double(shapeOf(x)[dim]);
  // Overloads say it in two ways, and divide by the count less one where they say nothing.
  bool isBiased = op.op->hasAttr("unbiased") && !op.flag("unbiased");
  double divisor = count - op.number("correction").value_or(isBiased ? 0 : 1);
  if (divisor <= 0)
    return {op.fail("is of too few elements for its correction")};
  Value mean = op.scale(op.reduce(x, ReductionKind::Sum, *dims, /*keep=*/true), 1 / count);
  Value distance = op.elementwise<SubOp>({x, op.broadcastTo(mean, shapeOf(x))});
  Value squares = op.elementwise<MulOp>({distance, distance});
  squares = op.reduce(squares, ReductionKind::Sum, *dims, op.flag("keepdim"));
  return {op.scale(squares, 1 / divisor)};
}

/// Sums of the elements up to each: those of 1, 2, 4... elements in turn.
static Results convertCumsum(AtenOp &op) {
  Value x = op.convert(op.required("self"), op.resultElement());
  if (!x)
    return {};
  int64_t rank = shapeOf(x).size();
  std::optional<int64_t> dim = op.dim("dim", rank);
  if (!dim || !isNumericTensor(x.getType()))
    return {op.fail("names a dimension that does not exist, or has truth values")};
  int64_t size = shapeOf(x)[*dim];
  for (int64_t shift = 1; shift < size; shift *= 2) {
    SmallVector<int64_t> low(size_t(rank), 0), high(size_t(rank), 0);
    low[*dim] = shift;
    Value before = op.slice(x, *dim, 0, size - shift);
    before = PadOp::create(op.rewriter, op.loc, x.getType(), before, low, high, 0.0);
    x = op.elementwise<AddOp>({x, before});
  }
  return {x};
}

/// Differences of neighbours, of x with elements before and after it.
static Results convertDiff(AtenOp &op) {
  SmallVector<Value> parts;
  for (StringRef name : {"prepend", "self", "append"})
    if (Value part = name == "self" ? op.required(name) : op.operand(name))
      parts.push_back(op.convert(part, op.resultElement()));
  int64_t rank = op.resultType().getRank();
  std::optional<int64_t> dim = op.op->hasAttr("dim") ? op.dim("dim", rank) : rank - 1;
  if (!op.operand("self") || !dim || *dim < 0 || op.integer("n").value_or(1) != 1 ||
      llvm::any_of(parts, [&](Value part) {
        return part && (int64_t(shapeOf(part).size()) != rank || !isNumericTensor(part.getType()));
      }))
    return {op.fail("takes differences of differences, of truth values, or of tensors of several "
                    "ranks, for which there is no rule")};
  Value x = op.concat(parts, *dim);
  if (!x)
    return {};
  int64_t count = shapeOf(x)[*dim] - 1;
  return {op.elementwise<SubOp>({op.slice(x, *dim, 1, count), op.slice(x, *dim, 0, count)})};
}

/// Applies a function of the last dimension to the dimension "dim".
static Results convertAlongLast(AtenOp &op, function_ref<Value(Value)> apply) {
  Value x = op.convert(op.required("self"), op.resultElement());
  if (!x)
    return {};
  int64_t rank = shapeOf(x).size();
  std::optional<int64_t> dim = op.dim("dim", rank);
  if (!dim || !torch::isFloat(x))
    return {op.fail("names a dimension that does not exist, or has no floats")};
  x = apply(op.swapDims(x, *dim, rank - 1));
  return {op.swapDims(x, *dim, rank - 1)};
}

static Results convertSoftmax(AtenOp &op) {
  return convertAlongLast(
      op, [&](Value x) -> Value { return SoftmaxOp::create(op.rewriter, op.loc, x.getType(), x); });
}

/// x - max(x) - log(sum(exp(x - max(x)))).
static Results convertLogSoftmax(AtenOp &op) {
  return convertAlongLast(op, [&](Value x) -> Value {
    int64_t last = int64_t(shapeOf(x).size()) - 1;
    auto spread = [&](Value rows) { return op.broadcastTo(rows, shapeOf(x)); };
    Value shifted =
        op.elementwise<SubOp>({x, spread(op.reduce(x, ReductionKind::Max, {last}, /*keep=*/true))});
    Value sum =
        op.reduce(op.elementwise<ExpOp>(shifted), ReductionKind::Sum, {last}, /*keep=*/true);
    return op.elementwise<SubOp>({shifted, spread(op.elementwise<LogOp>(sum))});
  });
}

ArrayRef<Rule> dtc::torch::reductionRules() {
  static const Rule rules[] = {
      {"aten.amax", convertReduction<ReductionKind::Max>},
      {"aten.amin", convertReduction<ReductionKind::Min>},
      {"aten.cumsum", convertCumsum},
      {"aten.diff", convertDiff},
      {"aten.log_softmax", convertLogSoftmax},
      {"aten.max", convertMax},
      {"aten.mean", convertMean},
      {"aten.softmax", convertSoftmax},
      {"aten.sum", convertReduction<ReductionKind::Sum>},
      {"aten.var", convertVar},
  };
  return rules;
}
