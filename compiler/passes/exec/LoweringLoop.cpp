//===- LoweringLoop.cpp - Microbatches, and the stages of a pipeline -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/exec/Lowering.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dtc;

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

LogicalResult Lowering::lowerLoop(dist::MicrobatchLoopOp loop) {
  if (buffers.isInLoop() || program.numRuns() > 1)
    return loop.emitOpError() << "is a second loop over microbatches, expected one in a program";
  bool makesSums = uses.makesSums(loop);
  auto yield = cast<dist::YieldOp>(loop.getBody().front().getTerminator());
  if (makesSums)
    for (auto [value, sum] : llvm::zip_equal(yield.getValues(), loop.getResults())) {
      buffers.allocate(sum, buffers.kindOf(sum), !uses.isReturned(sum));
      bool isFragment = isa_and_nonnull<dist::FragmentOp>(value.getDefiningOp());
      sumsOf[isFragment ? uses.makerInside(value) : value].push_back(sum);
    }
  buffers.setInLoop(makesSums);
  if (loop.getSchedule()) {
    if (failed(lowerScheduled(loop)))
      return failure();
  } else {
    exec::TaskOp body = program.beginTask("microbatch");
    if (failed(lowerBody(loop.getBody().front())))
      return failure();
    for (int64_t microbatch = 0; microbatch < uses.microbatchesOf(loop); ++microbatch)
      program.addRun(body, microbatch, makesSums);
  }
  buffers.setInLoop(false);
  // The sum over one microbatch is its value.
  if (!makesSums)
    for (auto [value, sum] : llvm::zip_equal(yield.getValues(), loop.getResults()))
      buffers.share(sum, value);
  program.addRun(program.beginTask("update"), 0, /*inLoop=*/false);
  return success();
}

LogicalResult Lowering::lowerBody(Block &block) {
  // A value is added to its sum as soon as it is there, so that its memory is free again; a
  // collective keeps its results until the next one comes.
  SmallVector<Value> ready, arriving;
  auto accumulate = [&](SmallVectorImpl<Value> &values) {
    OpBuilder &builder = program.instructions();
    auto axis = builder.getStringAttr(mesh.axes[*mesh.temporalAxis()].name);
    for (Value value : values)
      for (Value sum : sumsOf.lookup(value))
        program.kernel(value.getLoc(), "accumulate", buffers.bufferOf(value), buffers.bufferOf(sum),
                       builder.getDictionaryAttr(builder.getNamedAttr("axis", axis)));
    values.clear();
  };
  for (Operation &op : block.without_terminator()) {
    bool moves = isa<dist::CollectiveOpInterface, dist::BucketOp>(op);
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
  // Values that no op of the block makes.
  for (Value value : llvm::SetVector<Value>(block.getTerminator()->operand_begin(),
                                            block.getTerminator()->operand_end()))
    if (value.getParentBlock() != &block)
      ready.push_back(value);
  accumulate(ready);
  return success();
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

exec::TransferOp Lowering::declareSend(dist::SendOp send) {
  SmallVector<Value> sent;
  for (Value value : send.getValues())
    sent.push_back(buffers.bufferOf(value));
  return exec::TransferOp::create(program.declarations(), send.getLoc(),
                                  ("channel." + Twine(send.getChannel())).str(), TransferKind::Send,
                                  send.getPeer(), send.getChannel(), sent, send.getNumbersAttr());
}

exec::TransferOp Lowering::declareReceive(dist::ReceiveOp receive) {
  SmallVector<Value> received;
  for (Value value : receive.getResults())
    received.push_back(buffers.allocate(value, buffers.kindOf(value),
                                        !buffers.isInLoop() && !uses.isReturned(value)));
  return exec::TransferOp::create(program.declarations(), receive.getLoc(),
                                  ("channel." + Twine(receive.getChannel())).str(),
                                  TransferKind::Receive, receive.getPeer(), receive.getChannel(),
                                  received, receive.getNumbersAttr());
}

void Lowering::finishSends() {
  for (exec::TransferOp transfer : unfinished)
    program.finish(transfer);
  unfinished.clear();
}

LogicalResult Lowering::lowerFragment(dist::FragmentOp fragment) {
  Block &block = fragment.getBody().front();
  if (failed(lowerBody(block)))
    return failure();
  for (auto [inner, outer] :
       llvm::zip_equal(block.getTerminator()->getOperands(), fragment.getResults())) {
    buffers.share(outer, inner);
    // Between its fragments other microbatches may run, and it may be on its way to another device.
    buffers.keep(inner);
  }
  return success();
}

LogicalResult Lowering::lowerScheduled(dist::MicrobatchLoopOp loop) {
  // For each op of the body the task that the schedule means by it.
  SmallVector<exec::TaskOp> taskOf;
  SmallVector<exec::TransferOp> arriving;
  for (Operation &op : loop.getBody().front().without_terminator()) {
    if (auto receive = dyn_cast<dist::ReceiveOp>(op)) {
      arriving.push_back(declareReceive(receive));
      taskOf.push_back(program.beginTask("receive." + Twine(receive.getChannel())));
      program.start(arriving.back());
    } else if (auto fragment = dyn_cast<dist::FragmentOp>(op)) {
      exec::TaskOp task =
          program.beginTask(Twine(name(fragment.getPass())) + "." + Twine(fragment.getStage()));
      taskOf.push_back(task);
      task.setPass(fragment.getPass());
      task.setStage(fragment.getStage());
      for (exec::TransferOp transfer : arriving)
        program.finish(transfer);
      arriving.clear();
      if (failed(lowerFragment(fragment)))
        return failure();
    } else {
      auto send = cast<dist::SendOp>(op);
      exec::TransferOp transfer = declareSend(send);
      // It starts at the end of the fragment that made the values.
      exec::TaskOp maker;
      for (exec::TaskOp earlier : llvm::reverse(taskOf))
        if (earlier.getPass()) {
          maker = earlier;
          break;
        }
      if (!maker)
        return send.emitOpError() << "has no fragment before it in the loop";
      program.startIn(maker, transfer);
      taskOf.push_back(program.beginTask("sent." + Twine(send.getChannel())));
      program.finish(transfer);
    }
  }
  ArrayRef<int64_t> schedule = *loop.getSchedule();
  for (size_t i = 0; i + 1 < schedule.size(); i += 2)
    program.addRun(taskOf[schedule[i]], schedule[i + 1], buffers.isInLoop());
  return success();
}
