//===- LookupRules.cpp - Lookups by index, and the cross entropy ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

/// The first of rows that follow each other, if the elements of a constant are those.
static std::optional<int64_t> firstOfRun(Value ids) {
  auto constant = ids.getDefiningOp<ConstantOp>();
  if (!constant || !isIndexTensor(ids.getType()))
    return std::nullopt;
  std::optional<int64_t> first;
  int64_t number = 0;
  for (const APInt &each : constant.getValue().getValues<APInt>()) {
    first = first.value_or(each.getSExtValue());
    if (each.getSExtValue() != *first + number++)
      return std::nullopt;
  }
  return first;
}

/// Replaces the negative ones of known indices, which count from the end, by `rows` more.
static Value wrapped(AtenOp &op, Value ids, int64_t rows) {
  auto constant = ids.getDefiningOp<ConstantOp>();
  if (!constant || !isIndexTensor(ids.getType()))
    return ids;
  SmallVector<APInt> values;
  for (const APInt &each : constant.getValue().getValues<APInt>())
    values.push_back(each.isNegative() ? each + uint64_t(rows) : each);
  return ConstantOp::create(op.rewriter, op.loc, DenseElementsAttr::get(typeOf(ids), values));
}

/// Rows of a table [v, d]. Known rows that follow each other, such as those of positions, are a
/// slice.
static Value lookUp(AtenOp &op, Value table, Value ids) {
  if (!table || !ids)
    return {};
  if (shapeOf(table).size() != 2 || !torch::isFloat(table) || !isIndexTensor(ids.getType()))
    return op.fail("looks up in a tensor that is no table of floats of 2 dimensions, or by no "
                   "integers");
  SmallVector<int64_t> shape(shapeOf(ids));
  shape.push_back(shapeOf(table)[1]);
  if (std::optional<int64_t> first = firstOfRun(ids))
    return op.reshape(op.slice(table, 0, *first, typeOf(ids).getNumElements()), shape);
  return EmbeddingOp::create(op.rewriter, op.loc, table, ids);
}

static Results convertEmbedding(AtenOp &op) {
  if (op.flag("scale_grad_by_freq"))
    return {op.fail("scales its gradient by frequency, for which there is no rule")};
  if (op.integer("padding_idx").value_or(-1) >= 0)
    op.conversion.warning(op.loc, "the embedding has padding_idx " +
                                      Twine(*op.integer("padding_idx")) +
                                      ", whose row PyTorch does not train; dtc trains it as the "
                                      "others");
  return {lookUp(op, op.required("weight"), op.required("indices"))};
}

/// The dimension of the shape along which known indices, repeated to it, are 0, 1, 2... to the last
/// of `size` elements; nothing if they are others.
static std::optional<int64_t> runAlong(Value ids, ArrayRef<int64_t> shape, int64_t size) {
  while (auto broadcast = ids.getDefiningOp<BroadcastOp>())
    ids =
        broadcast.getOperand(); // of an expanded constant, whose other dimensions have one element
  ArrayRef<int64_t> own = shapeOf(ids);
  const auto *varying = llvm::find_if(own, [](int64_t each) { return each != 1; });
  if (firstOfRun(ids) != 0 || typeOf(ids).getNumElements() != size || varying == own.end() ||
      *varying != size || own.size() > shape.size())
    return std::nullopt;
  int64_t dim = varying - own.begin() + int64_t(shape.size() - own.size());
  return shape[dim] == size ? std::optional(dim) : std::nullopt;
}

/// x[rows, columns...] where each index runs along a dimension of its own, as a mask of tokens is
/// spread over queries and keys: x, repeated along the other dimensions. Null if they are others.
static Value spreadByIndices(AtenOp &op, Value x, ArrayRef<Value> indices) {
  ArrayRef<int64_t> shape = op.resultType().getShape();
  SmallVector<int64_t> dims, kept;
  for (auto [number, ids] : llvm::enumerate(indices)) {
    if (!ids || number >= shapeOf(x).size() || !isIndexTensor(ids.getType()))
      return {};
    int64_t size = shapeOf(x)[number];
    if (size == 1)
      continue; // one element has one index
    std::optional<int64_t> dim = runAlong(ids, shape, size);
    if (!dim || (!dims.empty() && *dim <= dims.back()))
      return {};
    dims.push_back(*dim);
    kept.push_back(size);
  }
  if (indices.size() != shapeOf(x).size())
    return {};
  return op.broadcastAlong(op.reshape(x, kept), shape, dims);
}

/// x[ids], rows of the first dimension.
static Results convertIndex(AtenOp &op) {
  SmallVector<Value> indices = op.list("indices");
  if (Value x = op.operand("self"); x && indices.size() > 1)
    if (Value spread = spreadByIndices(op, x, indices))
      return {spread};
  if (indices.size() != 1 || !indices[0] || isMaskTensor(indices[0].getType()))
    return {op.fail("has indices of several dimensions, or a mask, that depend on the inputs, for "
                    "which there is no rule; write it with torch.where or an embedding")};
  Value x = op.required("self");
  if (!x || shapeOf(x).empty())
    return {x ? op.fail("looks up in a scalar") : x};
  return {lookUp(op, x, wrapped(op, indices[0], shapeOf(x)[0]))};
}

/// One element of each row: x [..., v] by ids [..., 1].
static Results convertGather(AtenOp &op) {
  Value x = op.required("self"), ids = op.required("index");
  if (!x || !ids)
    return {};
  int64_t last = int64_t(shapeOf(x).size()) - 1;
  if (last < 0 || op.dim("dim", last + 1) != last || !torch::isFloat(x) ||
      !isIndexTensor(ids.getType()) || shapeOf(ids).size() != shapeOf(x).size() ||
      shapeOf(ids).back() != 1 || shapeOf(ids).drop_back() != shapeOf(x).drop_back())
    return {op.fail("gathers several elements of a row, or not along the last dimension, for which "
                    "there is no rule")};
  Value rows = op.reshape(ids, shapeOf(ids).drop_back());
  Value picked = PickOp::create(op.rewriter, op.loc, x, rows);
  return {op.reshape(picked, op.resultType().getShape())};
}

/// The value before a reshape that merges leading dimensions: of [B, S, V] as [B * S, V].
static Value beforeMerge(Value value, size_t kept) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return {};
  ArrayRef<int64_t> source = shapeOf(reshape.getOperand()), target = shapeOf(value);
  if (source.size() < kept || target.size() != kept + 1 ||
      source.take_back(kept) != target.take_back(kept))
    return {};
  return reshape.getOperand();
}

/// Where the samples are a dimension of the values before both, the loss is one of these: merged
/// with positions, samples could not be split into microbatches of their own.
static void unmerge(Value &logits, Value &labels) {
  Value wide = beforeMerge(logits, 1), rows = beforeMerge(labels, 0);
  if (wide && rows && shapeOf(wide).drop_back() == shapeOf(rows)) {
    logits = wide;
    labels = rows;
  }
}

/// Marks the input that labels come from.
static void markIgnoredIndex(AtenOp &op, Value labels, int64_t ignored) {
  while (Operation *producer = labels.getDefiningOp()) {
    if (!isa<ReshapeOp, PadOp, SliceOp>(producer))
      return;
    labels = producer->getOperand(0);
  }
  auto argument = cast<BlockArgument>(labels);
  if (auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
    function.setArgAttr(argument.getArgNumber(), DtcDialect::kIgnoredIndexAttrName,
                        op.rewriter.getI64IntegerAttr(ignored));
}

/// The mean of the losses over the labels that count, 0 if none does, or their sum.
static Value combineLosses(AtenOp &op, Value losses, Value counts, bool isMean) {
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, shapeOf(losses).size()));
  auto sum = [&](Value x) { return op.reduce(x, ReductionKind::Sum, dims, /*keep=*/false); };
  if (!isMean)
    return sum(losses);
  Type element = typeOf(losses).getElementType();
  double part = 1 / double(typeOf(losses).getNumElements());
  Value loss = op.scale(sum(losses), part);
  Value counted = op.scale(sum(op.convert(counts, element)), part);
  counted = op.elementwise<MaximumOp>({counted, op.constant({}, element, part)});
  return op.elementwise<DivOp>({loss, counted});
}

/// logits [N, C, ...] or [C], labels [N, ...] or a scalar.
static Results convertCrossEntropy(AtenOp &op) {
  Value logits = op.required("self"), labels = op.required("target");
  if (!logits || !labels)
    return {};
  if (op.operand("weight"))
    return {op.fail("has weights of classes, for which there is no rule")};
  if (!isIndexTensor(labels.getType()) || !torch::isFloat(logits) || shapeOf(logits).empty())
    return {op.fail("has labels that are no classes (integers), for which there is no rule")};
  int64_t rank = shapeOf(logits).size();
  if (rank > 2) {
    SmallVector<int64_t> order{0};
    llvm::append_range(order, llvm::seq<int64_t>(2, rank));
    order.push_back(1);
    logits = op.transpose(logits, order);
  }
  if (shapeOf(logits).drop_back() != shapeOf(labels))
    return {op.fail("has logits and labels of shapes that do not fit")};
  double smoothing = op.number("label_smoothing").value_or(0);
  int64_t reduction = op.integer("reduction").value_or(1);
  if (!(smoothing >= 0 && smoothing < 1) || reduction < 0 || reduction > 2)
    return {op.fail("has a label_smoothing outside of [0, 1), or an unknown reduction")};
  int64_t ignored = op.integer("ignore_index").value_or(-100);
  if (reduction != 0)
    unmerge(logits, labels);
  markIgnoredIndex(op, labels, ignored);
  Value losses = CrossEntropyOp::create(op.rewriter, op.loc, logits, labels, smoothing).getLoss();
  Value none = op.constant(shapeOf(labels), typeOf(labels).getElementType(), double(ignored));
  if (!none)
    return {};
  Value counts = CompareOp::create(op.rewriter, op.loc, labels, none, ComparePredicate::NotEqual);
  Value zero = op.constant(shapeOf(losses), typeOf(losses).getElementType(), 0);
  losses = SelectOp::create(op.rewriter, op.loc, counts, losses, zero);
  return {reduction == 0 ? losses : combineLosses(op, losses, counts, reduction == 1)};
}

ArrayRef<Rule> dtc::torch::lookupRules() {
  static const Rule rules[] = {
      {"aten.cross_entropy_loss", convertCrossEntropy},
      {"aten.embedding", convertEmbedding},
      {"aten.gather", convertGather},
      {"aten.index", convertIndex},
  };
  return rules;
}
