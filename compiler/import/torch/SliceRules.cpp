//===- SliceRules.cpp - Parts of tensors, and tensors of parts ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

static Results convertSlice(AtenOp &op) {
  Value x = op.required("self");
  if (!x)
    return {};
  std::optional<int64_t> dim = op.dim("dim", shapeOf(x).size());
  if (!dim || op.resultType().getRank() != int64_t(shapeOf(x).size()))
    return {op.fail("names a dimension that does not exist")};
  int64_t size = shapeOf(x)[*dim], count = op.resultType().getDimSize(*dim);
  int64_t step = op.integer("step").value_or(1), begin = op.integer("start").value_or(0);
  if (begin < 0)
    begin = begin < -size ? 0 : begin + size;
  if (step == 1 || count == 1)
    return {op.slice(x, *dim, begin, count)};
  // In rows of `step` elements each, those at one place of the rows; the last row may be padded.
  if (step < 1 || step > size || begin >= size)
    return {op.fail("takes every " + Twine(step) + "th element from " + Twine(begin) + " on, of " +
                    Twine(size))};
  int64_t place = begin % step, first = begin - place;
  if (count > (size - begin + step - 1) / step)
    return {op.fail("takes more elements than there are")};
  int64_t length = count * step, missing = std::max<int64_t>(0, first + length - size);
  x = op.slice(x, *dim, first, length - missing);
  if (missing > 0)
    x = op.pad(x, *dim, missing);
  if (!x)
    return {};
  SmallVector<int64_t> rows(shapeOf(x));
  rows[*dim] = step;
  rows.insert(rows.begin() + *dim, count);
  return {
      op.reshape(op.slice(op.reshape(x, rows), *dim + 1, place, 1), op.resultType().getShape())};
}

static Results convertSelect(AtenOp &op) {
  Value x = op.required("self");
  if (!x)
    return {};
  std::optional<int64_t> dim = op.dim("dim", shapeOf(x).size()), index = op.integer("index");
  if (!dim || !index)
    return {op.fail("names a dimension or an index that does not exist")};
  int64_t begin = *index < 0 ? *index + shapeOf(x)[*dim] : *index;
  return {op.reshape(op.slice(x, *dim, begin, 1), op.resultType().getShape())};
}

/// The tensors that x is joined of along the dimension, or x alone.
static SmallVector<Value> joinedParts(Value x, int64_t dim) {
  auto concat = x.getDefiningOp<ConcatOp>();
  if (!concat || int64_t(concat.getDim()) != dim)
    return {x};
  return SmallVector<Value>(concat.getInputs());
}

/// x with a range of a dimension replaced by other elements: what is before, they, and what is
/// after. A tensor that is written part by part is its parts, joined.
static Results convertSliceScatter(AtenOp &op) {
  Value x = op.required("self"), source = op.convert(op.required("src"), op.resultElement());
  if (!x || !source)
    return {};
  std::optional<int64_t> dim = op.dim("dim", shapeOf(x).size());
  if (!dim)
    return {op.fail("names a dimension that does not exist")};
  int64_t size = shapeOf(x)[*dim], begin = op.integer("start").value_or(0);
  begin = std::clamp<int64_t>(begin < 0 ? begin + size : begin, 0, size);
  SmallVector<int64_t> shape(shapeOf(x));
  shape[*dim] = shapeOf(source).size() == shape.size() ? shapeOf(source)[*dim] : -1;
  if (op.integer("step").value_or(1) != 1 || shapeOf(source) != ArrayRef<int64_t>(shape))
    return {
        op.fail("replaces elements that do not follow each other, or has not as many, for which "
                "there is no rule")};
  int64_t end = begin + shape[*dim], place = 0;
  SmallVector<Value> before, after;
  for (Value part : joinedParts(x, *dim)) {
    int64_t count = shapeOf(part)[*dim], last = place + count;
    if (int64_t kept = std::min(count, begin - place); kept > 0)
      before.push_back(op.slice(part, *dim, 0, kept));
    if (int64_t kept = std::min(count, last - end); kept > 0)
      after.push_back(op.slice(part, *dim, count - kept, kept));
    place = last;
  }
  before.push_back(source);
  before.append(after);
  return {op.concat(before, *dim)};
}

/// The elements of another tensor, in the shape and type of the first.
static Results convertCopy(AtenOp &op) {
  return {op.broadcastTo(op.convert(op.required("src"), op.resultElement()),
                         op.resultType().getShape())};
}

/// All forms of a split: the parts follow each other, with the sizes that the results have.
static Results convertSplit(AtenOp &op) {
  Value x = op.required("self");
  if (!x)
    return {};
  int64_t rank = shapeOf(x).size();
  std::optional<int64_t> dim = op.dim("dim", rank);
  if (!dim)
    return {op.fail("names a dimension that does not exist")};
  bool removes = op.name() == "unbind";
  Results parts;
  int64_t begin = 0;
  for (unsigned i = 0; i < op.op->getNumResults(); ++i) {
    RankedTensorType type = op.resultType(i);
    if (type.getRank() != rank - (removes ? 1 : 0))
      return {op.fail("has a result of another rank")};
    int64_t size = removes ? 1 : type.getDimSize(*dim);
    Value part = op.slice(x, *dim, begin, size);
    parts.push_back(op.reshape(part, type.getShape()));
    if (!parts.back())
      return {};
    begin += size;
  }
  return parts;
}

static SmallVector<Value> convertedList(AtenOp &op, Type element) {
  SmallVector<Value> values = op.list("tensors");
  for (Value &value : values)
    value = value ? op.convert(value, element) : op.fail("has a list with a place that is empty");
  return values;
}

static Results convertCat(AtenOp &op) {
  std::optional<int64_t> dim = op.dim("dim", op.resultType().getRank());
  if (!dim)
    return {op.fail("names a dimension that does not exist")};
  SmallVector<Value> values = convertedList(op, op.resultElement());
  for (Value value : values)
    if (value && int64_t(shapeOf(value).size()) != op.resultType().getRank())
      return {op.fail("joins tensors of different ranks")};
  return {op.concat(values, *dim)};
}

static Results convertStack(AtenOp &op) {
  std::optional<int64_t> dim = op.dim("dim", op.resultType().getRank());
  if (!dim)
    return {op.fail("names a dimension that does not exist")};
  SmallVector<int64_t> shape(op.resultType().getShape());
  shape[*dim] = 1;
  SmallVector<Value> values = convertedList(op, op.resultElement());
  for (Value &value : values)
    value = op.reshape(value, shape);
  return {op.concat(values, *dim)};
}

/// "pad" names amounts from the last dimension on; negative ones cut elements off.
static Results convertPad(AtenOp &op) {
  Value x = op.required("self");
  std::optional<ArrayRef<int64_t>> amounts = op.integers("pad");
  if (!x || !amounts)
    return {x ? op.fail("has no amounts") : x};
  if (StringRef mode = op.string("mode"); !mode.empty() && mode != "constant")
    return {op.fail("pads in the mode \"" + mode + "\", expected constant")};
  size_t rank = shapeOf(x).size();
  if (amounts->size() % 2 != 0 || amounts->size() / 2 > rank)
    return {op.fail("has " + Twine(amounts->size()) + " amounts, expected two of each dimension")};
  SmallVector<int64_t> low(rank, 0), high(rank, 0);
  constexpr int64_t kMost = int64_t{1} << 40;
  if (llvm::any_of(*amounts, [](int64_t n) { return n < -kMost || n > kMost; }))
    return {op.fail("has an amount that is out of range")};
  for (size_t i = 0; i < amounts->size() / 2; ++i) {
    low[rank - 1 - i] = (*amounts)[2 * i];
    high[rank - 1 - i] = (*amounts)[2 * i + 1];
  }
  for (size_t dim = 0; dim < rank && x; ++dim) {
    int64_t cutLow = std::max<int64_t>(0, -low[dim]), cutHigh = std::max<int64_t>(0, -high[dim]);
    if (cutLow + cutHigh > 0)
      x = op.slice(x, int64_t(dim), cutLow, shapeOf(x)[dim] - cutLow - cutHigh);
    low[dim] = std::max<int64_t>(0, low[dim]);
    high[dim] = std::max<int64_t>(0, high[dim]);
  }
  if (!x)
    return {};
  SmallVector<int64_t> shape(shapeOf(x));
  for (auto [size, before, after] : llvm::zip(shape, low, high)) {
    if (size > kMost)
      return {op.fail("adds to a dimension that is out of range")};
    size += before + after;
  }
  if (shapeOf(x) == ArrayRef<int64_t>(shape))
    return {x};
  auto type = RankedTensorType::get(shape, typeOf(x).getElementType());
  return {PadOp::create(op.rewriter, op.loc, type, x, low, high, op.number("value").value_or(0))};
}

ArrayRef<Rule> dtc::torch::sliceRules() {
  static const Rule rules[] = {
      {"aten.cat", convertCat},
      {"aten.chunk", convertSplit},
      {"aten.copy", convertCopy},
      {"aten.pad", convertPad},
      {"aten.select", convertSelect},
      {"aten.slice", convertSlice},
      {"aten.slice_scatter", convertSliceScatter},
      {"aten.split", convertSplit},
      {"aten.split_with_sizes", convertSplit},
      {"aten.stack", convertStack},
      {"aten.unbind", convertSplit},
  };
  return rules;
}
