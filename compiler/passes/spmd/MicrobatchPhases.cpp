//===- MicrobatchPhases.cpp - Ops inside and outside the microbatch loop --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A value whose sharding mentions the temporal axis, split or partial, is another one in each
// microbatch; the ops that make or use such values are the body of the loop over microbatches. A
// sum over the axis leaves the loop where a reshard completes it. Everything else runs before the
// loop, or after it if it depends on such a sum.
//
// A single microbatch has all of every value, so that nothing has to be summed before it is used:
// what is between two ops of the loop is in the loop as well. Such a loop may run again, for
// further batches of the same step. What is summed over these is then in the function, as
// dist.sum_batches, and all that leads there is in the loop.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/spmd/Partitioner.h"

using namespace mlir;
using namespace dtc;

LogicalResult Partitioner::classify() {
  if (temporalAxis && mesh.axes[*temporalAxis].size == 1)
    return classifySingle();
  for (Operation &op : function.front().without_terminator()) {
    bool inLoop = false;
    Operation *late = nullptr;
    for (Value operand : op.getOperands()) {
      // Data are there whole before the step: only in the loop are they cut into microbatches.
      inLoop |= mentionsTemporalAxis(layoutOf(operand));
      if (Operation *definer = operand.getDefiningOp();
          definer && phases.at(definer) == Phase::After)
        late = definer;
    }
    for (Value result : op.getResults())
      inLoop |= mentionsTemporalAxis(layoutOf(result));

    auto reshard = dyn_cast<dist::ReshardOp>(op);
    bool leaves = reshard && mentionsTemporalAxis(layoutOf(reshard.getInput())) &&
                  !mentionsTemporalAxis(layoutOf(reshard.getResult()));
    if (leaves && layoutOf(reshard.getInput()).isPartialOver(*temporalAxis)) {
      if (layoutOf(reshard.getInput()).partialKind != ReductionKind::Sum)
        return op.emitError() << "needs the maximum over microbatches of a value; only sums are "
                                 "carried from one microbatch to the next; use one microbatch";
      accumulated.insert(reshard.getInput());
      phases[&op] = Phase::After;
      continue;
    }
    if (inLoop && late) {
      InFlightDiagnostic diag =
          op.emitError()
          << "'" << op.getName().getStringRef()
          << "' computes on a microbatch and needs a sum over all microbatches, which "
             "is known only after the last of them; use one microbatch, or a form of "
             "the op that does not mix samples (a batch norm does)";
      diag.attachNote(late->getLoc()) << "the sum over microbatches is completed here";
      return failure();
    }
    // What leaves the loop is a sum: nothing else of a microbatch is known outside it.
    for (Value result : op.getResults())
      if (inLoop && !mentionsTemporalAxis(layoutOf(result))) {
        if (reshard)
          return refuseGather(reshard);
        return op.emitOpError() << "computes on a microbatch, but its result is laid out as "
                                << layoutOf(result).str(mesh) << "; run dtc-insert-reshards first";
      }
    phases[&op] = inLoop ? Phase::Loop : late ? Phase::After : Phase::Before;
  }
  sinkIntoAfter();
  Operation *ret = function.front().getTerminator();
  for (auto [index, value] : llvm::enumerate(ret->getOperands()))
    if (mentionsTemporalAxis(layoutOf(value)))
      return ret->emitOpError() << "returns as result " << index
                                << " what each microbatch has a part of ("
                                << layoutOf(value).str(mesh) << "); run dtc-insert-reshards first";
  return success();
}

/// Whether the op works as well on the sums over batches of those of its operands that are among
/// `values`: reshards do, and ops that join sums over devices which reshards complete for them, as
/// those of the gradients of a parameter that two stages have. A reshard that makes its value
/// smaller does so before that is added up.
bool Partitioner::takesSums(Operation *op, const llvm::DenseSet<Value> &values) {
  auto canAdd = [&](Value value) { return isWideTensor(value.getType()) && value.getDefiningOp(); };
  if (auto reshard = dyn_cast<dist::ReshardOp>(op)) {
    Layout from = layoutOf(reshard.getInput()), to = layoutOf(reshard.getResult());
    auto elements = [&](const Layout &layout) {
      return localType(reshard.getType(), layout).getNumElements();
    };
    return canAdd(reshard.getInput()) && elements(to) >= elements(from) &&
           (from.partial.empty() || from.partialKind == ReductionKind::Sum);
  }
  SmallVector<unsigned> among;
  for (OpOperand &operand : op->getOpOperands())
    if (values.contains(operand.get())) {
      auto reshard = operand.get().getDefiningOp<dist::ReshardOp>();
      if (!reshard || layoutOf(reshard.getInput()).partial.empty() || !canAdd(reshard.getInput()))
        return false;
      among.push_back(operand.getOperandNumber());
    }
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  return rule && !isa<dist::ConstrainOp>(op) &&
         llvm::is_contained(rule.getShardingRule().linearOperands, among);
}

LogicalResult Partitioner::classifyLate(const llvm::DenseSet<Operation *> &batchSums,
                                        bool sumsBatches) {
  llvm::DenseSet<Value> late;
  for (Operation &op : function.front()) {
    Phase phase = isa<func::ReturnOp>(op) ? Phase::After : phases.at(&op);
    auto isLate = [&](Value operand) { return late.contains(operand); };
    if (phase == Phase::Before && llvm::any_of(op.getOperands(), isLate))
      phase = phases[&op] = Phase::After;
    if (phase != Phase::After)
      continue;
    late.insert(op.result_begin(), op.result_end());
    for (Value operand : op.getOperands()) {
      if (isa<dist::SumBatchesOp>(op)
              ? isLate(operand)
              : !operand.getDefiningOp() || !isInLoop(operand.getDefiningOp()))
        continue;
      if (sumsBatches && !batchSums.contains(&op))
        return op.emitOpError() << "uses what each batch of a step has its own of, and runs once a "
                                   "step; sum it over the batches with dist.sum_batches first";
      accumulated.insert(operand);
    }
  }
  return success();
}

/// Whether the op draws a mask, which is another one in each batch.
static bool drawsMask(Operation &op) {
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  return rule && !rule.getShardingRule().randomDims.empty();
}

LogicalResult Partitioner::classifySingle() {
  Block &block = function.front();
  bool sumsBatches = !block.getOps<dist::SumBatchesOp>().empty();
  // What each batch has its own of: all that depends on data or on random masks, up to the sums
  // over batches. Where the function does not say which these are, that whose sharding mentions the
  // temporal axis.
  llvm::DenseSet<Value> ofBatch, ofStep;
  auto isOfBatch = [&](Value value) { return ofBatch.contains(value); };
  auto isOfStep = [&](Value value) { return ofStep.contains(value); };
  auto mentions = [&](Value value) { return mentionsTemporalAxis(layoutOf(value)); };
  for (BlockArgument arg : function.getArguments())
    if (sumsBatches ? bool(function.getArgAttr(arg.getArgNumber(), DtcDialect::kInputAttrName))
                    : mentions(arg))
      ofBatch.insert(arg);
  llvm::DenseSet<Operation *> seeds;
  for (Operation &op : block.without_terminator()) {
    bool leaves = isa<dist::ReshardOp>(op);
    if (isa<dist::SumBatchesOp>(op) || llvm::any_of(op.getOperands(), isOfStep)) {
      ofStep.insert(op.result_begin(), op.result_end());
      continue;
    }
    bool isOwn = sumsBatches && drawsMask(op);
    if (dist::getStage(&op) || isOwn ||
        (sumsBatches ? !leaves && llvm::any_of(op.getOperands(), isOfBatch)
                     : llvm::any_of(op.getResults(), mentions) ||
                           (!leaves && llvm::any_of(op.getOperands(), mentions))))
      seeds.insert(&op);
    if (seeds.contains(&op) || llvm::any_of(op.getOperands(), isOfBatch))
      ofBatch.insert(op.result_begin(), op.result_end());
  }

  // From the last op to the first: in the loop is what an op of the loop uses, or a sum over
  // batches. Ops before a sum that can take sums run after the loop.
  llvm::DenseSet<Operation *> sums;
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    auto isSum = [&](Operation *user) { return sums.contains(user); };
    auto inLoop = [&](Operation *user) { return isInLoop(user); };
    Phase phase = Phase::Before;
    if (isa<dist::SumBatchesOp>(op)) {
      phase = Phase::After;
      sums.insert(&op);
    } else if (llvm::none_of(op.getResults(), isOfBatch)) {
      // A summand that is the same for all batches counts once for each. What is as large as a
      // batch is not kept for all of them.
      bool isTerm = llvm::any_of(op.getUsers(), isSum);
      auto counts = [&](Operation *user) { return isa<dist::SumBatchesOp>(user) || inLoop(user); };
      if ((isTerm || llvm::any_of(op.getResults(), mentions)) && !op.use_empty() &&
          llvm::all_of(op.getUsers(), counts))
        phase = Phase::Loop;
    } else if (llvm::any_of(op.getUsers(), inLoop)) {
      phase = Phase::Loop;
    } else if (!op.use_empty() && llvm::all_of(op.getUsers(), isSum) && takesSums(&op, ofBatch)) {
      phase = Phase::After;
      sums.insert(&op);
    } else {
      phase = sumsBatches || seeds.contains(&op) ? Phase::Loop : Phase::After;
    }
    phases[&op] = phase;
  }
  if (failed(classifyLate(sums, sumsBatches)))
    return failure();
  sinkIntoAfter();
  return success();
}

/// What only ops after the loop use, such as the shards of parameters that an optimizer updates,
/// is made there: it would be kept through all microbatches.
void Partitioner::sinkIntoAfter() {
  if (llvm::none_of(phases, [](auto &entry) { return entry.second == Phase::Loop; }))
    return;
  for (Operation &op : llvm::reverse(function.front().without_terminator())) {
    if (phases.at(&op) != Phase::Before || op.use_empty())
      continue;
    bool onlyAfter = llvm::all_of(op.getUsers(), [&](Operation *user) {
      return isa<func::ReturnOp>(user) || phases.at(user) == Phase::After;
    });
    if (onlyAfter)
      phases[&op] = Phase::After;
  }
}

LogicalResult Partitioner::refuseGather(dist::ReshardOp op) {
  return op.emitError()
         << "a value of shape " << op.getType() << " that each microbatch has a part of ("
         << layoutOf(op.getInput()).str(mesh) << ") is needed as a whole ("
         << layoutOf(op.getResult()).str(mesh)
         << "); microbatches cannot see each other; use one microbatch, or an op that "
            "does not mix samples";
}
