//===- LoweringLoop.cpp - Microbatches, and the stages of a pipeline -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/exec/Lowering.h"

#include "llvm/ADT/SetVector.h"

#define DEBUG_TYPE "dtc-lower-to-exec"

using namespace mlir;
using namespace dtc;

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

int64_t Lowering::microbatchesOf(dist::MicrobatchLoopOp loop) {
  return mesh.axes[*mesh.find(loop.getAxis())].size;
}

LogicalResult Lowering::lowerLoop(dist::MicrobatchLoopOp loop) {
  if (inLoop || runs.size() > 1)
    return loop.emitOpError() << "is a second loop over microbatches, expected one in a program";
  bool makesSums = this->makesSums(loop);
  auto yield = cast<dist::YieldOp>(loop.getBody().front().getTerminator());
  if (makesSums)
    for (auto [value, sum] : llvm::zip_equal(yield.getValues(), loop.getResults())) {
      allocate(sum, kindOf(sum), !returned.contains(sum));
      bool isFragment = isa_and_nonnull<dist::FragmentOp>(value.getDefiningOp());
      sumsOf[isFragment ? makerInside(value) : value].push_back(sum);
    }
  inLoop = makesSums;
  size_t firstRun = runs.size();
  if (loop.getSchedule()) {
    if (failed(lowerScheduled(loop)))
      return failure();
  } else {
    exec::TaskOp body = beginTask("microbatch");
    if (failed(lowerBody(loop.getBody().front())))
      return failure();
    for (int64_t microbatch = 0; microbatch < microbatchesOf(loop); ++microbatch)
      runs.push_back({body, microbatch});
  }
  inLoop = false;
  for (Run &run : llvm::drop_begin(runs, firstRun))
    run.inLoop = makesSums;
  // The sum over one microbatch is its value.
  if (!makesSums)
    for (auto [value, sum] : llvm::zip_equal(yield.getValues(), loop.getResults()))
      share(sum, storageOf.at(value), bufferOf.at(value));
  runs.push_back({beginTask("update"), 0});
  return success();
}

LogicalResult Lowering::lowerBody(Block &block) {
  // A value is added to its sum as soon as it is there, so that its memory is free again; what a
  // collective makes is left to it until the next one comes.
  SmallVector<Value> ready, arriving;
  auto accumulate = [&](SmallVectorImpl<Value> &values) {
    auto axis = builder.getStringAttr(mesh.axes[*mesh.temporalAxis()].name);
    for (Value value : values)
      for (Value sum : sumsOf.lookup(value))
        kernel(value.getLoc(), "accumulate", bufferOf.at(value), bufferOf.at(sum),
               builder.getDictionaryAttr(builder.getNamedAttr("axis", axis)));
    values.clear();
  };
  for (Operation &op : block.without_terminator()) {
    bool moves = dist::isBucketable(&op) || isa<dist::BucketOp>(op);
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
  // What no op of the block makes.
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
  SmallVector<Value> buffers;
  for (Value value : send.getValues())
    buffers.push_back(bufferOf.at(value));
  return exec::TransferOp::create(
      declare, send.getLoc(), ("channel." + Twine(send.getChannel())).str(),
      exec::TransferKind::Send, send.getPeer(), send.getChannel(), buffers);
}

exec::TransferOp Lowering::declareReceive(dist::ReceiveOp receive) {
  SmallVector<Value> buffers;
  for (Value value : receive.getResults())
    buffers.push_back(allocate(value, kindOf(value), !inLoop && !returned.contains(value)));
  return exec::TransferOp::create(
      declare, receive.getLoc(), ("channel." + Twine(receive.getChannel())).str(),
      exec::TransferKind::Receive, receive.getPeer(), receive.getChannel(), buffers);
}

void Lowering::start(exec::TransferOp transfer) {
  exec::StartOp::create(builder, transfer.getLoc(), transfer.getSymName());
}

void Lowering::finish(exec::TransferOp transfer) {
  exec::FinishOp::create(builder, transfer.getLoc(), transfer.getSymName());
}

void Lowering::finishSends() {
  for (exec::TransferOp transfer : unfinished)
    finish(transfer);
  unfinished.clear();
}

LogicalResult Lowering::lowerFragment(dist::FragmentOp fragment) {
  Block &block = fragment.getBody().front();
  if (failed(lowerBody(block)))
    return failure();
  for (auto [inner, outer] :
       llvm::zip_equal(block.getTerminator()->getOperands(), fragment.getResults())) {
    share(outer, storageOf.at(inner), bufferOf.at(inner));
    // Between its fragments other microbatches may run, and it may be on its way to another device.
    storages[storageOf.at(inner)].reusable = false;
  }
  return success();
}

void Lowering::orderAsScheduled(dist::MicrobatchLoopOp loop) {
  if (!loop.getSchedule())
    return;
  Block &body = loop.getBody().front();
  SmallVector<Operation *> ops; // as the schedule numbers them
  for (Operation &op : body.without_terminator())
    ops.push_back(&op);
  SmallVector<int64_t> schedule(*loop.getSchedule());
  llvm::DenseMap<Operation *, size_t> firstRun; // of fragments
  for (size_t i = 0; i + 1 < schedule.size(); i += 2)
    if (isa<dist::FragmentOp>(ops[schedule[i]]))
      firstRun.try_emplace(ops[schedule[i]], i);
  // A send goes with the fragment before it, a receive with the first to run of those that use it.
  llvm::DenseMap<Operation *, size_t> place;
  size_t ofLast = 0;
  for (Operation *op : ops) {
    if (auto it = firstRun.find(op); it != firstRun.end())
      ofLast = it->second;
    place[op] = ofLast;
    if (!isa<dist::ReceiveOp>(op))
      continue;
    std::optional<size_t> first;
    for (Operation *user : op->getUsers())
      if (auto it = firstRun.find(body.findAncestorOpInBlock(*user)); it != firstRun.end())
        first = std::min(first.value_or(it->second), it->second);
    place[op] = first.value_or(ofLast);
  }
  auto rank = [](Operation *op) {
    return isa<dist::ReceiveOp>(op) ? 0 : isa<dist::FragmentOp>(op) ? 1 : 2;
  };
  SmallVector<Operation *> ordered(ops);
  llvm::stable_sort(ordered, [&](Operation *a, Operation *b) {
    return std::pair(place.at(a), rank(a)) < std::pair(place.at(b), rank(b));
  });
  llvm::DenseMap<Operation *, int64_t> numberOf;
  for (auto [number, op] : llvm::enumerate(ordered)) {
    op->moveBefore(body.getTerminator());
    numberOf[op] = number;
  }
  for (size_t i = 0; i + 1 < schedule.size(); i += 2)
    schedule[i] = numberOf.at(ops[schedule[i]]);
  loop.setSchedule(schedule);
}

LogicalResult Lowering::lowerScheduled(dist::MicrobatchLoopOp loop) {
  // For each op of the body the task that the schedule means by it.
  SmallVector<exec::TaskOp> taskOf;
  SmallVector<exec::TransferOp> arriving;
  for (Operation &op : loop.getBody().front().without_terminator()) {
    if (auto receive = dyn_cast<dist::ReceiveOp>(op)) {
      arriving.push_back(declareReceive(receive));
      taskOf.push_back(beginTask("receive." + Twine(receive.getChannel())));
      start(arriving.back());
    } else if (auto fragment = dyn_cast<dist::FragmentOp>(op)) {
      taskOf.push_back(
          beginTask(dist::stringifyPass(fragment.getPass()) + "." + Twine(fragment.getStage())));
      task.setPass(fragment.getPass());
      task.setStage(fragment.getStage());
      for (exec::TransferOp transfer : arriving)
        finish(transfer);
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
      builder.setInsertionPointToEnd(&maker.getBody().front());
      start(transfer);
      taskOf.push_back(beginTask("sent." + Twine(send.getChannel())));
      finish(transfer);
    }
  }
  ArrayRef<int64_t> schedule = *loop.getSchedule();
  for (size_t i = 0; i + 1 < schedule.size(); i += 2)
    runs.push_back({taskOf[schedule[i]], schedule[i + 1]});
  return success();
}

void Lowering::markMicrobatchBuffers() {
  // A buffer that one task only uses is written before it is read each time that the task runs.
  llvm::DenseMap<Operation *, exec::TaskOp> userOf;
  llvm::DenseSet<Operation *> shared;
  auto use = [&](Value buffer, exec::TaskOp task) {
    Operation *root = exec::getRoot(buffer);
    auto [it, fresh] = userOf.try_emplace(root, task);
    if (!fresh && it->second != task)
      shared.insert(root);
  };
  exec::AccessFinder accesses(program);
  for (auto task : program.getOps<exec::TaskOp>())
    for (Operation &op : task.getBody().front()) {
      exec::Accesses used = accesses.of(&op);
      for (Value buffer : llvm::concat<Value>(used.reads, used.writes))
        use(buffer, task);
    }
  for (exec::BufferOp buffer : microbatchBuffers)
    if (shared.contains(buffer))
      buffer.setSlots(0);
}
