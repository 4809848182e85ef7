//===- BufferAssignment.cpp - Buffers, views and reuses of values ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/exec/BufferAssignment.h"

using namespace mlir;
using namespace dtc;

bool dtc::isOnHost(Value value) {
  if (auto copy = value.getDefiningOp<dist::CopyOp>())
    return copy.getTo() == exec::kHostSpace;
  if (Operation *op = value.getDefiningOp())
    return op->hasAttr(dist::kHostAttrName);
  auto argument = cast<BlockArgument>(value);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function && function.getArgAttr(argument.getArgNumber(), dist::kHostAttrName);
}

MemRefType dtc::bufferType(Value value) {
  auto tensor = cast<RankedTensorType>(value.getType());
  auto space =
      isOnHost(value) ? StringAttr::get(value.getContext(), exec::kHostSpace) : Attribute();
  return MemRefType::get(tensor.getShape(), tensor.getElementType(), MemRefLayoutAttrInterface(),
                         space);
}

BufferKind BufferAssignment::kindOf(Value value) const {
  if (BlockArgument state = uses.updatedArgument(value))
    return bufferOf(state).getDefiningOp<exec::BufferOp>().getKind();
  if (uses.isReturned(value))
    return BufferKind::Output;
  if (uses.isGradient(value))
    return BufferKind::Gradient;
  if (value.getDefiningOp<ConstantOp>())
    return BufferKind::Constant;
  return BufferKind::Activation;
}

void BufferAssignment::assign(Value value, unsigned storage, Value buffer) {
  storageNumbers[value] = storage;
  buffers[value] = buffer;
  storages[storage].lastUse = std::max(storages[storage].lastUse, uses.lastUseOf(value));
}

void BufferAssignment::share(Value value, Value with, Value buffer) {
  assign(value, storageOf(with), buffer);
}

Value BufferAssignment::allocate(Value value, BufferKind kind, bool reusable) {
  auto buffer = exec::BufferOp::create(declarations, value.getLoc(), bufferType(value), kind,
                                       IntegerAttr(), IntegerAttr(), DenseI64ArrayAttr());
  if (inLoop)
    microbatchBuffers.push_back(buffer);
  storages.push_back({-1, inLoop, reusable});
  assign(value, storages.size() - 1, buffer);
  return buffer;
}

Value BufferAssignment::reuse(Value value, unsigned storage, Value buffer) {
  Value another = exec::ReuseOp::create(declarations, value.getLoc(), buffer);
  assign(value, storage, another);
  return another;
}

bool BufferAssignment::readsStorage(Operation &op, unsigned storage) const {
  return llvm::any_of(op.getOpOperands(), [&](OpOperand &operand) {
    return storageOf(foldedSource(operand)) == storage;
  });
}

Value BufferAssignment::allocateResult(Operation &op, unsigned index,
                                       ArrayRef<InPlacePair> inPlacePairs) {
  Value result = op.getResult(index);
  BlockArgument state = uses.updatedArgument(result);
  // The storage of an earlier result is taken, also where an operand's buffer is used twice.
  auto isTaken = [&](unsigned storage) {
    return llvm::any_of(op.getResults().take_front(index),
                        [&](Value earlier) { return storageOf(earlier) == storage; });
  };
  auto isNeededLater = [&](unsigned storage) {
    return storages[storage].lastUse > uses.numberOf(&op);
  };
  for (auto [operandIndex, resultIndex] : inPlacePairs) {
    if (static_cast<unsigned>(resultIndex) != index)
      continue;
    Value operand = foldedSource(op.getOpOperand(static_cast<unsigned>(operandIndex)));
    if (operand.getType() != result.getType() || isOnHost(operand) != isOnHost(result))
      continue;
    unsigned storage = storageOf(operand);
    // A state's own storage takes its update once nothing reads the old value any more.
    bool isOwnState = state && storageOf(state) == storage;
    bool isFree = storages[storage].reusable && storages[storage].inLoop == inLoop &&
                  !uses.isReturned(result);
    if ((!isOwnState && !isFree) || isTaken(storage) || isNeededLater(storage))
      continue;
    return reuse(result, storage, bufferOf(operand));
  }
  // A state's new value goes to its own storage once nothing reads the old one, and nothing here
  // does.
  if (state) {
    unsigned storage = storageOf(state);
    // All tensors of a bucket are read before any is written.
    bool reads = isa<dist::BucketOp>(op.getParentOp())
                     ? llvm::any_of(op.getBlock()->without_terminator(),
                                    [&](Operation &other) { return readsStorage(other, storage); })
                     : readsStorage(op, storage);
    if (!reads && !isTaken(storage) && !isNeededLater(storage) &&
        isOnHost(state) == isOnHost(result))
      return reuse(result, storage, bufferOf(state));
  }
  return allocate(result, kindOf(result), !uses.isReturned(result));
}

void BufferAssignment::markMicrobatchBuffers(exec::ProgramOp program) const {
  // A buffer that one task only uses is written before it is read each time that the task runs.
  llvm::DenseMap<Operation *, exec::TaskOp> userOf;
  llvm::DenseSet<Operation *> shared;
  exec::AccessFinder accesses(program);
  for (auto task : program.getOps<exec::TaskOp>())
    for (Operation &op : task.getBody().front()) {
      exec::Accesses used = accesses.of(&op);
      for (Value buffer : llvm::concat<Value>(used.reads, used.writes)) {
        Operation *root = exec::getRoot(buffer);
        auto [it, isFirst] = userOf.try_emplace(root, task);
        if (!isFirst && it->second != task)
          shared.insert(root);
      }
    }
  for (exec::BufferOp buffer : microbatchBuffers)
    if (shared.contains(buffer))
      buffer.setSlots(0);
}
