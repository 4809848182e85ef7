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
// The loop may run again, for further batches of the same step: its sums are then over all batches.
// dist.sum_batches marks a value, such as a gradient, that must be a sum over all batches. The ops
// between the loop and a mark must be linear: they then work on the sums. A summand that is the
// same for all batches is multiplied by their number.
//
// A single microbatch is the whole batch. In a step of one batch its values need no sum, and ops
// between two ops of the loop are in the loop as well. In a step of several batches the rules for
// several microbatches hold.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/passes/spmd/Partitioner.h"

#include "mlir/IR/Matchers.h"

#include <algorithm>

using namespace mlir;
using namespace dtc;

/// The remedy where several batches do not add up to one large batch.
static constexpr llvm::StringLiteral kInsteadOfBatches =
    "; compile a larger batch and do not accumulate, or a loss that is a sum over samples or a "
    "quotient of such sums";

namespace {

/// Replaces each dist.sum_batches by ops, after the loop, on the sums that the loop makes.
class BatchSums {
public:
  BatchSums(func::FuncOp function, const LinkedMesh &mesh, const llvm::DenseSet<Value> &ofBatch)
      : function(function), mesh(mesh), ofBatch(ofBatch) {}
  LogicalResult run();

private:
  Layout layoutOf(Value value) { return getLayout(mesh, dist::getSharding(value)); }
  bool isOfMicrobatch(Value value) { return layoutOf(value).mentions(*mesh.temporalAxis()); }
  bool isLate(Value value) { return late.contains(value); }
  /// The sum of a value of one batch over all batches of the step; null after an error.
  Value sumOf(Value value);
  Value sumOfLate(Value value);
  Value timesBatches(Value value);
  BlockArgument countBatches();

  func::FuncOp function;
  const LinkedMesh &mesh;
  const llvm::DenseSet<Value> &ofBatch;
  llvm::DenseSet<Value> late; ///< sums that the loop makes, and values computed from them
  llvm::DenseMap<Value, Value> known;
  Operation *user = nullptr; ///< the op that adds the value
  bool overSamples = false;
  bool multiplies = true; ///< values that are the same for all batches, by their number
};

} // namespace

/// The number of batches in a step, an argument of the function.
BlockArgument BatchSums::countBatches() {
  for (BlockArgument arg : function.getArguments())
    if (auto scalar = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), "dtc.scalar");
        scalar && scalar.getValue() == "batches")
      return arg;
  Builder builder(function.getContext());
  NamedAttrList attributes;
  attributes.set("dtc.scalar", builder.getStringAttr("batches"));
  attributes.set(dist::kShardingAttrName,
                 toAttr(function.getContext(), mesh, Layout::replicated(0)));
  unsigned end = function.getNumArguments();
  (void)function.insertArgument(end, RankedTensorType::get({}, builder.getF32Type()),
                                attributes.getDictionary(function.getContext()),
                                NameLoc::get(builder.getStringAttr("batches")));
  return function.getArgument(end);
}

Value BatchSums::timesBatches(Value value) {
  if (matchPattern(value, m_AnyZeroFloat()))
    return value;
  if (ofBatch.contains(value)) {
    emitError(value.getLoc()) << "is another value in each batch of a step and no sum over samples"
                              << kInsteadOfBatches;
    return {};
  }
  if (overSamples) {
    user->emitError() << "'" << user->getName().getStringRef()
                      << "' adds what depends on no data to a sum over samples, before a tensor of "
                         "such sums is added up; add it to the loss, as a scalar"
                      << kInsteadOfBatches;
    return {};
  }
  if (!multiplies) {
    user->emitError() << "'" << user->getName().getStringRef()
                      << "' uses what is the same for all batches as a part of a "
                         "gradient; compile with --accumulate";
    return {};
  }
  OpBuilder builder(function.getContext());
  builder.setInsertionPointAfterValue(value);
  auto type = cast<RankedTensorType>(value.getType());
  Layout layout = layoutOf(value);
  auto laid = [&](Value made, const Layout &as) {
    dist::setSharding(made, toAttr(function.getContext(), mesh, as));
    return made;
  };
  Value count = countBatches();
  if (cast<RankedTensorType>(count.getType()).getElementType() != type.getElementType())
    count = laid(ConvertOp::create(builder, value.getLoc(), count, type.getElementType()),
                 Layout::replicated(0));
  if (type.getRank() > 0)
    count = laid(BroadcastOp::create(builder, value.getLoc(), type, count, ArrayRef<int64_t>()),
                 layout.complete());
  return laid(MulOp::create(builder, value.getLoc(), value, count), layout);
}

Value BatchSums::sumOf(Value value) {
  if (Value sum = known.lookup(value))
    return sum;
  Value sum = isLate(value) ? sumOfLate(value) : timesBatches(value);
  return known[value] = sum;
}

Value BatchSums::sumOfLate(Value value) {
  Operation *op = value.getDefiningOp();
  SmallVector<unsigned> of;
  for (OpOperand &operand : op->getOpOperands())
    if (isLate(operand.get()))
      of.push_back(operand.getOperandNumber());
  if (of.empty())
    return value; // the reshard that completes it: the loop sums it over all batches
  // The operands in which the op is linear together.
  SmallVector<unsigned> summands;
  if (isa<dist::ReshardOp, dist::ConstrainOp, ConvertOp>(op))
    summands = of;
  else if (auto rule = dyn_cast<ShardingRuleOpInterface>(op))
    for (const auto &set : rule.getShardingRule().linearOperands)
      if (llvm::all_of(of, [&](unsigned index) { return llvm::is_contained(set, index); }))
        summands.assign(set.begin(), set.end());
  if (summands.empty()) {
    op->emitError() << "'" << op->getName().getStringRef()
                    << "' is not linear in a sum over the samples of a batch, so that several "
                       "batches do not add up to one large batch"
                    << kInsteadOfBatches;
    return {};
  }
  SmallVector<Value> operands(op->getOperands());
  for (unsigned index : summands) {
    user = op;
    operands[index] = sumOf(operands[index]);
    if (!operands[index])
      return {};
  }
  if (llvm::equal(operands, op->getOperands()))
    return value;
  Operation *copy = OpBuilder(op).clone(*op);
  copy->setOperands(operands);
  return copy->getResult(cast<OpResult>(value).getResultNumber());
}

LogicalResult BatchSums::run() {
  for (Operation &op : function.front()) {
    auto reshard = dyn_cast<dist::ReshardOp>(op);
    bool leaves = reshard && isOfMicrobatch(reshard.getInput()) && !isOfMicrobatch(reshard);
    if (leaves || llvm::any_of(op.getOperands(), [&](Value operand) { return isLate(operand); }))
      late.insert(op.result_begin(), op.result_end());
  }
  SmallVector<OptimizerOpInterface> unmarked;
  llvm::DenseSet<Value> marked;
  for (Operation &op : function.front()) {
    if (isa<dist::SumBatchesOp>(op) ||
        llvm::any_of(op.getOperands(), [&](Value operand) { return marked.contains(operand); }))
      marked.insert(op.result_begin(), op.result_end());
    if (auto optimizer = dyn_cast<OptimizerOpInterface>(op);
        optimizer && !marked.contains(optimizer.getGradientMutable().get()))
      unmarked.push_back(optimizer);
  }
  // Sums over samples come first: nothing is multiplied for them, so all others can use theirs.
  auto sums = llvm::to_vector(function.front().getOps<dist::SumBatchesOp>());
  std::stable_partition(sums.begin(), sums.end(), [](auto sum) { return sum.getOverSamples(); });
  for (dist::SumBatchesOp sum : sums) {
    user = sum;
    overSamples = sum.getOverSamples();
    // A partial sum goes on: the loop sums it.
    Value all = isOfMicrobatch(sum.getInput()) ? sum.getInput() : sumOf(sum.getInput());
    if (!all)
      return failure();
    sum.getResult().replaceAllUsesWith(all);
    sum.erase();
  }
  // A gradient without a mark must already be a sum over all batches.
  multiplies = false;
  known.clear();
  for (OptimizerOpInterface op : unmarked) {
    user = op;
    if (Value gradient = op.getGradientMutable().get(); !isOfMicrobatch(gradient))
      if (!sumOf(gradient))
        return failure();
  }
  return success();
}

/// Whether the op draws a mask. Each batch has another one.
static bool drawsMask(Operation &op) {
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  return rule && !rule.getShardingRule().randomDims.empty();
}

llvm::StringRef Partitioner::remedy(llvm::StringRef ofOneBatch) const {
  return repeats ? llvm::StringRef(kInsteadOfBatches) : ofOneBatch;
}

LogicalResult Partitioner::classify() {
  bool sumsBatches = temporalAxis && !function.front().getOps<dist::SumBatchesOp>().empty();
  if (temporalAxis && mesh.axes[*temporalAxis].size == 1 && !(accumulates && sumsBatches))
    return classifySingle();
  if (!sumsBatches)
    return classifyOps();
  if (accumulates)
    return classifyRepeated();
  std::string reason;
  {
    ScopedDiagnosticHandler handler(function.getContext(), [&](Diagnostic &diagnostic) {
      if (reason.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
        reason = describeLocation(diagnostic.getLocation()) + ": " + diagnostic.str();
    });
    if (succeeded(classifyRepeated()))
      return success();
  }
  phases.clear();
  accumulated.clear();
  ofBatch.clear();
  repeats = false;
  for (auto sum : llvm::make_early_inc_range(function.front().getOps<dist::SumBatchesOp>())) {
    sum.getResult().replaceAllUsesWith(sum.getInput());
    sum.erase();
  }
  function->getParentOfType<ModuleOp>()->setAttr(dist::kOneBatchAttrName,
                                                 StringAttr::get(function.getContext(), reason));
  return classifyOps();
}

LogicalResult Partitioner::classifyRepeated() {
  repeats = true;
  // Several microbatches share the masks of parameters, and so do their batches.
  bool isSingle = mesh.axes[*temporalAxis].size == 1;
  for (BlockArgument arg : function.getArguments())
    if (function.getArgAttr(arg.getArgNumber(), DtcDialect::kInputAttrName) &&
        !mentionsTemporalAxis(layoutOf(arg)))
      ofBatch.insert(arg);
  for (Operation &op : function.front()) {
    auto isOfBatch = [&](Value value) { return ofBatch.contains(value); };
    auto isOfMicrobatch = [&](Value value) { return mentionsTemporalAxis(layoutOf(value)); };
    if (((isSingle && drawsMask(op)) || llvm::any_of(op.getOperands(), isOfBatch)) &&
        llvm::none_of(op.getResults(), isOfMicrobatch))
      ofBatch.insert(op.result_begin(), op.result_end());
  }
  if (failed(BatchSums(function, mesh, ofBatch).run()))
    return failure();
  return classifyOps();
}

LogicalResult Partitioner::classifyOps() {
  for (Operation &op : function.front().without_terminator()) {
    auto isOfBatch = [&](Value value) { return ofBatch.contains(value); };
    bool inLoop =
        llvm::any_of(op.getOperands(), isOfBatch) || llvm::any_of(op.getResults(), isOfBatch);
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
        return op.emitError()
               << "the result of '" << reshard.getInput().getDefiningOp()->getName().getStringRef()
               << "' needs the maximum over microbatches; only sums are carried from "
                  "one microbatch to the next"
               << remedy("; use one microbatch");
      accumulated.insert(reshard.getInput());
      phases[&op] = Phase::After;
      continue;
    }
    if (inLoop && late) {
      InFlightDiagnostic diag =
          op.emitError()
          << "'" << op.getName().getStringRef()
          << "' computes on a microbatch and needs a sum over all microbatches, which "
             "is known only after the last of them"
          << remedy("; use one microbatch, or a form of the op that does not mix samples (a batch "
                    "norm does)");
      diag.attachNote(late->getLoc()) << "the sum over microbatches is completed here";
      return failure();
    }
    // Only sums leave the loop: no other value of a microbatch is known outside it.
    for (Value result : op.getResults())
      if (inLoop && !mentionsTemporalAxis(layoutOf(result)) && !isOfBatch(result)) {
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
    if (ofBatch.contains(value))
      return emitError(value.getLoc())
             << "result " << index << " of the step is another value in each batch and no sum over "
             << "samples" << kInsteadOfBatches;
    else if (mentionsTemporalAxis(layoutOf(value)))
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

LogicalResult Partitioner::classifySingle() {
  Block &block = function.front();
  bool sumsBatches = !block.getOps<dist::SumBatchesOp>().empty();
  // The values that each batch has its own of: those that depend on data or on random masks, up to
  // the sums over batches. Where the function does not mark these sums, the values whose sharding
  // mentions the temporal axis.
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

  // Goes from the last op to the first: an op is in the loop if an op of the loop or a sum over
  // batches uses it. Ops before a sum that can take sums run after the loop.
  llvm::DenseSet<Operation *> sums;
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    auto isSum = [&](Operation *user) { return sums.contains(user); };
    auto inLoop = [&](Operation *user) { return isInLoop(user); };
    Phase phase = Phase::Before;
    if (isa<dist::SumBatchesOp>(op)) {
      phase = Phase::After;
      sums.insert(&op);
    } else if (llvm::none_of(op.getResults(), isOfBatch)) {
      // A summand that is the same for all batches counts once for each. A value as large as a
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

/// Values that only ops after the loop use, such as the shards of parameters that an optimizer
/// updates, are made there: otherwise they would be kept through all microbatches.
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
  return op.emitError() << "a value of shape " << op.getType()
                        << " that each microbatch has a part of ("
                        << layoutOf(op.getInput()).str(mesh) << ") is needed as a whole ("
                        << layoutOf(op.getResult()).str(mesh)
                        << "); microbatches cannot see each other"
                        << remedy("; use one microbatch, or an op that does not mix samples");
}
