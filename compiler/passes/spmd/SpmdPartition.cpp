//===- SpmdPartition.cpp - Partition the global view into shards ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/SignatureAttributes.h"
#include "compiler/passes/spmd/Partitioner.h"
#include "dialects/dist/DistScaledOps.h"
#include "dialects/dist/SampleAttributes.h"
#include "dialects/dtc/Float8Attribute.h"

#include "llvm/ADT/StringExtras.h"

namespace dtc {
#define GEN_PASS_DEF_SPMDPARTITIONPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

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

Value Partitioner::maskPadding(OpBuilder &builder, Location loc, Value operand,
                               const TensorFactors &factors, const ShardingRule &rule,
                               const FactorAxes &axes) {
  for (auto [dim, list] : llvm::enumerate(factors)) {
    if (list.size() != 1)
      continue; // a factor that shares a dimension is never padded
    const Factor &factor = rule.factors[list.front()];
    if (!factor.reduction || mesh.divides(factor.size, axes[list.front()]))
      continue;
    auto value = factor.reduction == ReductionKind::Max   ? PaddingValue::Lowest
                 : factor.reduction == ReductionKind::Min ? PaddingValue::Highest
                                                          : PaddingValue::Zero;
    operand = dist::MaskPaddingOp::create(builder, loc, operand.getType(), value, operand, dim,
                                          factor.size, mesh.name, axisNames(axes[list.front()]));
  }
  return operand;
}

/// Sets all padding of a shard of `value` to 0, so that it does not count in the largest magnitude.
Value Partitioner::maskAllPadding(OpBuilder &builder, Location loc, Value local, Value value) {
  auto shape = cast<RankedTensorType>(value.getType()).getShape();
  Layout layout = layoutOf(value); // lives as long as the loop
  for (auto [dim, axes] : llvm::enumerate(layout.dims))
    if (!mesh.divides(shape[dim], axes))
      local = dist::MaskPaddingOp::create(builder, loc, local.getType(), PaddingValue::Zero, local,
                                          dim, shape[dim], mesh.name, axisNames(axes));
  return local;
}

/// Records on a local op the spatial axes that split each operand.
void Partitioner::recordOperandAxes(Operation *op, Operation *local) {
  SmallVector<Attribute> all;
  for (Value operand : op->getOperands()) {
    AxisList split;
    Layout layout = layoutOf(operand); // lives as long as the loop
    for (const AxisList &axes : layout.dims)
      for (unsigned axis : axes)
        if (mesh.axes[axis].size > 1 && !mesh.axes[axis].temporal)
          split.push_back(axis);
    llvm::sort(split);
    all.push_back(axisNames(split));
  }
  local->setAttr(dist::kOperandAxesAttrName, ArrayAttr::get(local->getContext(), all));
}

/// Records in two attributes of a local op the sizes of dimensions of whole tensors, and the axes
/// that split each of them.
void Partitioner::recordPlace(Operation *local, ArrayRef<std::pair<Value, unsigned>> dims,
                              StringRef shapeName, StringRef shardingName) {
  SmallVector<int64_t> shape;
  SmallVector<std::string> sharding;
  for (auto [value, dim] : dims) {
    shape.push_back(cast<RankedTensorType>(value.getType()).getDimSize(dim));
    Layout layout = layoutOf(value); // lives as long as the loop
    SmallVector<StringRef> names;
    for (unsigned axis : layout.dims[dim])
      names.push_back(mesh.axes[axis].name);
    sharding.push_back(llvm::join(names, ","));
  }
  SmallVector<StringRef> texts(sharding.begin(), sharding.end());
  Builder builder(local->getContext());
  local->setAttr(shapeName, builder.getDenseI64ArrayAttr(shape));
  local->setAttr(shardingName, builder.getStrArrayAttr(texts));
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
  for (auto [operand, factors] : llvm::zip_equal(op->getOperands(), rule.operands))
    operands.push_back(
        maskPadding(builder, op->getLoc(), locals.lookup(operand), factors, rule, axes));
  if (op->hasAttr(kFloat8AttrName))
    for (auto [operand, value] : llvm::zip_equal(operands, op->getOperands()))
      operand = maskAllPadding(builder, op->getLoc(), operand, value);
  for (auto [operand, factor] : rule.indexedFactors) {
    if (mesh.product(axes[factor]) == 1)
      continue;
    Location loc = op->getLoc();
    auto type = cast<RankedTensorType>(operands[operand].getType());
    auto scalar = RankedTensorType::get({}, type.getElementType());
    Value start = dist::ShardOffsetOp::create(builder, loc, scalar, rule.factors[factor].size,
                                              mesh.name, axisNames(axes[factor]));
    Value starts = BroadcastOp::create(builder, loc, type, start, ArrayRef<int64_t>());
    operands[operand] = SubOp::create(builder, loc, operands[operand], starts);
  }
  SmallVector<Type> types;
  for (Value result : op->getResults())
    types.push_back(localType(result.getType(), layoutOf(result)));
  Operation *local = op.buildLocal(builder, operands, types);
  local->removeAttr(dist::kShardingAttrName);
  local->removeAttr("dtc.axes");
  local->removeAttr(dist::kFactorsAttrName);
  if (auto stage = dist::getStage(op))
    local->setAttr(dist::kStageAttrName, stage);
  if (op->hasAttr(kFloat8AttrName))
    recordOperandAxes(op, local);
  if (!rule.randomDims.empty()) {
    SmallVector<std::pair<Value, unsigned>> dims;
    for (auto [operand, dim] : rule.randomDims)
      dims.emplace_back(op->getOperand(operand), dim);
    recordPlace(local, dims, "shape", "sharding");
  }
  if (op->hasAttr(dist::kSampleNoiseAttrName)) {
    Value result = op->getResult(0);
    SmallVector<std::pair<Value, unsigned>> dims;
    for (unsigned dim = 0; dim < cast<RankedTensorType>(result.getType()).getRank(); ++dim)
      dims.emplace_back(result, dim);
    recordPlace(local, dims, dist::kNoiseShapeAttrName, dist::kNoiseShardingAttrName);
  }
  if (rule.sequenceFactor && mesh.product(axes[*rule.sequenceFactor]) > 1) {
    int64_t size = rule.factors[*rule.sequenceFactor].size;
    local->setAttr("sequence", builder.getI64IntegerAttr(size));
    local->setAttr("sequence_axes", axisNames(axes[*rule.sequenceFactor]));
  }
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
  if (auto sum = dyn_cast<dist::SumBatchesOp>(op)) {
    Value input = sum.getInput();
    locals.map(sum.getResult(), sums.contains(input) ? sums.lookup(input) : locals.lookup(input));
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
        if (user->hasTrait<dtc::OpTrait::SameElements>() ||
            (user->hasTrait<dtc::OpTrait::MovesElements>() && use.getOperandNumber() == 0))
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

/// Whether microbatches are parts of each device's part of a dimension. One microbatch is all of
/// it.
bool Partitioner::comesLast(const AxisList &dim) const {
  return dim.back() == *temporalAxis || mesh.axes[*temporalAxis].size == 1;
}

/// Gives the function's arguments their local types. Data that the loop cuts into microbatches come
/// whole.
LogicalResult Partitioner::localizeSignature(Block &body) {
  MLIRContext *context = function.getContext();
  SignatureAttributes attributes(function);
  for (BlockArgument arg : function.getArguments()) {
    Layout layout = layoutOf(arg);
    for (auto [index, dim] : llvm::enumerate(layout.dims))
      if (temporalAxis && llvm::is_contained(dim, *temporalAxis)) {
        int64_t size = cast<RankedTensorType>(arg.getType()).getDimSize(index);
        if (!comesLast(dim) && (index != 0 || !mesh.divides(size, dim)))
          return emitError(arg.getLoc())
                 << "argument " << arg.getArgNumber() << " has size " << size << " in dimension "
                 << index << ", which is sharded over " << mesh.str(dim)
                 << "; where the temporal axis does not come last, the first dimension is split, "
                    "and evenly";
        llvm::erase(dim, *temporalAxis);
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

LogicalResult Partitioner::emitPhase(Phase phase, OpBuilder &builder) {
  for (Operation &op : function.front().without_terminator())
    if (phases.at(&op) == phase && failed(emit(op, builder)))
      return failure();
  return success();
}

void Partitioner::cutArguments(Block &body, OpBuilder &loopBuilder) {
  for (BlockArgument arg : function.front().getArguments()) {
    Layout layout = layoutOf(arg);
    if (!mentionsTemporalAxis(layout))
      continue;
    Value local = body.getArgument(arg.getArgNumber());
    for (auto [index, dim] : llvm::enumerate(layout.dims)) {
      if (!llvm::is_contained(dim, *temporalAxis))
        continue;
      int64_t size = cast<RankedTensorType>(arg.getType()).getDimSize(index);
      local =
          emitStep(loopBuilder, arg.getLoc(), local,
                   {std::nullopt, {*temporalAxis}, int64_t(index), 0, 0, mesh.localSize(size, dim)},
                   ReductionKind::Sum);
    }
    locals.map(arg, local);
  }
}

Value Partitioner::yieldOf(Value value, Block &body, OpBuilder &loopBuilder, bool hasStages) {
  Value local = locals.lookup(value);
  // A sum that is made before the loop, such as the gradient of a parameter that is not used, is
  // made in it: a stage of a pipeline has to have it.
  if (Operation *definer = local.getDefiningOp(); definer && definer->getBlock() == &body)
    local = loopBuilder.clone(*definer)->getResult(cast<OpResult>(local).getResultNumber());
  // It is in a stage, without which it would be taken for the one before the loop.
  auto isInBody = [&](Value operand) { return operand.getParentBlock() == loopBuilder.getBlock(); };
  if (Operation *definer = local.getDefiningOp(); hasStages && definer && isInBody(local) &&
                                                  !dist::getStage(definer) &&
                                                  llvm::none_of(definer->getOperands(), isInBody))
    definer->setAttr(dist::kStageAttrName,
                     dist::StageAttr::get(function.getContext(), 0, StagePass::Forward));
  return local;
}

LogicalResult Partitioner::emitLoop(Block &body, OpBuilder &builder) {
  bool hasStages =
      llvm::any_of(function.front(), [](Operation &op) { return bool(dist::getStage(&op)); });
  SmallVector<Type> types;
  for (Value value : accumulated)
    types.push_back(localType(value.getType(), layoutOf(value)));
  auto loop = dist::MicrobatchLoopOp::create(builder, function.getLoc(), types, mesh.name,
                                             mesh.axes[*temporalAxis].name, DenseI64ArrayAttr());
  OpBuilder loopBuilder(function.getContext());
  loopBuilder.createBlock(&loop.getBody());
  cutArguments(body, loopBuilder);
  if (failed(emitPhase(Phase::Loop, loopBuilder)))
    return failure();
  SmallVector<Value> yields;
  for (auto [value, sum] : llvm::zip_equal(accumulated, loop.getResults())) {
    yields.push_back(yieldOf(value, body, loopBuilder, hasStages));
    sums.map(value, sum);
  }
  for (Value value : accumulated)
    if (Operation *definer = value.getDefiningOp(); definer && isInLoop(definer))
      locals.map(value, sums.lookup(value));
  dist::YieldOp::create(loopBuilder, function.getLoc(), yields);
  return success();
}

void Partitioner::emitReturn(OpBuilder &builder) {
  Block &global = function.front();
  MLIRContext *context = function.getContext();
  auto ret = cast<func::ReturnOp>(global.getTerminator());
  SmallVector<Value> results;
  SignatureAttributes attributes(function);
  for (auto [index, value] : llvm::enumerate(ret.getOperands())) {
    results.push_back(locals.lookup(value));
    attributes.result(index).set(
        "dtc.global_shape",
        DenseI64ArrayAttr::get(context, cast<RankedTensorType>(value.getType()).getShape()));
  }
  func::ReturnOp::create(builder, ret.getLoc(), results);

  // Shardings of the signature from here on are those of the tensors in memory: spatial, but where
  // memory has a piece of each microbatch.
  for (BlockArgument arg : global.getArguments()) {
    Layout layout = layoutOf(arg);
    for (AxisList &dim : layout.dims)
      if (temporalAxis && llvm::is_contained(dim, *temporalAxis) && comesLast(dim))
        llvm::erase(dim, *temporalAxis);
    attributes.argument(arg.getArgNumber())
        .set(dist::kShardingAttrName, toAttr(context, mesh, layout));
  }
  attributes.commit();
}

LogicalResult Partitioner::run() {
  if (failed(checkProgram(function, mesh.name)) || failed(checkShardings(function)) ||
      failed(classify()))
    return failure();
  recordIndexLimits();
  Block *global = &function.front();
  auto *body = new Block();
  function.getBody().push_back(body);
  if (failed(localizeSignature(*body)))
    return failure();
  for (auto [arg, local] : llvm::zip_equal(global->getArguments(), body->getArguments()))
    locals.map(arg, local);

  OpBuilder builder = OpBuilder::atBlockEnd(body);
  if (failed(emitPhase(Phase::Before, builder)))
    return failure();
  bool hasLoop = llvm::any_of(phases, [](auto &entry) { return entry.second == Phase::Loop; });
  if ((hasLoop || !accumulated.empty()) && failed(emitLoop(*body, builder)))
    return failure();
  if (failed(emitPhase(Phase::After, builder)))
    return failure();
  emitReturn(builder);

  global->dropAllReferences();
  global->erase();
  function.setType(FunctionType::get(function.getContext(), body->getArgumentTypes(),
                                     body->getTerminator()->getOperandTypes()));
  return success();
}

namespace {
struct SpmdPartitionPass : dtc::impl::SpmdPartitionPassBase<SpmdPartitionPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(forEachFunction(getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) {
          return Partitioner(function, mesh, accumulates).run();
        })))
      signalPassFailure();
  }
};
} // namespace
