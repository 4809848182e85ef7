//===- SequenceDims.cpp - Sequence dimensions of values -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/generate/SequenceDims.h"

using namespace mlir;
using namespace dtc;

unsigned SequenceDims::factorOf(const ShardingRule &rule, Operation *op) const {
  for (auto [operand, factors] : llvm::zip_equal(op->getOperands(), rule.operands))
    if (auto dim = of(operand))
      return factors[*dim].front();
  llvm_unreachable("no operand depends on the tokens");
}

std::optional<StringRef> SequenceDims::follow(ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  std::optional<unsigned> factor;
  for (auto [operand, factors] : llvm::zip_equal(op->getOperands(), rule.operands)) {
    std::optional<unsigned> dim = of(operand);
    if (!dim)
      continue;
    const auto &list = factors[*dim];
    if (list.size() != 1 || (factor && *factor != list.front()))
      return "mixes positions of the sequence";
    factor = list.front();
  }
  if (!factor)
    return std::nullopt;
  if (rule.factors[*factor].whole && !isa<RotaryOp>(op.getOperation()))
    return "mixes positions of the sequence";
  SmallVector<unsigned> found;
  for (const TensorFactors &factors : rule.results) {
    auto has = [&](const auto &list) { return llvm::is_contained(list, *factor); };
    auto dim = llvm::find_if(factors, has);
    if (dim == factors.end())
      return "sums over positions of the sequence";
    if (dim->size() != 1)
      return "merges positions with another dimension";
    found.push_back(dim - factors.begin());
  }
  for (auto [result, dim] : llvm::zip_equal(op->getResults(), found))
    dims[result] = dim;
  return std::nullopt;
}

/// The dimension of an operand that indices of the op count, or have an entry for each row of.
static std::optional<unsigned> placesDim(Operation *op, unsigned operand) {
  auto rankOf = [](Value value) {
    return static_cast<unsigned>(cast<RankedTensorType>(value.getType()).getRank());
  };
  if (isa<NonzeroOp>(op))
    return rankOf(op->getOperand(0)) - 1;
  if (auto lookup = dyn_cast<EmbeddingOp>(op); lookup && rankOf(lookup.getTable()) > 2)
    return operand == 0 ? rankOf(lookup.getTable()) - 2 : rankOf(lookup.getIds()) - 1;
  if (auto sums = dyn_cast<EmbeddingGradOp>(op); sums && rankOf(sums.getResult()) > 2)
    return rankOf(sums.getIds()) - 1;
  return std::nullopt;
}

bool SequenceDims::exchangesPlaces(Operation *op) const {
  auto countsPlaces = [&](OpOperand &operand) {
    std::optional<unsigned> dim = placesDim(op, operand.getOperandNumber());
    return dim && of(operand.get()) == dim;
  };
  return op->getNumOperands() > 0 && llvm::all_of(op->getOpOperands(), countsPlaces);
}

LogicalResult SequenceDims::visitPositions(ShardingRuleOpInterface op) {
  auto refuse = [&](const Twine &what) -> LogicalResult {
    return op->emitError() << "'" << op->getName().getStringRef() << "' " << what
                           << ", so that tokens cannot be generated one by one; only causal "
                              "dtc.attention may look at earlier positions (dtc-import "
                              "--attention fused)";
  };
  if (auto rotary = dyn_cast<RotaryOp>(op.getOperation()))
    if (of(rotary.getOperand()).value_or(1) != 1)
      return refuse("rotates by another dimension than that of positions");
  if (exchangesPlaces(op)) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    dims[op->getResult(0)] = type.getRank() - (isa<NonzeroOp>(op) ? 1 : 2);
    return success();
  }
  auto attention = dyn_cast<AttentionOp>(op.getOperation());
  if (!attention) {
    if (std::optional<StringRef> problem = follow(op))
      return refuse(*problem);
    return success();
  }
  for (Value operand : {attention.getQ(), attention.getK(), attention.getV()})
    if (of(operand) != 1u)
      return refuse("has an operand whose dimension 1 does not count positions");
  if (!attention.getCausal())
    return refuse("sees later positions");
  if (!attention.getLse().use_empty())
    return refuse("has a result lse that is used");
  dims[attention.getOut()] = 1;
  return success();
}

FailureOr<SequenceDims> SequenceDims::findPositions(func::FuncOp function, Value tokens) {
  SequenceDims result;
  result.dims[tokens] = 1;
  for (Operation &op : function.front().without_terminator()) {
    auto rule = dyn_cast<ShardingRuleOpInterface>(op);
    if (!rule)
      return op.emitOpError() << "has no sharding rule, expected an op of the dtc dialect";
    if (failed(result.visitPositions(rule)))
      return failure();
  }
  return result;
}

SequenceDims SequenceDims::findSamples(func::FuncOp function, Value tokens) {
  SequenceDims result;
  result.dims[tokens] = 0;
  for (auto op : function.front().getOps<ShardingRuleOpInterface>())
    (void)result.follow(op);
  return result;
}
