//===- LowerToExec.cpp - From tensors to kernels on buffers ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/exec/Lowering.h"

#include "llvm/ADT/TypeSwitch.h"

#define DEBUG_TYPE "dtc-lower-to-exec"

namespace dtc {
#define GEN_PASS_DEF_LOWERTOEXECPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

void Lowering::kernel(Location loc, StringRef name, ValueRange inputs, ValueRange outputs,
                      DictionaryAttr attributes, double flops) {
  exec::KernelOp::create(builder, loc, builder.getStringAttr(name), inputs, outputs, attributes,
                         builder.getF64FloatAttr(flops));
}

LogicalResult Lowering::lowerKernel(Operation &op) {
  auto kernelOp = dyn_cast<KernelOpInterface>(op);
  if (!kernelOp)
    return op.emitOpError() << "has no kernel; implement KernelOpInterface";
  NamedAttrList attributes(kernelOp.getKernelAttributes());
  SmallVector<Value> inputs, outputs;
  for (OpOperand &operand : op.getOpOperands()) {
    Value value = source(operand);
    if (value != operand.get())
      attributes.set(kernelOp.getBroadcastAttribute(operand.getOperandNumber()),
                     operand.get().getDefiningOp<BroadcastOp>().getDimsAttr());
    inputs.push_back(bufferOf.at(value));
  }
  auto pairs = kernelOp.getInPlacePairs();
  for (unsigned index = 0; index < op.getNumResults(); ++index)
    outputs.push_back(allocateResult(op, index, pairs));
  double flops = 0;
  if (auto rule = dyn_cast<ShardingRuleOpInterface>(op))
    flops = rule.getFlops();
  kernel(op.getLoc(), kernelOp.getKernelName(), inputs, outputs,
         attributes.getDictionary(op.getContext()), flops);
  return success();
}

/// The exec dialect's name for a collective of the dist dialect; none for other ops.
static std::optional<exec::CollectiveKind> collectiveKind(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<exec::CollectiveKind>>(op)
      .Case<dist::AllReduceOp>([](auto) { return exec::CollectiveKind::AllReduce; })
      .Case<dist::AllGatherOp>([](auto) { return exec::CollectiveKind::AllGather; })
      .Case<dist::ReduceScatterOp>([](auto) { return exec::CollectiveKind::ReduceScatter; })
      .Case<dist::AllToAllOp>([](auto) { return exec::CollectiveKind::AllToAll; })
      .Case<dist::PermuteOp>([](auto) { return exec::CollectiveKind::Permute; })
      .Default([](Operation *) { return std::nullopt; });
}

void Lowering::lowerCollectives(ArrayRef<Operation *> ops) {
  Operation *first = ops.front();
  exec::CollectiveKind kind = *collectiveKind(first);
  SmallVector<Value> inputs, outputs;
  SmallVector<int64_t> dims, splitDims;
  SmallVector<Attribute> reasons;
  SmallVector<std::pair<unsigned, unsigned>> inPlace;
  if (kind == exec::CollectiveKind::AllReduce)
    inPlace.push_back({0, 0});
  for (Operation *op : ops) {
    unsigned storage = storageOf.at(op->getOperand(0));
    // All tensors of a bucket are read before any is written.
    bool alone = llvm::count_if(ops, [&](Operation *other) {
                   return storageOf.at(other->getOperand(0)) == storage;
                 }) == 1;
    inputs.push_back(bufferOf.at(op->getOperand(0)));
    outputs.push_back(
        allocateResult(*op, 0, alone ? ArrayRef(inPlace) : ArrayRef(inPlace).take_front(0)));
    auto dim = op->getAttrOfType<IntegerAttr>("dim");
    auto splitDim = op->getAttrOfType<IntegerAttr>("split_dim");
    dims.push_back(dim ? dim.getInt() : 0);
    splitDims.push_back(splitDim ? splitDim.getInt() : 0);
    // A bucket's tensors come from different places.
    NamedAttrList reason;
    if (auto attr = op->getAttrOfType<DictionaryAttr>(dist::kReasonAttrName)) {
      reason = NamedAttrList(attr);
      reason.set("producer", builder.getStringAttr(describeLocation(op->getLoc())));
    }
    reasons.push_back(reason.getDictionary(op->getContext()));
  }
  exec::CollectiveOp::create(
      builder, first->getLoc(), Type(), kind, first->getAttrOfType<dist::ReductionKindAttr>("kind"),
      first->getAttrOfType<ArrayAttr>("axes"), inputs, outputs, builder.getDenseI64ArrayAttr(dims),
      builder.getDenseI64ArrayAttr(splitDims), first->getAttrOfType<ArrayAttr>("source_axes"),
      builder.getArrayAttr(reasons));
}

void Lowering::lowerBucket(dist::BucketOp bucket) {
  SmallVector<Operation *> ops;
  for (Operation &op : bucket.getBody().front().without_terminator())
    ops.push_back(&op);
  if (!ops.empty())
    lowerCollectives(ops);
  for (auto [op, result] : llvm::zip_equal(ops, bucket.getResults()))
    share(result, storageOf.at(op->getResult(0)), bufferOf.at(op->getResult(0)));
}

LogicalResult Lowering::lowerOp(Operation &op) {
  if (auto broadcast = dyn_cast<BroadcastOp>(op); broadcast && isFolded(broadcast))
    return success();
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    Value view = exec::ViewOp::create(declare, op.getLoc(), bufferType(reshape.getType()),
                                      bufferOf.at(reshape.getOperand()));
    share(reshape.getResult(), storageOf.at(reshape.getOperand()), view);
    return success();
  }
  if (collectiveKind(&op)) {
    lowerCollectives(&op);
    return success();
  }
  if (auto bucket = dyn_cast<dist::BucketOp>(op)) {
    lowerBucket(bucket);
    return success();
  }
  if (auto loop = dyn_cast<dist::MicrobatchLoopOp>(op))
    return lowerLoop(loop);
  if (auto ret = dyn_cast<func::ReturnOp>(op))
    return lowerReturn(ret);
  return lowerKernel(op);
}

void Lowering::beginTask(StringRef name, int64_t count) {
  builder.setInsertionPointToEnd(&program.getBody().front());
  auto task = exec::TaskOp::create(builder, function.getLoc(), name);
  builder.createBlock(&task.getBody());
  tasks.push_back(task);
  repetitions.push_back(count);
}

LogicalResult Lowering::lowerLoop(dist::MicrobatchLoopOp loop) {
  if (tasks.size() > 1)
    return loop.emitOpError() << "is a second loop over microbatches, expected one in a program";
  auto meshOp = dist::lookupMesh(loop, mesh);
  int64_t count = 1;
  for (auto axis : meshOp.getAxes().getAsRange<dist::AxisAttr>())
    if (axis.getName() == loop.getAxisAttr())
      count = axis.getSize();

  beginTask("microbatch", count);
  for (Value result : loop.getResults())
    allocate(result, kindOf(result), !returned.contains(result));
  inLoop = true;
  auto yield = cast<dist::YieldOp>(loop.getBody().front().getTerminator());
  llvm::DenseMap<Value, SmallVector<unsigned, 1>> sumsOf;
  for (auto [index, value] : llvm::enumerate(yield.getValues()))
    sumsOf[value].push_back(index);
  // A value is added to its sum as soon as it is there, so that its memory is free again; what a
  // collective makes is left to it until the next one comes.
  SmallVector<Value> ready, arriving;
  auto accumulate = [&](SmallVectorImpl<Value> &values) {
    for (Value value : values)
      for (unsigned index : sumsOf.lookup(value))
        kernel(value.getLoc(), "accumulate", bufferOf.at(value), bufferOf.at(loop.getResult(index)),
               builder.getDictionaryAttr(builder.getNamedAttr("axis", loop.getAxisAttr())));
    values.clear();
  };
  for (Operation &op : loop.getBody().front().without_terminator()) {
    bool moves = collectiveKind(&op) || isa<dist::BucketOp>(op);
    if (moves)
      accumulate(arriving);
    if (failed(lowerOp(op)))
      return failure();
    for (Value result : op.getResults())
      if (sumsOf.contains(result))
        (moves ? arriving : ready).push_back(result);
    accumulate(ready);
  }
  accumulate(arriving);
  // What no op of the loop makes.
  for (Value value : yield.getValues())
    if (value.getParentBlock() != &loop.getBody().front() && !llvm::is_contained(ready, value))
      ready.push_back(value);
  accumulate(ready);
  inLoop = false;
  beginTask("update");
  return success();
}

LogicalResult Lowering::run() {
  if (failed(checkProgram(function, mesh.getValue())))
    return failure();
  declare.setInsertionPoint(function);
  program = exec::ProgramOp::create(declare, function.getLoc(),
                                    builder.getStringAttr(function.getSymName()), mesh,
                                    IntegerAttr(), IntegerAttr(), DictionaryAttr());
  declare.createBlock(&program.getBody());
  beginTask(function.getOps<dist::MicrobatchLoopOp>().empty() ? "step" : "prepare");
  declare.setInsertionPoint(tasks.front());
  number();
  markGradients();
  if (failed(lowerArguments()))
    return failure();
  for (Operation &op : function.front())
    if (failed(lowerOp(op)))
      return failure();

  builder.setInsertionPointToEnd(&program.getBody().front());
  for (auto [task, count] : llvm::zip_equal(tasks, repetitions)) {
    if (task.getBody().front().empty()) {
      task.erase();
      continue;
    }
    for (int64_t microbatch = 0; microbatch < count; ++microbatch)
      exec::RunOp::create(builder, function.getLoc(), task.getSymName(), microbatch);
  }
  function.erase();
  return success();
}

namespace {
struct LowerToExecPass : dtc::impl::LowerToExecPassBase<LowerToExecPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(forEachFunction(getOperation(), [](func::FuncOp function, const Mesh &mesh) {
          auto ref = FlatSymbolRefAttr::get(function.getContext(), mesh.name);
          return Lowering(function, ref).run();
        })))
      signalPassFailure();
  }
};
} // namespace
