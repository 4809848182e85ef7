//===- LowerToExec.cpp - From tensors to kernels on buffers ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/analysis/LocalCost.h"
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
  if (auto send = dyn_cast<dist::SendOp>(op)) {
    unfinished.push_back(declareSend(send));
    start(unfinished.back());
    return success();
  }
  if (auto receive = dyn_cast<dist::ReceiveOp>(op)) {
    exec::TransferOp transfer = declareReceive(receive);
    start(transfer);
    finish(transfer);
    return success();
  }
  finishSends();
  if (!isa<dist::MicrobatchLoopOp>(op))
    seconds += localSeconds(mesh, &op);
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

exec::TaskOp Lowering::beginTask(const Twine &name) {
  endTask();
  builder.setInsertionPointToEnd(&program.getBody().front());
  task = exec::TaskOp::create(builder, function.getLoc(), builder.getStringAttr(name),
                              dist::PassAttr(), IntegerAttr(), FloatAttr());
  builder.createBlock(&task.getBody());
  return task;
}

void Lowering::endTask() {
  if (task)
    task.setSecondsAttr(builder.getF64FloatAttr(seconds));
  seconds = 0;
}

LogicalResult Lowering::run() {
  if (failed(checkProgram(function, mesh.name)))
    return failure();
  auto loops = llvm::to_vector(function.getOps<dist::MicrobatchLoopOp>());
  declare.setInsertionPoint(function);
  program = exec::ProgramOp::create(
      declare, function.getLoc(), builder.getStringAttr(function.getSymName()),
      FlatSymbolRefAttr::get(function.getContext(), mesh.name), IntegerAttr(), IntegerAttr(),
      DictionaryAttr(), function->getAttrOfType<DictionaryAttr>(dist::kPipelineAttrName),
      StringAttr());
  declare.createBlock(&program.getBody());
  runs.push_back({beginTask(loops.empty() ? "step" : "prepare"), 0});
  declare.setInsertionPoint(task);
  number();
  markGradients();
  if (failed(lowerArguments()))
    return failure();
  for (Operation &op : function.front())
    if (failed(lowerOp(op)))
      return failure();

  endTask();
  markMicrobatchBuffers();

  builder.setInsertionPointToEnd(&program.getBody().front());
  for (Run &run : runs)
    if (!run.task.getBody().front().empty())
      exec::RunOp::create(builder, function.getLoc(), run.task.getSymName(), run.microbatch,
                          run.inLoop);
  for (auto task : llvm::make_early_inc_range(program.getOps<exec::TaskOp>()))
    if (task.getBody().front().empty())
      task.erase();
  function.erase();
  return success();
}

namespace {
struct LowerToExecPass : dtc::impl::LowerToExecPassBase<LowerToExecPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(forEachFunction(getOperation(), [&](func::FuncOp function, const Mesh &mesh) {
          return Lowering(function, mesh, keepSums).run();
        })))
      signalPassFailure();
  }
};
} // namespace
