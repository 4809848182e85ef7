//===- CloneConstantsPerUse.cpp - Clone constants for each use ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// CSE makes equal constants one value. If a microbatch needs a part of it and another op needs the
// whole, no sharding serves both: nothing is gathered over microbatches. And propagation takes the
// sharding of one use through the value to the other. So each use gets an op of its own first. The
// CSE after propagation merges those that have the same sharding in the end. The idea is Shardy's
// (sdy-constant-or-scalar-splitter), for all ops that dimensions may come from.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/sharding/RuleCache.h"

#include "llvm/ADT/SmallBitVector.h"

namespace dtc {
#define GEN_PASS_DEF_CLONECONSTANTSPERUSEPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// The most ops that are cloned together for one use. The clones of an op need clones of their own
/// operands, so that without a limit a chain of ops that use a value twice would grow as 2^n.
constexpr int64_t kMaxExpression = 64;

class ConstantCloner {
public:
  explicit ConstantCloner(func::FuncOp function) : function(function) {}
  void run();

private:
  /// The number of ops that a clone of `op` for one use takes; nullopt if it is not to be cloned.
  std::optional<int64_t> expressionSize(ShardingRuleOpInterface op);

  func::FuncOp function;
  RuleCache rules;
  llvm::DenseSet<Value> dataFree;             ///< depend on nothing but constants and parameters
  llvm::DenseMap<Operation *, int64_t> sizes; ///< of the ops that are cloned
};

} // namespace

std::optional<int64_t> ConstantCloner::expressionSize(ShardingRuleOpInterface op) {
  const ShardingRule &rule = rules.of(op);
  // The factors that can be split: those with more than one element.
  auto factorsOf = [&](const TensorFactors &dims) {
    llvm::SmallBitVector set(rule.factors.size());
    for (const auto &factors : dims)
      for (unsigned factor : factors)
        if (rule.factors[factor].size > 1)
          set.set(factor);
    return set;
  };
  llvm::SmallBitVector own(rule.factors.size());
  for (const TensorFactors &dims : rule.results)
    own |= factorsOf(dims);
  // An operand that is not cloned stays shared, and with it the dimensions that the results have
  // from it.
  int64_t size = 1;
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands)) {
    if (auto it = sizes.find(operand.getDefiningOp()); it != sizes.end()) {
      size += it->second;
      continue;
    }
    llvm::SmallBitVector shared = factorsOf(dims);
    if (!dataFree.contains(operand) && own.anyCommon(shared))
      return std::nullopt;
    own.reset(shared);
  }
  // Scalars have no dimension at all, and the sum of two parameters has none of its own.
  return own.any() && size <= kMaxExpression ? std::optional(size) : std::nullopt;
}

void ConstantCloner::run() {
  for (BlockArgument arg : function.getArguments())
    if (function.getArgAttr(arg.getArgNumber(), DtcDialect::kParamAttrName))
      dataFree.insert(arg);
  Block &block = function.front();
  for (Operation &op : block.without_terminator()) {
    // Ops of dist are requests of a user about one value.
    if (isa<DtcDialect>(op.getDialect()))
      if (auto rule = dyn_cast<ShardingRuleOpInterface>(op))
        if (std::optional<int64_t> size = expressionSize(rule))
          sizes[&op] = *size;
    if (llvm::all_of(op.getOperands(), [&](Value value) { return dataFree.contains(value); }))
      dataFree.insert(op.result_begin(), op.result_end());
  }
  // Users come first, as their clones are uses as well.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block.without_terminator()))) {
    if (!sizes.contains(&op))
      continue;
    SmallVector<OpOperand *> uses;
    for (Value result : op.getResults())
      for (OpOperand &use : result.getUses())
        uses.push_back(&use);
    OpBuilder builder(op.getContext());
    builder.setInsertionPointAfter(&op);
    for (OpOperand *use : ArrayRef(uses).drop_front(uses.empty() ? 0 : 1)) {
      unsigned result = cast<OpResult>(use->get()).getResultNumber();
      use->set(builder.clone(op)->getResult(result));
    }
  }
}

namespace {
struct CloneConstantsPerUsePass
    : dtc::impl::CloneConstantsPerUsePassBase<CloneConstantsPerUsePass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      if (failed(checkProgram(function)))
        return signalPassFailure();
      ConstantCloner(function).run();
    }
  }
};
} // namespace
