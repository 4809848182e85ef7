//===- RecognizeRotary.cpp - Rotary positions of known angles -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/Recognize.h"

#include "mlir/IR/Builders.h"

#include <cmath>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

namespace {
/// x cos + rotate_half(x) sin.
struct RotaryParts {
  Value x, cosine, sine;
};
struct RotaryForm {
  SmallVector<double> frequencies;
  double factor = 1;
  int64_t positionDim = 2;
};
} // namespace

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

static std::optional<RotaryParts> partsOf(Operation *op, const ConstantMap &constants) {
  AtenArguments sum = producerOf(op->getResult(0), "aten.add");
  if (!sum.op || sum.number("alpha").value_or(1) != 1)
    return std::nullopt;
  auto split = [&](Value product) -> std::optional<std::pair<Value, Value>> {
    AtenArguments mul = producerOf(product, "aten.mul");
    Value lhs = mul.op ? mul.operand("self") : Value(),
          rhs = mul.op ? mul.operand("other") : Value();
    if (!lhs || !rhs || constants.contains(lhs) == constants.contains(rhs))
      return std::nullopt;
    return constants.contains(rhs) ? std::pair(lhs, rhs) : std::pair(rhs, lhs);
  };
  auto first = split(sum.operand("self")), second = split(sum.operand("other"));
  if (!first || !second)
    return std::nullopt;
  if (halfRotated(first->first) == second->first)
    std::swap(first, second);
  if (halfRotated(second->first) != first->first)
    return std::nullopt;
  return RotaryParts{first->first, first->second, second->second};
}

/// The table [S, E] of a constant that is repeated over samples and heads of x, and the dimension
/// of positions.
static std::optional<std::pair<ConstantTensor, int64_t>> tableOf(const ConstantTensor &constant,
                                                                 ArrayRef<int64_t> shape) {
  auto wide = constant.broadcast(shape);
  if (!wide || shape.size() != 4)
    return std::nullopt;
  wide = wide->compressed();
  for (int64_t dim : {2, 1}) {
    ConstantTensor rows = wide->sliced(0, 0, 1).sliced(dim == 2 ? 1 : 2, 0, 1);
    if (rows.distinct() == wide->distinct() && shape[dim] > 1)
      return std::pair(rows.reshaped({shape[dim], shape[3]}), dim);
  }
  return std::nullopt;
}

/// The angles that a table is the cosine of, [S, E]: those before rounding to cosines lose digits.
static std::optional<ConstantTensor> anglesOf(Value cosine, ArrayRef<int64_t> shape,
                                              const ConstantMap &constants) {
  Operation *op = cosine.getDefiningOp();
  while (op && op->getName().getStringRef() != "aten.cos")
    op = op->getNumOperands() > 0 ? op->getOperand(0).getDefiningOp() : nullptr;
  Value angles = op ? AtenArguments(op).operand("self") : Value();
  auto found = angles ? constants.find(angles) : constants.end();
  if (found == constants.end() || found->second.size() != shape[0] * shape[1])
    return std::nullopt;
  return found->second.reshaped(shape);
}

static std::optional<RotaryForm> formOf(const RotaryParts &parts, const ConstantMap &constants) {
  auto cosine = tableOf(constants.at(parts.cosine), shapeOf(parts.x));
  auto sine = tableOf(constants.at(parts.sine), shapeOf(parts.x));
  if (!cosine || !sine || cosine->second != sine->second)
    return std::nullopt;
  const ConstantTensor &table = cosine->first;
  auto angles = anglesOf(parts.cosine, table.shape, constants);
  if (!angles)
    return std::nullopt;
  RotaryForm form;
  form.positionDim = cosine->second;
  form.factor = table.at({0, 0});
  int64_t half = table.shape[1] / 2;
  for (int64_t i = 0; i < half; ++i)
    form.frequencies.push_back(angles->at({1, i}));
  if (!(form.factor > 0) || !std::isfinite(form.factor) ||
      !llvm::all_of(form.frequencies, [](double each) { return std::isfinite(each) && each >= 0; }))
    return std::nullopt;
  // PyTorch rounds angles, and then cosines, to the type of the table or to f32.
  for (int64_t s = 0; s < table.shape[0]; ++s)
    for (int64_t i = 0; i < 2 * half; ++i) {
      double angle = double(s) * form.frequencies[size_t(i % half)];
      double tolerance = angles->element.isF64() ? 1e-13 * (1 + angle) : 1e-6 + 2.5e-7 * angle;
      tolerance *= form.factor;
      if (!(std::abs(table.at({s, i}) - form.factor * std::cos(angle)) <= tolerance) ||
          !(std::abs(sine->first.at({s, i}) - form.factor * std::sin(angle)) <= tolerance))
        return std::nullopt;
    }
  return form;
}

void dtc::torch::recognizeRotary(Block &block, const ConstantMap &constants,
                                 Conversion &conversion) {
  // Layers share tables.
  llvm::DenseMap<std::tuple<Value, Value, Type>, std::optional<RotaryForm>> forms;
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    if (op.getNumResults() != 1)
      continue;
    std::optional<RotaryParts> parts = partsOf(&op, constants);
    if (!parts || parts->x.getType() != op.getResult(0).getType())
      continue;
    auto [form, isNew] =
        forms.try_emplace(std::tuple(parts->cosine, parts->sine, parts->x.getType()));
    if (isNew)
      form->second = formOf(*parts, constants);
    if (!form->second)
      continue;
    OpBuilder builder(&op);
    OperationState state(op.getLoc(), "torch.rotary");
    state.addOperands(parts->x);
    state.addTypes(parts->x.getType());
    state.addAttribute("operands", builder.getStrArrayAttr({"x"}));
    state.addAttribute("frequencies", builder.getDenseF64ArrayAttr(form->second->frequencies));
    state.addAttribute("factor", builder.getF64FloatAttr(form->second->factor));
    state.addAttribute("position_dim", builder.getI64IntegerAttr(form->second->positionDim));
    op.getResult(0).replaceAllUsesWith(builder.create(state)->getResult(0));
    op.erase();
    conversion.raised("rotary positions of the form x cos + rotate_half(x) sin, now dtc.rotary",
                      state.location);
  }
}
