//===- ValueUses.cpp - Uses of the values of a function -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/exec/ValueUses.h"

using namespace mlir;
using namespace dtc;

bool dtc::isFolded(BroadcastOp op) {
  return llvm::all_of(op->getUses(), [](OpOperand &use) {
    auto user = dyn_cast<KernelOpInterface>(use.getOwner());
    return user && !user.getBroadcastAttribute(use.getOperandNumber()).empty();
  });
}

Value dtc::foldedSource(OpOperand &operand) {
  auto broadcast = operand.get().getDefiningOp<BroadcastOp>();
  return broadcast && isFolded(broadcast) ? broadcast.getOperand() : operand.get();
}

ValueUses::ValueUses(func::FuncOp function, const LinkedMesh &mesh, bool keepSums)
    : mesh(mesh), keepSums(keepSums) {
  int next = 0;
  function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) { numbers[op] = next++; });
  findLastUses(function);
  findReturned(function);
  findGradients(function);
}

int64_t ValueUses::microbatchesOf(dist::MicrobatchLoopOp loop) const {
  return mesh.axes[*mesh.find(loop.getAxis())].size;
}

bool ValueUses::makesSums(dist::MicrobatchLoopOp loop) const {
  return keepSums || microbatchesOf(loop) > 1;
}

Value ValueUses::makerInside(Value value) const {
  auto loop = value.getDefiningOp<dist::MicrobatchLoopOp>();
  Value yielded = loop && makesSums(loop) ? Value() : dist::getYieldedValue(value);
  return yielded ? yielded : value;
}

int ValueUses::lastUseOf(Value value) const {
  auto it = lastUse.find(value);
  return it == lastUse.end() ? -1 : it->second;
}

void ValueUses::findLastUses(func::FuncOp function) {
  function.getBody().walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = foldedSource(operand);
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
  // A result of a loop over one microbatch, a fragment or a bucket is used as long as the value
  // inside that it returns.
  function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Value outer : op->getResults())
      if (Value inner = makerInside(outer); inner != outer)
        lastUse[inner] = std::max(lastUse.lookup(inner), lastUse.lookup(outer));
  });
}

void ValueUses::findReturned(func::FuncOp function) {
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  for (auto [index, value] : llvm::enumerate(ret.getOperands())) {
    auto argument = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates");
    // A value that a bucket returns counts as returned inside the bucket too.
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

void ValueUses::findGradients(func::FuncOp function) {
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
    if (Value yielded = dist::getYieldedValue(value))
      worklist.push_back(yielded);
    else if (isa<dist::ReceiveOp>(op))
      continue;
    else if (isa<ReshapeOp, ConvertOp>(op) || isa<dist::DistDialect>(op->getDialect()))
      worklist.push_back(op->getOperand(0));
  }
}
