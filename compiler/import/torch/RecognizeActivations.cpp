//===- RecognizeActivations.cpp - Softmax and GELU by their parts ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/Recognize.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

std::optional<double> dtc::torch::knownNumber(Value value, const ConstantMap &constants) {
  auto found = value ? constants.find(value) : constants.end();
  if (found == constants.end() || found->second.distinct() != 1)
    return std::nullopt;
  return found->second.at(SmallVector<int64_t>(found->second.shape.size(), 0));
}

std::optional<std::pair<Value, double>> dtc::torch::factorOf(Value value,
                                                             const ConstantMap &constants) {
  bool divides = producerOf(value, "aten.div").op;
  AtenArguments op = producerOf(value, divides ? "aten.div" : "aten.mul");
  if (!op.op || !op.string("rounding_mode").empty())
    return std::nullopt;
  std::optional<double> number = op.number("other");
  Value x = op.operand("self");
  if (!number)
    number = knownNumber(op.operand("other"), constants);
  if (!number && !divides) {
    number = knownNumber(x, constants);
    x = op.operand("other");
  }
  if (!number || !x || x.getType() != value.getType() || !std::isfinite(*number) ||
      (divides && *number == 0))
    return std::nullopt;
  return std::pair(x, divides ? 1 / *number : *number);
}

/// Whether the value is a reduction of x over its last dimension, [..., 1].
static bool isRowsOf(Value value, Value x, StringRef reduction) {
  SmallVector<int64_t> rows(shapeOf(x));
  if (rows.empty())
    return false;
  rows.back() = 1;
  if (shapeOf(value) != ArrayRef<int64_t>(rows))
    return false;
  // A view of the same elements in the same order.
  for (StringRef view : {"aten.view", "aten.unsqueeze", "aten.expand"})
    if (AtenArguments op = producerOf(value, view);
        op.op && op.operand("self") &&
        typeOf(op.operand("self")).getNumElements() == typeOf(value).getNumElements())
      value = op.operand("self");
  AtenArguments op = producerOf(value, reduction);
  auto dims = op.op ? op.dims("dim", int64_t(rows.size())) : std::nullopt;
  return dims && op.operand("self") == x && value.getType() == typeOf(x).clone(shapeOf(value)) &&
         ArrayRef<int64_t>(*dims) == ArrayRef<int64_t>{int64_t(rows.size()) - 1};
}

/// The x of exp(x - max(x)) / sum(exp(x - max(x))) over the last dimension.
static Value softmaxOperand(Operation &op) {
  AtenArguments div = producerOf(op.getResult(0), "aten.div");
  Value exponentials = div.op ? div.operand("self") : Value();
  Value sums = div.op ? div.operand("other") : Value();
  AtenArguments exp = producerOf(exponentials, "aten.exp");
  if (!exp.op || !sums || !exp.operand("self") ||
      exponentials.getType() != op.getResultTypes()[0] || !isRowsOf(sums, exponentials, "aten.sum"))
    return {};
  AtenArguments sub = producerOf(exp.operand("self"), "aten.sub");
  Value x = sub.op ? sub.operand("self") : Value(),
        largest = sub.op ? sub.operand("other") : Value();
  bool fits = x && largest && x.getType() == op.getResultTypes()[0] &&
              sub.number("alpha").value_or(1) == 1 && torch::isFloat(x) &&
              isRowsOf(largest, x, "aten.amax");
  return fits ? x : Value();
}

/// The x of 0.5 x (1 + erf(x / sqrt(2))), with the factors in any order.
static Value geluOperand(Operation &op, const ConstantMap &constants) {
  // A product of two values and of numbers; models write no more of them.
  constexpr int kMostFactors = 4;
  double number = 1;
  SmallVector<Value, 4> pending{op.getResult(0)}, factors;
  for (int step = 0; !pending.empty() && step < 3 * kMostFactors; ++step) {
    Value value = pending.pop_back_val();
    if (auto factor = factorOf(value, constants)) {
      number *= factor->second;
      pending.push_back(factor->first);
      continue;
    }
    AtenArguments mul = producerOf(value, "aten.mul");
    Value lhs = mul.op ? mul.operand("self") : Value(),
          rhs = mul.op ? mul.operand("other") : Value();
    if (factors.size() + pending.size() < 2 && lhs && rhs && lhs.getType() == rhs.getType() &&
        lhs.getType() == value.getType())
      pending.append({lhs, rhs});
    else
      factors.push_back(value);
  }
  if (!pending.empty() || factors.size() != 2 || std::abs(number - 0.5) > 1e-7)
    return {};
  for (auto [x, sum] : {std::pair(factors[0], factors[1]), std::pair(factors[1], factors[0])}) {
    AtenArguments add = producerOf(sum, "aten.add");
    bool isFirst = add.op && add.operand("self") && producerOf(add.operand("self"), "aten.erf").op;
    std::optional<double> one = add.op ? add.number("other") : std::nullopt;
    if (add.op && !one)
      one = knownNumber(add.operand(isFirst ? "other" : "self"), constants);
    AtenArguments erf =
        producerOf(add.op ? add.operand(isFirst ? "self" : "other") : Value(), "aten.erf");
    if (!erf.op || one != 1.0 || add.number("alpha").value_or(1) != 1 || !erf.operand("self"))
      continue;
    auto inner = factorOf(erf.operand("self"), constants);
    if (inner && inner->first == x && x.getType() == op.getResultTypes()[0] &&
        std::abs(inner->second - std::sqrt(0.5)) <= 1e-7)
      return x;
  }
  return {};
}

/// Erases an op without uses, and what only it used. Known values stay, as the map has them.
static void eraseParts(Operation &unused, const ConstantMap &constants) {
  // A set: two ops that are erased may have used the same one.
  llvm::SetVector<Operation *> pending;
  pending.insert(&unused);
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (!op->use_empty() ||
        llvm::any_of(op->getResults(), [&](Value each) { return constants.contains(each); }))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        pending.insert(producer);
    op->erase();
  }
}

/// Replaces the result of an op by that of an op of one operand.
static void replaceBy(Operation &op, StringRef name, Value x, NamedAttribute attribute,
                      const ConstantMap &constants) {
  OpBuilder builder(&op);
  OperationState state(op.getLoc(), name);
  state.addOperands(x);
  state.addTypes(op.getResultTypes());
  state.addAttribute("operands", builder.getStrArrayAttr({"self"}));
  state.addAttributes(attribute);
  op.getResult(0).replaceAllUsesWith(builder.create(state)->getResult(0));
  eraseParts(op, constants);
}

void dtc::torch::recognizeActivations(Block &block, const ConstantMap &constants,
                                      Conversion &conversion) {
  Builder builder(block.getParentOp()->getContext());
  // Parts lie before the op that is replaced, so that the next op is not one of them.
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    StringRef name = op.getName().getStringRef();
    if ((name != "aten.mul" && name != "aten.div") || constants.contains(op.getResult(0)))
      continue;
    if (Value x = softmaxOperand(op)) {
      conversion.raised("softmax by its parts, now dtc.softmax", op.getLoc());
      replaceBy(op, "aten.softmax", x, builder.getNamedAttr("dim", builder.getI64IntegerAttr(-1)),
                constants);
    } else if (Value x = geluOperand(op, constants)) {
      conversion.raised("GELU by its parts, now dtc.gelu", op.getLoc());
      replaceBy(op, "aten.gelu", x,
                builder.getNamedAttr("approximate", builder.getStringAttr("none")), constants);
    }
  }
}
