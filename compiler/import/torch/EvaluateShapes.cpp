//===- EvaluateShapes.cpp - Views, parts and lookups of known values ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/KnownOp.h"

#include "llvm/ADT/StringMap.h"

#include <algorithm>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

static MaybeConstant evaluateView(const KnownOp &op) {
  MaybeConstant x = op.known("self");
  // With another element type, the view reinterprets the bits.
  if (!x || x->element != op.element() || x->size() != op.type.getNumElements() ||
      (x->distinct() != 1 && x->size() > kMaxConstantElements))
    return std::nullopt;
  return x->reshaped(op.shape());
}

static MaybeConstant evaluateExpand(const KnownOp &op) {
  MaybeConstant x = op.known("self");
  return x ? x->broadcast(op.shape()) : std::nullopt;
}

static MaybeConstant evaluateTranspose(const KnownOp &op) {
  MaybeConstant x = op.known("self");
  if (!x)
    return std::nullopt;
  int64_t rank = x->shape.size();
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (op.name() == "permute") {
    std::optional<ArrayRef<int64_t>> dims = op.integers("dims");
    if (!dims || int64_t(dims->size()) != rank)
      return std::nullopt;
    for (auto [to, from] : llvm::zip(order, *dims))
      to = from < 0 ? from + rank : from;
    SmallVector<int64_t> sorted(order);
    llvm::sort(sorted);
    if (!llvm::equal(sorted, llvm::seq<int64_t>(0, rank)))
      return std::nullopt;
    return x->permuted(order);
  }
  auto first = op.name() == "t" ? std::optional<int64_t>(0) : op.dim("dim0", rank);
  auto second = op.name() == "t" ? std::optional<int64_t>(1) : op.dim("dim1", rank);
  if (!first || !second || rank < 2)
    return std::nullopt;
  std::swap(order[*first], order[*second]);
  return x->permuted(order);
}

static MaybeConstant evaluateSlice(const KnownOp &op) {
  MaybeConstant x = op.known("self");
  if (!x)
    return std::nullopt;
  std::optional<int64_t> dim = op.dim("dim", x->shape.size());
  if (!dim)
    return std::nullopt;
  bool selects = op.name() == "select";
  if (!selects && op.type.getRank() != int64_t(x->shape.size()))
    return std::nullopt;
  int64_t size = x->shape[*dim], count = selects ? 1 : op.shape()[*dim];
  int64_t step = selects ? 1 : op.integer("step").value_or(1);
  int64_t begin = op.integer(selects ? "index" : "start").value_or(0);
  begin = begin < 0 ? std::max<int64_t>(begin + size, 0) : begin;
  if (step < 1 || begin >= size || count - 1 > (size - 1 - begin) / step)
    return std::nullopt;
  ConstantTensor part = x->sliced(*dim, begin, count, step);
  return selects && part.size() == op.type.getNumElements() ? part.reshaped(op.shape()) : part;
}

/// x[indices] for all of the first dimensions, with integers that are broadcast with each other.
static MaybeConstant evaluateIndex(const KnownOp &op) {
  MaybeConstant x = op.known("self");
  SmallVector<ConstantTensor> indices;
  for (Value each : op.list("indices")) {
    MaybeConstant index = op.known(each);
    if (!index || index->element.isInteger(1))
      return std::nullopt;
    indices.push_back(std::move(*index));
  }
  if (!x || indices.empty() || indices.size() > x->shape.size())
    return std::nullopt;
  ArrayRef<int64_t> rest = ArrayRef(x->shape).drop_front(indices.size());
  if (rest.size() > op.shape().size() || op.shape().take_back(rest.size()) != rest ||
      op.type.getNumElements() > kMaxConstantElements)
    return std::nullopt;
  ArrayRef<int64_t> places = op.shape().drop_back(rest.size());
  for (ConstantTensor &index : indices) {
    MaybeConstant wide = index.broadcast(places);
    if (!wide)
      return std::nullopt;
    index = std::move(*wide);
  }
  std::vector<double> values;
  bool inside = true;
  forEachIndex(op.shape(), [&](ArrayRef<int64_t> place) {
    SmallVector<int64_t> from;
    for (auto [dim, index] : llvm::enumerate(indices)) {
      double row = index.at(place.take_front(places.size()));
      row += row < 0 ? double(x->shape[dim]) : 0;
      inside &= row >= 0 && row < double(x->shape[dim]);
      from.push_back(inside ? int64_t(row) : 0);
    }
    llvm::append_range(from, place.drop_front(places.size()));
    values.push_back(x->at(from));
  });
  if (!inside)
    return std::nullopt;
  return ConstantTensor(op.element(), op.shape(), std::move(values)).compressed();
}

static MaybeConstant evaluateGather(const KnownOp &op) {
  MaybeConstant x = op.known("self"), index = op.known("index");
  // Where all elements are one, the indices do not matter.
  if (x && x->distinct() == 1 && op.operand("index"))
    return ConstantTensor::splat(op.element(), op.shape(),
                                 x->at(SmallVector<int64_t>(x->shape.size(), 0)));
  if (!x || !index || x->shape.size() != index->shape.size() ||
      op.type.getNumElements() > kMaxConstantElements || ArrayRef(index->shape) != op.shape())
    return std::nullopt;
  std::optional<int64_t> dim = op.dim("dim", x->shape.size());
  bool inside = dim.has_value();
  std::vector<double> values;
  forEachIndex(op.shape(), [&](ArrayRef<int64_t> place) {
    SmallVector<int64_t> from(place);
    double row = index->at(place);
    inside &= row >= 0 && row < double(kMaxConstantElements);
    if (inside)
      from[*dim] = int64_t(row);
    for (auto [each, size] : llvm::zip(from, x->shape))
      inside &= each >= 0 && each < size;
    values.push_back(inside ? x->at(from) : 0);
  });
  if (!inside)
    return std::nullopt;
  return ConstantTensor(op.element(), op.shape(), std::move(values)).compressed();
}

static MaybeConstant evaluateCat(const KnownOp &op) {
  std::optional<int64_t> dim = op.dim("dim", op.shape().size());
  SmallVector<ConstantTensor> parts;
  int64_t total = 0;
  for (Value each : op.list("tensors")) {
    MaybeConstant part = op.known(each);
    if (!part || !dim || part->shape.size() != op.shape().size())
      return std::nullopt;
    SmallVector<int64_t> expected(op.shape());
    expected[*dim] = part->shape[*dim];
    if (part->shape != expected)
      return std::nullopt;
    total += part->shape[*dim];
    parts.push_back(std::move(*part));
  }
  if (!dim || total != op.shape()[*dim] || op.type.getNumElements() > kMaxConstantElements)
    return std::nullopt;
  std::vector<double> values;
  forEachIndex(op.shape(), [&](ArrayRef<int64_t> place) {
    SmallVector<int64_t> from(place);
    const ConstantTensor *part = parts.begin();
    while (from[*dim] >= part->shape[*dim])
      from[*dim] -= (part++)->shape[*dim];
    values.push_back(rounded(part->at(from), op.element()));
  });
  return ConstantTensor(op.element(), op.shape(), std::move(values)).compressed();
}

/// Sums of the elements up to each, or differences of neighbours.
static MaybeConstant evaluateAlong(const KnownOp &op) {
  MaybeConstant x = op.known("self");
  std::optional<int64_t> dim = x ? op.dim("dim", x->shape.size()) : std::nullopt;
  if (!dim || x->size() > kMaxConstantElements)
    return std::nullopt;
  bool sums = op.name() == "cumsum";
  MaybeConstant before = sums ? std::nullopt : op.known("prepend");
  if (!sums && (op.operand("append") || !before || before->shape[*dim] != 1 ||
                op.integer("n").value_or(1) != 1))
    return std::nullopt;
  if (ArrayRef(x->shape) != op.shape() || (before && before->shape.size() != x->shape.size()))
    return std::nullopt;
  if (before) {
    before = before->broadcast(op.shape());
    if (!before)
      return std::nullopt;
  }
  std::vector<double> values;
  SmallVector<int64_t> previous;
  auto strideOf = [&] {
    int64_t stride = 1;
    for (int64_t size : op.shape().drop_front(*dim + 1))
      stride *= size;
    return stride;
  };
  int64_t stride = strideOf();
  forEachIndex(op.shape(), [&](ArrayRef<int64_t> place) {
    previous.assign(place.begin(), place.end());
    bool isFirst = place[*dim] == 0;
    previous[*dim] -= isFirst ? 0 : 1;
    double value = x->at(place);
    if (sums)
      value += isFirst ? 0 : values[values.size() - size_t(stride)];
    else
      value -= isFirst ? before->at(previous) : x->at(previous);
    values.push_back(rounded(value, op.element()));
  });
  return ConstantTensor(op.element(), op.shape(), std::move(values)).compressed();
}

static MaybeConstant evaluateTriangle(const KnownOp &op) {
  MaybeConstant x = op.known("self");
  if (!x || x->shape.size() < 2 || ArrayRef(x->shape) != op.shape() ||
      op.type.getNumElements() > kMaxConstantElements)
    return std::nullopt;
  int64_t diagonal = op.integer("diagonal").value_or(0);
  bool isLower = op.name() == "tril";
  std::vector<double> values;
  forEachIndex(op.shape(), [&](ArrayRef<int64_t> place) {
    int64_t distance = place.back() - place[place.size() - 2];
    values.push_back((isLower ? distance <= diagonal : distance >= diagonal) ? x->at(place) : 0);
  });
  return ConstantTensor(op.element(), op.shape(), std::move(values)).compressed();
}

/// [..., m, k] times [..., k, n], in the order of PyTorch's sums or nearly so.
static MaybeConstant evaluateMatmul(const KnownOp &op) {
  MaybeConstant lhs = op.known("self"), rhs = op.known("other");
  rhs = rhs ? rhs : op.known("mat2");
  if (!lhs || !rhs || lhs->shape.size() != op.shape().size() ||
      rhs->shape.size() != op.shape().size() || op.shape().size() < 2)
    return std::nullopt;
  int64_t inner = lhs->shape.back();
  SmallVector<int64_t> left(op.shape()), right(op.shape());
  left.back() = inner;
  right[right.size() - 2] = inner;
  MaybeConstant a = lhs->broadcast(left), b = rhs->broadcast(right);
  if (!a || !b || op.type.getNumElements() > kMaxConstantElements / std::max<int64_t>(inner, 1))
    return std::nullopt;
  std::vector<double> values;
  forEachIndex(op.shape(), [&](ArrayRef<int64_t> place) {
    SmallVector<int64_t> row(place), column(place);
    double sum = 0;
    for (int64_t i = 0; i < inner; ++i) {
      row.back() = column[column.size() - 2] = i;
      sum += a->at(row) * b->at(column);
    }
    values.push_back(rounded(sum, op.element()));
  });
  return ConstantTensor(op.element(), op.shape(), std::move(values)).compressed();
}

Evaluator dtc::torch::findShapeEvaluator(StringRef name) {
  static const llvm::StringMap<Evaluator> table = {
      {"aten._unsafe_view", evaluateView},   {"aten.bmm", evaluateMatmul},
      {"aten.broadcast_to", evaluateExpand}, {"aten.cat", evaluateCat},
      {"aten.cumsum", evaluateAlong},        {"aten.diff", evaluateAlong},
      {"aten.expand", evaluateExpand},       {"aten.flatten", evaluateView},
      {"aten.gather", evaluateGather},       {"aten.index", evaluateIndex},
      {"aten.matmul", evaluateMatmul},       {"aten.mm", evaluateMatmul},
      {"aten.permute", evaluateTranspose},   {"aten.reshape", evaluateView},
      {"aten.select", evaluateSlice},        {"aten.slice", evaluateSlice},
      {"aten.squeeze", evaluateView},        {"aten.t", evaluateTranspose},
      {"aten.transpose", evaluateTranspose}, {"aten.tril", evaluateTriangle},
      {"aten.triu", evaluateTriangle},       {"aten.unflatten", evaluateView},
      {"aten.unsqueeze", evaluateView},      {"aten.view", evaluateView},
  };
  return table.lookup(name);
}
