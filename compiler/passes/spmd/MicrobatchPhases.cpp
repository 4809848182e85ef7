//===- MicrobatchPhases.cpp - What runs in the loop over microbatches ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A value whose sharding mentions the temporal axis, split or partial, is another one in each
// microbatch; the ops that make or use such values are the body of the loop over microbatches. A
// sum over the axis leaves the loop where a reshard completes it, as does any value of the only
// microbatch. Everything else runs before the loop, or after it if it depends on such a sum.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/spmd/Partitioner.h"

#define DEBUG_TYPE "dtc-spmd-partition"

using namespace mlir;
using namespace dtc;

LogicalResult Partitioner::classify() {
  for (Operation &op : function.front().without_terminator()) {
    bool inLoop = false;
    Operation *late = nullptr;
    for (Value operand : op.getOperands()) {
      // Data are there whole before the step: only in the loop are they cut into microbatches.
      inLoop |= mentionsTime(layoutOf(operand));
      if (Operation *definer = operand.getDefiningOp();
          definer && phases.at(definer) == Phase::After)
        late = definer;
    }
    for (Value result : op.getResults())
      inLoop |= mentionsTime(layoutOf(result));

    auto reshard = dyn_cast<dist::ReshardOp>(op);
    bool leaves = reshard && mentionsTime(layoutOf(reshard.getInput())) &&
                  !mentionsTime(layoutOf(reshard.getResult()));
    bool isPartial = leaves && layoutOf(reshard.getInput()).isPartialOver(*time);
    // One microbatch has all of a value, which is the sum over it.
    bool isOnly =
        leaves && mesh.axes[*time].size == 1 && isa<FloatType>(reshard.getType().getElementType());
    if (isPartial || isOnly) {
      if (isPartial && layoutOf(reshard.getInput()).partialKind != dist::ReductionKind::Sum)
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
      if (inLoop && !mentionsTime(layoutOf(result))) {
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
    if (mentionsTime(layoutOf(value)))
      return ret->emitOpError() << "returns as result " << index
                                << " what each microbatch has a part of ("
                                << layoutOf(value).str(mesh) << "); run dtc-insert-reshards first";
  return success();
}

/// What only ops behind the loop use, such as the shards of parameters that an optimizer updates,
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
