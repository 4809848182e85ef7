//===- RecognizeRotary.cpp - Rotary positions of known angles -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/Rotary.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

/// Whether the value is the slice [begin, end) of x's last dimension.
static bool isPartOf(Value value, Value x, int64_t begin, int64_t end) {
  AtenArguments slice = producerOf(value, "aten.slice");
  int64_t rank = shapeOf(x).size();
  return slice.op && slice.operand("self") == x && slice.dim("dim", rank) == rank - 1 &&
         slice.integer("start").value_or(0) == begin && slice.integer("step").value_or(1) == 1 &&
         shapeOf(value).size() == size_t(rank) && shapeOf(value).back() == end - begin;
}

/// The x of cat(-x[half:], x[:half]).
static Value halfRotated(Value value) {
  AtenArguments cat = producerOf(value, "aten.cat");
  if (!cat.op)
    return {};
  SmallVector<Value> parts = cat.list("tensors");
  int64_t rank = shapeOf(value).size();
  if (parts.size() != 2 || !parts[0] || !parts[1] || rank < 1 || cat.dim("dim", rank) != rank - 1)
    return {};
  AtenArguments neg = producerOf(parts[0], "aten.neg");
  AtenArguments low = producerOf(parts[1], "aten.slice");
  if (!neg.op || !low.op || !neg.operand("self") || !low.operand("self"))
    return {};
  Value x = low.operand("self");
  if (shapeOf(x).empty() || x.getType() != value.getType())
    return {};
  int64_t size = shapeOf(x).back();
  bool fits = size % 2 == 0 && isPartOf(parts[1], x, 0, size / 2) &&
              isPartOf(neg.operand("self"), x, size / 2, size);
  return fits ? x : Value();
}

namespace {
/// A value times a table.
struct TableProduct {
  Value x, table;
};
} // namespace

static std::optional<TableProduct> tableProduct(Value product, const ConstantMap &constants) {
  AtenArguments mul = producerOf(product, "aten.mul");
  Value lhs = mul.op ? mul.operand("self") : Value(), rhs = mul.op ? mul.operand("other") : Value();
  auto isTable = [&](Value value) { return constants.contains(value) || tableOp(value); };
  if (!lhs || !rhs || isTable(lhs) == isTable(rhs))
    return std::nullopt;
  return isTable(rhs) ? TableProduct{lhs, rhs} : TableProduct{rhs, lhs};
}

/// Whether the values are the two halves of x's last dimension.
static bool areHalvesOf(Value first, Value second, Value x) {
  int64_t rank = shapeOf(x).size(), size = rank > 0 ? shapeOf(x).back() : 1;
  if (size % 2 != 0)
    return false;
  if (isPartOf(first, x, 0, size / 2) && isPartOf(second, x, size / 2, size))
    return true;
  Operation *op = first.getDefiningOp();
  return op && op->getNumResults() == 2 && first == op->getResult(0) &&
         second == op->getResult(1) && AtenArguments(op).operand("self") == x &&
         AtenArguments(op).dim("dim", rank) == rank - 1 && shapeOf(first) == shapeOf(second);
}

/// The parts of cat(a cos - b sin, b cos + a sin), where a and b are the halves.
static std::optional<RotaryParts> partsOfHalves(Operation *op, const ConstantMap &constants) {
  AtenArguments cat = producerOf(op->getResult(0), "aten.cat");
  int64_t rank = shapeOf(op->getResult(0)).size();
  SmallVector<Value> halves = cat.op ? cat.list("tensors") : SmallVector<Value>();
  if (halves.size() != 2 || !halves[0] || !halves[1] || cat.dim("dim", rank) != rank - 1)
    return std::nullopt;
  AtenArguments difference = producerOf(halves[0], "aten.sub");
  AtenArguments sum = producerOf(halves[1], "aten.add");
  if (!difference.op || !sum.op || difference.number("alpha").value_or(1) != 1 ||
      sum.number("alpha").value_or(1) != 1)
    return std::nullopt;
  auto aCosine = tableProduct(difference.operand("self"), constants);
  auto bSine = tableProduct(difference.operand("other"), constants);
  auto bCosine = tableProduct(sum.operand("self"), constants);
  auto aSine = tableProduct(sum.operand("other"), constants);
  if (!aCosine || !bSine || !bCosine || !aSine)
    return std::nullopt;
  if (bCosine->x == aCosine->x)
    std::swap(bCosine, aSine);
  Value a = aCosine->x, b = bSine->x;
  if (aSine->x != a || bCosine->x != b || aCosine->table != bCosine->table ||
      aSine->table != bSine->table || a.getType() != b.getType() ||
      a.getType() != halves[0].getType())
    return std::nullopt;
  Value x = a.getDefiningOp() ? AtenArguments(a.getDefiningOp()).operand("self") : Value();
  if (x && (x.getType() != op->getResult(0).getType() || !areHalvesOf(a, b, x)))
    x = nullptr;
  return RotaryParts{x, a, b, aCosine->table, aSine->table};
}

static std::optional<RotaryParts> partsOf(Operation *op, const ConstantMap &constants) {
  AtenArguments sum = producerOf(op->getResult(0), "aten.add");
  if (!sum.op)
    return partsOfHalves(op, constants);
  if (sum.number("alpha").value_or(1) != 1)
    return std::nullopt;
  auto first = tableProduct(sum.operand("self"), constants);
  auto second = tableProduct(sum.operand("other"), constants);
  if (!first || !second)
    return std::nullopt;
  if (halfRotated(first->x) == second->x)
    std::swap(first, second);
  if (halfRotated(second->x) != first->x || first->x.getType() != op->getResult(0).getType())
    return std::nullopt;
  return RotaryParts{first->x, Value(), Value(), first->table, second->table};
}

/// The x whose last dimension has the elements of both values by turns.
static Value alternating(Value first, Value second) {
  AtenArguments even = producerOf(first, "aten.slice"), odd = producerOf(second, "aten.slice");
  Value x = even.op && odd.op ? even.operand("self") : Value();
  if (!x || odd.operand("self") != x || shapeOf(x).back() != 2 * shapeOf(first).back())
    return {};
  int64_t rank = shapeOf(x).size();
  for (auto [slice, start] : {std::pair(even, 0), std::pair(odd, 1)})
    if (slice.dim("dim", rank) != rank - 1 || slice.integer("start").value_or(0) != start ||
        slice.integer("step").value_or(1) != 2)
      return {};
  return x;
}

/// Both halves as one value: by a transpose, where they are of one.
static Value joined(OpBuilder &builder, Location loc, const RotaryParts &parts,
                    RankedTensorType type) {
  Value x = alternating(parts.first, parts.second);
  NamedAttribute last = builder.getNamedAttr("dim", builder.getI64IntegerAttr(-1));
  if (!x)
    return createAten(builder, loc, "aten.cat", {parts.first, parts.second},
                      {"tensors.0", "tensors.1"}, type, last);
  SmallVector<int64_t> pairs(type.getShape());
  pairs.back() /= 2;
  pairs.push_back(2);
  x = createAten(builder, loc, "aten.view", x, {"self"}, type.clone(ArrayRef<int64_t>(pairs)), {});
  std::swap(pairs.back(), pairs[pairs.size() - 2]);
  x = createAten(builder, loc, "aten.transpose", x, {"self"}, type.clone(ArrayRef<int64_t>(pairs)),
                 {builder.getNamedAttr("dim0", builder.getI64IntegerAttr(-1)),
                  builder.getNamedAttr("dim1", builder.getI64IntegerAttr(-2))});
  return createAten(builder, loc, "aten.view", x, {"self"}, type, {});
}

static Value createRotary(Operation *op, const RotaryParts &parts, const RotaryForm &form) {
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Value x = parts.x ? parts.x : joined(builder, op->getLoc(), parts, type);
  SmallVector<Value> operands{x};
  SmallVector<StringRef> names{"x"};
  if (form.positions) {
    operands.push_back(form.positions);
    names.push_back("positions");
  }
  return createAten(
      builder, op->getLoc(), "torch.rotary", operands, names, type,
      {builder.getNamedAttr("frequencies", builder.getDenseF64ArrayAttr(form.frequencies)),
       builder.getNamedAttr("factor", builder.getF64FloatAttr(form.factor)),
       builder.getNamedAttr("position_dim", builder.getI64IntegerAttr(form.positionDim))});
}

void dtc::torch::recognizeRotary(Block &block, const ConstantMap &constants,
                                 Conversion &conversion) {
  // Layers share tables.
  llvm::DenseMap<std::tuple<Value, Value, Type>, std::optional<RotaryForm>> forms;
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    if (op.getNumResults() != 1)
      continue;
    std::optional<RotaryParts> parts = partsOf(&op, constants);
    if (!parts)
      continue;
    Type type = (parts->first ? parts->first : parts->x).getType();
    auto [form, isNew] = forms.try_emplace(std::tuple(parts->cosine, parts->sine, type));
    if (isNew)
      form->second = findRotaryForm(*parts, cast<RankedTensorType>(type).getShape(), constants);
    if (!form->second)
      continue;
    Location loc = op.getLoc();
    op.getResult(0).replaceAllUsesWith(createRotary(&op, *parts, *form->second));
    op.erase();
    conversion.raised("rotary positions of the form x cos + rotate_half(x) sin, now dtc.rotary",
                      loc);
  }
}
