//===- LossQuotient.cpp - The sums and the divisor of a loss --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/train/LossQuotient.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;

/// The operands in which an op is jointly linear; its other operands depend on no data. Empty if
/// there are none, or if it is not known.
static SmallVector<unsigned> summandsOf(const TrainedLoss &loss, Operation *op) {
  if (isa_and_nonnull<AddOp, SubOp>(op))
    return {0, 1};
  if (isa_and_nonnull<NegOp, ConvertOp, ReshapeOp>(op))
    return {0};
  if (isa_and_nonnull<MulOp, DivOp>(op) && !loss.dependsOnData(op->getOperand(1)))
    return {0};
  if (isa_and_nonnull<MulOp>(op) && !loss.dependsOnData(op->getOperand(0)))
    return {1};
  return {};
}

std::optional<LossQuotient> dtc::findLossQuotient(OpBuilder &builder, const TrainedLoss &loss,
                                                  Value value) {
  if (!loss.dependsOnData(value))
    return LossQuotient{{}, {}, {}, value};
  Operation *op = value.getDefiningOp();
  auto divide = [&](Value dividend, Value by) -> std::optional<LossQuotient> {
    std::optional<LossQuotient> parts = findLossQuotient(builder, loss, dividend);
    if (!parts || parts->divisor)
      return std::nullopt;
    return LossQuotient{parts->sums, by, parts->rest, {}};
  };
  auto isDivisor = [&](Value by) {
    return loss.dependsOnData(by) && !loss.dependsOnParameters(by);
  };
  if (auto div = dyn_cast_or_null<DivOp>(op); div && isDivisor(div.getRhs()))
    return divide(div.getLhs(), div.getRhs());
  if (isa_and_nonnull<MulOp>(op))
    for (unsigned index : {0, 1})
      if (auto div = op->getOperand(index).getDefiningOp<DivOp>();
          div && isDivisor(div.getRhs()) && !loss.dependsOnData(div.getLhs()))
        return divide(MulOp::create(builder, op->getLoc(), op->getOperand(1 - index), div.getLhs()),
                      div.getRhs());

  SmallVector<unsigned> summands = summandsOf(loss, op);
  LossQuotient quotient;
  SmallVector<LossQuotient> parts;
  for (unsigned index : summands) {
    std::optional<LossQuotient> part = findLossQuotient(builder, loss, op->getOperand(index));
    if (!part || (part->divisor && quotient.divisor && part->divisor != quotient.divisor))
      return std::nullopt;
    if (part->divisor)
      quotient.divisor = part->divisor;
    parts.push_back(*part);
  }
  if (parts.empty())
    return LossQuotient{value, {}, {}, {}};
  if (quotient.divisor &&
      llvm::any_of(parts, [](const LossQuotient &part) { return part.sums && !part.divisor; }))
    return std::nullopt;
  // The op on one part of each operand; an operand without that part is 0.
  auto join = [&](Value LossQuotient::*member) -> Value {
    SmallVector<Value> operands(op->getOperands());
    for (auto [index, part] : llvm::zip_equal(summands, parts))
      operands[index] = part.*member;
    if (llvm::equal(operands, op->getOperands()))
      return value;
    if (llvm::all_of(parts, [&](const LossQuotient &part) { return bool(part.*member); })) {
      Operation *copy = builder.clone(*op);
      copy->setOperands(operands);
      return copy->getResult(0);
    }
    if (summands.size() == 1)
      return {};
    if (operands[1] && isa<SubOp>(op))
      return NegOp::create(builder, op->getLoc(), operands[1]);
    return operands[0] ? operands[0] : operands[1];
  };
  quotient.sums = join(&LossQuotient::sums);
  quotient.once = join(&LossQuotient::once);
  quotient.rest = join(&LossQuotient::rest);
  return quotient;
}
