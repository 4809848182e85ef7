//===- SpmdPartition.cpp - From the global view to one device's -----------===//
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
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Layout.h"
#include "compiler/analysis/ReshardPlan.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/SignatureAttributes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

#define DEBUG_TYPE "dtc-spmd-partition"

namespace dtc {
#define GEN_PASS_DEF_SPMDPARTITIONPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

enum class Phase { Before, Loop, After };

class Partitioner {
public:
  Partitioner(func::FuncOp function, const Mesh &mesh)
      : function(function), mesh(mesh), time(mesh.temporalAxis()), planner(mesh) {}
  LogicalResult run();

private:
  Layout layoutOf(Value value) { return getLayout(mesh, dist::getSharding(value)); }
  bool mentionsTime(const Layout &layout) { return time && layout.mentions(*time); }
  RankedTensorType localType(Type type, const Layout &layout);
  LogicalResult classify();
  LogicalResult refuseGather(dist::ReshardOp op);
  void recordIndexLimits();
  LogicalResult localizeSignature(Block &body);
  LogicalResult emit(Operation &op, OpBuilder &builder);
  LogicalResult emitReshard(dist::ReshardOp op, OpBuilder &builder);
  LogicalResult emitOp(ShardingRuleOpInterface op, OpBuilder &builder);
  LogicalResult checkFollows(ShardingRuleOpInterface op, const ShardingRule &rule,
                             const FactorAxes &axes);
  Value emitStep(OpBuilder &builder, Location loc, Value value, const ReshardStep &step,
                 dist::ReductionKind kind);
  ArrayAttr axisNames(ArrayRef<unsigned> axes);

  func::FuncOp function;
  const Mesh &mesh;
  std::optional<unsigned> time;
  ReshardPlanner planner;
  llvm::DenseMap<Operation *, Phase> phases;
  /// Values of the loop whose sum over microbatches is used after it.
  llvm::SetVector<Value> accumulated;
  IRMapping locals; ///< global value -> local value
  IRMapping sums;   ///< accumulated global value -> result of the loop
};

} // namespace

RankedTensorType Partitioner::localType(Type type, const Layout &layout) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(layout.localShape(mesh, tensor.getShape()), tensor.getElementType());
}

ArrayAttr Partitioner::axisNames(ArrayRef<unsigned> axes) {
  SmallVector<StringRef> names;
  for (unsigned axis : axes)
    names.push_back(mesh.axes[axis].name);
  return Builder(function.getContext()).getStrArrayAttr(names);
}

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
    if (reshard && time && layoutOf(reshard.getInput()).isPartialOver(*time) &&
        !mentionsTime(layoutOf(reshard.getResult()))) {
      if (layoutOf(reshard.getInput()).partialKind != dist::ReductionKind::Sum)
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
  Operation *ret = function.front().getTerminator();
  for (auto [index, value] : llvm::enumerate(ret->getOperands()))
    if (mentionsTime(layoutOf(value)))
      return ret->emitOpError() << "returns as result " << index
                                << " what each microbatch has a part of ("
                                << layoutOf(value).str(mesh) << "); run dtc-insert-reshards first";
  return success();
}

LogicalResult Partitioner::refuseGather(dist::ReshardOp op) {
  return op.emitError()
         << "a value of shape " << op.getType() << " that each microbatch has a part of ("
         << layoutOf(op.getInput()).str(mesh) << ") is needed as a whole ("
         << layoutOf(op.getResult()).str(mesh)
         << "); microbatches cannot see each other; use one microbatch, or an op that "
            "does not mix samples";
}

Value Partitioner::emitStep(OpBuilder &builder, Location loc, Value value, const ReshardStep &step,
                            dist::ReductionKind kind) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t group = mesh.product(step.axes);
  if (group == 1)
    return value; // axes of size one split nothing
  SmallVector<int64_t> shape(type.getShape());
  ArrayAttr axes = axisNames(step.axes);
  auto resized = [&] { return RankedTensorType::get(shape, type.getElementType()); };
  switch (step.kind) {
  case ReshardStep::AllReduce:
    return dist::AllReduceOp::create(builder, loc, type, kind, value, mesh.name, axes);
  case ReshardStep::ReduceScatter:
    shape[step.dim] /= group;
    return dist::ReduceScatterOp::create(builder, loc, resized(), kind, value, step.dim, mesh.name,
                                         axes);
  case ReshardStep::Slice:
    shape[step.dim] /= group;
    return dist::ShardSliceOp::create(builder, loc, resized(), value, step.dim, mesh.name, axes);
  case ReshardStep::AllGather:
    shape[step.dim] *= group;
    return dist::AllGatherOp::create(builder, loc, resized(), value, step.dim, mesh.name, axes);
  case ReshardStep::Permute:
    llvm::report_fatal_error("a permute cannot be emitted yet");
  case ReshardStep::AllToAll:
    shape[step.splitDim] /= group;
    shape[step.dim] *= group;
    return dist::AllToAllOp::create(builder, loc, resized(), value, step.splitDim, step.dim,
                                    mesh.name, axes);
  }
  llvm_unreachable("unknown step");
}

LogicalResult Partitioner::emitReshard(dist::ReshardOp op, OpBuilder &builder) {
  Layout from = layoutOf(op.getInput()), to = layoutOf(op.getResult());
  if (from != getLayout(mesh, op.getFrom()) || to != getLayout(mesh, op.getTo()))
    return op.emitOpError() << "goes from " << from.str(mesh) << " to " << to.str(mesh)
                            << ", and says otherwise";
  Value value = locals.lookupOrNull(op.getInput());
  if (phases.at(op) == Phase::After && accumulated.contains(op.getInput())) {
    value = sums.lookup(op.getInput());
    llvm::erase(from.partial, *time);
  }
  auto type = cast<RankedTensorType>(op.getType());
  int64_t elementBytes = (type.getElementTypeBitWidth() + 7) / 8;
  const auto &plan = planner.plan(elementBytes, type.getShape(), from, to);
  if (!plan)
    return refuseGather(op);
  for (const ReshardStep &step : plan->steps)
    value = emitStep(builder, op.getLoc(), value, step, from.partialKind);
  locals.map(op.getResult(), value);
  return success();
}

/// Checks that the layouts of the op's tensors are those that `axes` of its factors give.
LogicalResult Partitioner::checkFollows(ShardingRuleOpInterface op, const ShardingRule &rule,
                                        const FactorAxes &axes) {
  auto splitting = [&](AxisList list) {
    llvm::erase_if(list, [&](unsigned axis) { return mesh.axes[axis].size == 1; });
    return list;
  };
  auto check = [&](StringRef kind, ValueRange values,
                   ArrayRef<TensorFactors> tensors) -> LogicalResult {
    for (auto [index, value, tensor] : llvm::enumerate(values, tensors)) {
      auto expected = layoutFromFactors(mesh, rule, tensor, axes);
      bool follows = expected.has_value();
      for (size_t dim = 0; follows && dim < tensor.size(); ++dim)
        follows = splitting(expected->dims[dim]) == splitting(layoutOf(value).dims[dim]);
      for (const auto &dim : tensor)
        for (unsigned factor : dim)
          follows &= !rule.factors[factor].whole || mesh.product(axes[factor]) == 1;
      if (!follows)
        return op->emitOpError() << kind << " " << index << " is laid out as "
                                 << layoutOf(value).str(mesh)
                                 << ", which does not follow from the op's other tensors; run "
                                    "dtc-insert-reshards first";
    }
    return success();
  };
  return success(succeeded(check("operand", op->getOperands(), rule.operands)) &&
                 succeeded(check("result", op->getResults(), rule.results)));
}

LogicalResult Partitioner::emitOp(ShardingRuleOpInterface op, OpBuilder &builder) {
  ShardingRule rule = op.getShardingRule();
  FactorAxes axes(rule.factors.size());
  auto collect = [&](ValueRange values, ArrayRef<TensorFactors> tensors) {
    for (auto [value, tensor] : llvm::zip_equal(values, tensors)) {
      FactorAxes own(rule.factors.size());
      for (auto [factors, dim] : llvm::zip_equal(tensor, layoutOf(value).dims))
        factorsFromDim(mesh, rule, factors, dim, own);
      for (auto [all, mine] : llvm::zip_equal(axes, own))
        if (all.empty())
          all = mine;
    }
  };
  collect(op->getOperands(), rule.operands);
  collect(op->getResults(), rule.results);
  if (failed(checkFollows(op, rule, axes)))
    return failure();

  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(locals.lookup(operand));
  for (auto [operand, factor] : rule.indexedFactors) {
    if (mesh.product(axes[factor]) == 1)
      continue;
    Location loc = op->getLoc();
    auto type = cast<RankedTensorType>(operands[operand].getType());
    auto scalar = RankedTensorType::get({}, type.getElementType());
    Value start = dist::ShardOffsetOp::create(
        builder, loc, scalar, rule.factors[factor].size / mesh.product(axes[factor]), mesh.name,
        axisNames(axes[factor]));
    Value starts = BroadcastOp::create(builder, loc, type, start, ArrayRef<int64_t>());
    operands[operand] = SubOp::create(builder, loc, operands[operand], starts);
  }
  SmallVector<Type> types;
  for (Value result : op->getResults())
    types.push_back(localType(result.getType(), layoutOf(result)));
  Operation *local = op.buildLocal(builder, operands, types);
  local->removeAttr(dist::kShardingAttrName);
  local->removeAttr("dtc.axes");
  locals.map(op->getResults(), local->getResults());
  return success();
}

LogicalResult Partitioner::emit(Operation &op, OpBuilder &builder) {
  if (auto reshard = dyn_cast<dist::ReshardOp>(op))
    return emitReshard(reshard, builder);
  if (auto constrain = dyn_cast<dist::ConstrainOp>(op)) {
    locals.map(constrain.getResult(), locals.lookup(constrain.getInput()));
    return success();
  }
  return emitOp(cast<ShardingRuleOpInterface>(op), builder);
}

/// Notes for each input whose elements are used as indices how many there are to choose from.
void Partitioner::recordIndexLimits() {
  for (BlockArgument arg : function.getArguments()) {
    if (!function.getArgAttr(arg.getArgNumber(), "dtc.input"))
      continue;
    int64_t limit = 0;
    SmallVector<Value> worklist{arg};
    while (!worklist.empty())
      for (OpOperand &use : worklist.pop_back_val().getUses()) {
        Operation *user = use.getOwner();
        if (isa<dist::ReshardOp, dist::ConstrainOp, ReshapeOp>(user))
          worklist.push_back(user->getResult(0));
        auto op = dyn_cast<ShardingRuleOpInterface>(user);
        if (!op)
          continue;
        ShardingRule rule = op.getShardingRule();
        for (auto [operand, factor] : rule.indexedFactors)
          if (operand == use.getOperandNumber())
            limit = limit ? std::min(limit, rule.factors[factor].size) : rule.factors[factor].size;
      }
    if (limit)
      function.setArgAttr(arg.getArgNumber(), "dtc.index_limit",
                          Builder(function.getContext()).getI64IntegerAttr(limit));
  }
}

/// Gives the function's arguments their local types. Data that the loop cuts into microbatches come
/// whole.
LogicalResult Partitioner::localizeSignature(Block &body) {
  MLIRContext *context = function.getContext();
  SignatureAttributes attributes(function);
  for (BlockArgument arg : function.getArguments()) {
    Layout layout = layoutOf(arg);
    for (AxisList &dim : layout.dims)
      if (time && llvm::is_contained(dim, *time)) {
        if (dim.back() != *time)
          return emitError(arg.getLoc()) << "argument " << arg.getArgNumber() << " is sharded over "
                                         << mesh.str(dim) << "; the temporal axis must come last";
        dim.pop_back();
      }
    body.addArgument(localType(arg.getType(), layout), arg.getLoc());
    auto shape = cast<RankedTensorType>(arg.getType()).getShape();
    attributes.argument(arg.getArgNumber())
        .set("dtc.global_shape", DenseI64ArrayAttr::get(context, shape));
    attributes.argument(arg.getArgNumber()).erase("dtc.axes");
  }
  attributes.commit();
  return success();
}

LogicalResult Partitioner::run() {
  if (failed(checkProgram(function, mesh.name)) || failed(checkShardings(function, mesh)) ||
      failed(classify()))
    return failure();
  recordIndexLimits();
  MLIRContext *context = function.getContext();
  Block *global = &function.front();
  auto *body = new Block();
  function.getBody().push_back(body);
  if (failed(localizeSignature(*body)))
    return failure();

  OpBuilder builder = OpBuilder::atBlockEnd(body);
  OpBuilder loopBuilder(context);
  dist::MicrobatchLoopOp loop;
  auto emitPhase = [&](Phase phase, OpBuilder &at) -> LogicalResult {
    for (Operation &op : global->without_terminator())
      if (phases.at(&op) == phase && failed(emit(op, at)))
        return failure();
    return success();
  };

  SmallVector<BlockArgument> cut;
  for (auto [arg, local] : llvm::zip_equal(global->getArguments(), body->getArguments())) {
    if (mentionsTime(layoutOf(arg)))
      cut.push_back(arg);
    else
      locals.map(arg, local);
  }
  if (failed(emitPhase(Phase::Before, builder)))
    return failure();

  if (llvm::any_of(phases, [](auto &entry) { return entry.second == Phase::Loop; })) {
    SmallVector<Type> types;
    for (Value value : accumulated)
      types.push_back(localType(value.getType(), layoutOf(value)));
    loop = dist::MicrobatchLoopOp::create(builder, function.getLoc(), types, mesh.name,
                                          mesh.axes[*time].name);
    loopBuilder.createBlock(&loop.getBody());
    for (BlockArgument arg : cut) {
      Layout layout = layoutOf(arg);
      Value local = body->getArgument(arg.getArgNumber());
      for (auto [index, dim] : llvm::enumerate(layout.dims))
        if (llvm::is_contained(dim, *time))
          local = emitStep(loopBuilder, arg.getLoc(), local,
                           {ReshardStep::Slice, {*time}, int64_t(index)}, dist::ReductionKind::Sum);
      locals.map(arg, local);
    }
    if (failed(emitPhase(Phase::Loop, loopBuilder)))
      return failure();
    SmallVector<Value> yields;
    for (auto [value, sum] : llvm::zip_equal(accumulated, loop.getResults())) {
      yields.push_back(locals.lookup(value));
      sums.map(value, sum);
    }
    dist::YieldOp::create(loopBuilder, function.getLoc(), yields);
  }
  if (failed(emitPhase(Phase::After, builder)))
    return failure();

  auto ret = cast<func::ReturnOp>(global->getTerminator());
  SmallVector<Value> results;
  SignatureAttributes attributes(function);
  for (auto [index, value] : llvm::enumerate(ret.getOperands())) {
    results.push_back(locals.lookup(value));
    attributes.result(index).set(
        "dtc.global_shape",
        DenseI64ArrayAttr::get(context, cast<RankedTensorType>(value.getType()).getShape()));
  }
  func::ReturnOp::create(builder, ret.getLoc(), results);

  // Shardings of the signature from here on are those of what lies in memory: spatial.
  for (BlockArgument arg : global->getArguments()) {
    Layout layout = layoutOf(arg);
    for (AxisList &dim : layout.dims)
      llvm::erase_if(dim, [&](unsigned axis) { return mesh.isTemporal(axis); });
    attributes.argument(arg.getArgNumber())
        .set(dist::kShardingAttrName, toAttr(context, mesh, layout));
  }
  attributes.commit();
  global->dropAllReferences();
  global->erase();
  function.setType(
      FunctionType::get(context, body->getArgumentTypes(), TypeRange(ValueRange(results))));
  return success();
}

namespace {
struct SpmdPartitionPass : dtc::impl::SpmdPartitionPassBase<SpmdPartitionPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(forEachFunction(getOperation(), [](func::FuncOp function, const Mesh &mesh) {
          return Partitioner(function, mesh).run();
        })))
      signalPassFailure();
  }
};
} // namespace
