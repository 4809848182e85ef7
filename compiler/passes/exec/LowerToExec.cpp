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
#include "compiler/passes/exec/ScheduleOrder.h"
#include "dialects/dist/ChunkAttribute.h"
#include "plan/KernelTable.h"

namespace dtc {
#define GEN_PASS_DEF_LOWERTOEXECPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

LogicalResult Lowering::lowerKernel(Operation &op) {
  auto kernelOp = dyn_cast<KernelOpInterface>(op);
  if (!kernelOp)
    return op.emitOpError() << "has no kernel; implement KernelOpInterface";
  NamedAttrList attributes(kernelOp.getKernelAttributes());
  SmallVector<Value> inputs, outputs;
  for (OpOperand &operand : op.getOpOperands()) {
    Value value = foldedSource(operand);
    if (value != operand.get())
      attributes.set(kernelOp.getBroadcastAttribute(operand.getOperandNumber()),
                     operand.get().getDefiningOp<BroadcastOp>().getDimsAttr());
    inputs.push_back(buffers.bufferOf(value));
  }
  const KernelInfo &info = findKernel(kernelOp.getKernelName());
  for (unsigned index = 0; index < op.getNumResults(); ++index)
    outputs.push_back(buffers.allocateResult(op, index, info.inPlace));
  double flops = 0;
  if (auto rule = dyn_cast<ShardingRuleOpInterface>(op))
    flops = rule.getFlops();
  program.kernel(op.getLoc(), kernelOp.getKernelName(), inputs, outputs,
                 attributes.getDictionary(op.getContext()), flops);
  return success();
}

void Lowering::lowerCollectives(ArrayRef<Operation *> ops) {
  Operation *first = ops.front();
  auto collective = cast<dist::CollectiveOpInterface>(first);
  OpBuilder &builder = program.instructions();
  SmallVector<Value> inputs, outputs;
  SmallVector<int64_t> dims, splitDims;
  SmallVector<Attribute> reasons;
  static constexpr InPlacePair kInPlace = {0, 0};
  ArrayRef<InPlacePair> inPlace;
  if (collective.getCollectiveKind() == CollectiveKind::AllReduce)
    inPlace = kInPlace;
  for (Operation *op : ops) {
    unsigned storage = buffers.storageOf(op->getOperand(0));
    // All tensors of a bucket are read before any is written.
    bool alone = llvm::count_if(ops, [&](Operation *other) {
                   return buffers.storageOf(other->getOperand(0)) == storage;
                 }) == 1;
    inputs.push_back(buffers.bufferOf(op->getOperand(0)));
    outputs.push_back(buffers.allocateResult(*op, 0, alone ? inPlace : inPlace.take_front(0)));
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
  auto lowered = exec::CollectiveOp::create(
      builder, first->getLoc(), Type(), collective.getCollectiveKind(), collective.getReduction(),
      collective.getAxes(), inputs, outputs, builder.getDenseI64ArrayAttr(dims),
      builder.getDenseI64ArrayAttr(splitDims), first->getAttrOfType<ArrayAttr>("source_axes"),
      first->getAttrOfType<IntegerAttr>("shift"), builder.getArrayAttr(reasons), ValueRange());
  if (Attribute chunk = first->getAttr(dist::kChunkAttrName))
    lowered->setAttr(dist::kChunkAttrName, chunk);
}

void Lowering::lowerBucket(dist::BucketOp bucket) {
  SmallVector<Operation *> ops;
  for (Operation &op : bucket.getBody().front().without_terminator())
    ops.push_back(&op);
  if (!ops.empty())
    lowerCollectives(ops);
  for (auto [op, result] : llvm::zip_equal(ops, bucket.getResults()))
    buffers.share(result, op->getResult(0));
}

LogicalResult Lowering::lowerOp(Operation &op) {
  if (auto send = dyn_cast<dist::SendOp>(op)) {
    unfinished.push_back(declareSend(send));
    program.start(unfinished.back());
    return success();
  }
  if (auto receive = dyn_cast<dist::ReceiveOp>(op)) {
    exec::TransferOp transfer = declareReceive(receive);
    program.start(transfer);
    program.finish(transfer);
    return success();
  }
  finishSends();
  bool isOfHost = isa<dist::CopyOp>(op) || op.hasAttr(dist::kHostAttrName);
  if (!isa<dist::MicrobatchLoopOp>(op) && !isOfHost)
    program.addSeconds(localSeconds(mesh, &op));
  if (auto broadcast = dyn_cast<BroadcastOp>(op); broadcast && isFolded(broadcast))
    return success();
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    Value view =
        exec::ViewOp::create(program.declarations(), op.getLoc(), bufferType(reshape.getResult()),
                             buffers.bufferOf(reshape.getOperand()));
    buffers.share(reshape.getResult(), reshape.getOperand(), view);
    return success();
  }
  if (isa<dist::CollectiveOpInterface>(op)) {
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

LogicalResult Lowering::run() {
  if (failed(lowerArguments()))
    return failure();
  for (Operation &op : function.front())
    if (failed(lowerOp(op)))
      return failure();
  program.finish();
  buffers.markMicrobatchBuffers(program.program());
  function.erase();
  return success();
}

namespace {
struct LowerToExecPass : dtc::impl::LowerToExecPassBase<LowerToExecPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(forEachFunction(getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) {
          if (failed(checkProgram(function, mesh.name)))
            return failure();
          for (auto loop : function.getOps<dist::MicrobatchLoopOp>())
            orderAsScheduled(loop);
          return Lowering(function, mesh, keepSums).run();
        })))
      signalPassFailure();
  }
};
} // namespace
