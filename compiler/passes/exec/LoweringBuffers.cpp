//===- LoweringBuffers.cpp - Which values share memory ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/exec/Lowering.h"

#define DEBUG_TYPE "dtc-lower-to-exec"

using namespace mlir;
using namespace dtc;

bool Lowering::isFolded(BroadcastOp op) {
  return llvm::all_of(op->getUses(), [](OpOperand &use) {
    auto user = dyn_cast<KernelOpInterface>(use.getOwner());
    return user && !user.getBroadcastAttribute(use.getOperandNumber()).empty();
  });
}

Value Lowering::source(OpOperand &operand) {
  auto broadcast = operand.get().getDefiningOp<BroadcastOp>();
  return broadcast && isFolded(broadcast) ? broadcast.getOperand() : operand.get();
}

/// Numbers the ops in the order in which they first run and finds the last use of each value. A use
/// in a loop that makes sums of a value from outside lasts until the loop's end, and what views or
/// folded broadcasts read is read by their users.
void Lowering::number() {
  for (auto loop : function.getOps<dist::MicrobatchLoopOp>())
    orderAsScheduled(loop);
  int next = 0;
  function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) { numbers[op] = next++; });
  function.getBody().walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = source(operand);
      int at = numbers[op];
      if (auto loop = op->getParentOfType<dist::MicrobatchLoopOp>();
          loop && makesSums(loop) &&
          !loop->isProperAncestor(value.getParentRegion()->getParentOp()) &&
          value.getParentRegion() != &loop.getBody())
        at = numbers[loop.getBody().front().getTerminator()];
      int &last = lastUse.try_emplace(value, -1).first->second;
      last = std::max(last, at);
    }
  });
  // What a loop over one microbatch, a fragment or a bucket holds is what it returns.
  function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto loop = dyn_cast<dist::MicrobatchLoopOp>(op);
    if (isa<dist::FragmentOp, dist::BucketOp>(op) || (loop && !makesSums(loop)))
      for (auto [inner, outer] : llvm::zip_equal(
               op->getRegion(0).front().getTerminator()->getOperands(), op->getResults()))
        lastUse[inner] = std::max(lastUse.lookup(inner), lastUse.lookup(outer));
  });
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  for (auto [index, value] : llvm::enumerate(ret.getOperands())) {
    auto argument = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates");
    // ... so that what a bucket returns is returned where it is made.
    for (Value made = value, next;; made = next) {
      returned.insert(made);
      if (argument)
        updates[made] = function.getArgument(argument.getInt());
      next = makerInside(made);
      if (next == made)
        break;
    }
  }
}

Value Lowering::makerInside(Value value) {
  Operation *op = value.getDefiningOp();
  auto loop = dyn_cast_or_null<dist::MicrobatchLoopOp>(op);
  if (!isa_and_nonnull<dist::FragmentOp, dist::BucketOp>(op) && !(loop && !makesSums(loop)))
    return value;
  return op->getRegion(0).front().getTerminator()->getOperand(
      cast<OpResult>(value).getResultNumber());
}

/// A gradient is what an optimizer reads, on its whole way there: before and after its sums.
void Lowering::markGradients() {
  SmallVector<Value> worklist;
  function.getBody().walk([&](Operation *op) {
    if (auto optimizer = dyn_cast<OptimizerOpInterface>(op))
      worklist.push_back(optimizer.getGradientMutable().get());
  });
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!gradients.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (!op)
      continue;
    if (auto loop = dyn_cast<dist::MicrobatchLoopOp>(op))
      worklist.push_back(loop.getBody().front().getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber()));
    else if (isa<dist::BucketOp, dist::FragmentOp>(op))
      worklist.push_back(op->getRegion(0).front().getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber()));
    else if (isa<dist::ReceiveOp>(op))
      continue;
    else if (isa<ReshapeOp, ConvertOp>(op) || isa<dist::DistDialect>(op->getDialect()))
      worklist.push_back(op->getOperand(0));
  }
}

exec::BufferKind Lowering::kindOf(Value value) {
  if (auto it = updates.find(value); it != updates.end())
    return bufferOf.at(it->second).getDefiningOp<exec::BufferOp>().getKind();
  if (returned.contains(value))
    return exec::BufferKind::Output;
  if (gradients.contains(value))
    return exec::BufferKind::Gradient;
  if (value.getDefiningOp<ConstantOp>())
    return exec::BufferKind::Constant;
  return exec::BufferKind::Activation;
}

void Lowering::share(Value value, unsigned storage, Value buffer) {
  storageOf[value] = storage;
  bufferOf[value] = buffer;
  auto it = lastUse.find(value);
  int last = it == lastUse.end() ? -1 : it->second;
  storages[storage].lastUse = std::max(storages[storage].lastUse, last);
}

Value Lowering::allocate(Value value, exec::BufferKind kind, bool reusable) {
  auto buffer = exec::BufferOp::create(declare, value.getLoc(), bufferType(value.getType()), kind,
                                       IntegerAttr(), IntegerAttr(), DenseI64ArrayAttr());
  if (inLoop)
    microbatchBuffers.push_back(buffer);
  storages.push_back({-1, inLoop, reusable});
  share(value, storages.size() - 1, buffer);
  return buffer;
}

Value Lowering::reuse(Value value, unsigned storage, Value buffer) {
  Value another = exec::ReuseOp::create(declare, value.getLoc(), buffer);
  share(value, storage, another);
  return another;
}

Value Lowering::allocateResult(Operation &op, unsigned index,
                               ArrayRef<std::pair<unsigned, unsigned>> inPlacePairs) {
  Value result = op.getResult(index);
  // The storage of an earlier result is taken, also where an operand's buffer is used twice.
  auto isTaken = [&](unsigned storage) {
    return llvm::any_of(op.getResults().take_front(index),
                        [&](Value earlier) { return storageOf.at(earlier) == storage; });
  };
  for (auto [operandIndex, resultIndex] : inPlacePairs) {
    if (resultIndex != index)
      continue;
    Value operand = source(op.getOpOperand(operandIndex));
    if (operand.getType() != result.getType())
      continue;
    unsigned storage = storageOf.at(operand);
    // A state's own storage takes its update once nothing reads the old value any more.
    auto update = updates.find(result);
    bool isOwnState = update != updates.end() && storageOf.at(update->second) == storage;
    bool isFree = storages[storage].reusable && storages[storage].inLoop == inLoop &&
                  !returned.contains(result);
    if ((!isOwnState && !isFree) || isTaken(storage) || storages[storage].lastUse > numbers.at(&op))
      continue;
    return reuse(result, storage, bufferOf.at(operand));
  }
  // A state's new value goes to its own storage once nothing reads the old one, and nothing here
  // does.
  if (auto update = updates.find(result); update != updates.end()) {
    unsigned storage = storageOf.at(update->second);
    auto reads = [&](Operation &reader) {
      return llvm::any_of(reader.getOpOperands(), [&](OpOperand &operand) {
        return storageOf.at(source(operand)) == storage;
      });
    };
    // All tensors of a bucket are read before any is written.
    bool readsIt = reads(op);
    if (isa<dist::BucketOp>(op.getParentOp()))
      readsIt = llvm::any_of(op.getBlock()->without_terminator(), reads);
    if (!readsIt && !isTaken(storage) && storages[storage].lastUse <= numbers.at(&op))
      return reuse(result, storage, bufferOf.at(update->second));
  }
  return allocate(result, kindOf(result), !returned.contains(result));
}
