//===- Gradients.cpp - Reverse-mode differentiation -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/train/Gradients.h"

#include "dialects/dtc/DtcOps.h"

#include "mlir/IR/Operation.h"

using namespace mlir;
using namespace dtc;

FailureOr<SmallVector<Value>> dtc::buildGradients(OpBuilder &builder, Block &block, Value loss,
                                                  ValueRange wrt, Value seed, bool numberOps) {
  // Only values that depend on `wrt` have a useful gradient.
  llvm::DenseSet<Value> active(wrt.begin(), wrt.end());
  SmallVector<Operation *> forward;
  for (Operation &op : block) {
    if (op.getNumResults() == 0)
      continue;
    forward.push_back(&op);
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return active.contains(operand); }))
      active.insert(op.getResults().begin(), op.getResults().end());
  }

  llvm::DenseMap<Value, Value> cotangents;
  auto contribute = [&](Value value, Value gradient, Location loc) {
    // Sums over many elements are wide; a value's gradient has its own type.
    if (gradient.getType() != value.getType())
      gradient = ConvertOp::create(builder, loc, value.getType(), gradient);
    Value &total = cotangents[value];
    total = total ? AddOp::create(builder, loc, total, gradient).getResult() : gradient;
  };
  cotangents[loss] =
      seed ? seed
           : ConstantOp::create(builder, loss.getLoc(), cast<RankedTensorType>(loss.getType()), 1.0)
                 .getResult();

  if (numberOps)
    for (auto [number, op] : llvm::enumerate(forward))
      op->setAttr(kOpNumberAttrName, builder.getI64IntegerAttr(number));
  auto insertedBefore = [&] {
    return builder.getInsertionPoint() == block.begin() ? nullptr
                                                        : &*std::prev(builder.getInsertionPoint());
  };
  for (Operation *op : llvm::reverse(forward)) {
    Operation *last = insertedBefore();
    SmallVector<Value> results;
    for (Value result : op->getResults())
      results.push_back(cotangents.lookup(result));
    SmallVector<bool> needed;
    for (Value operand : op->getOperands())
      needed.push_back(active.contains(operand));
    if (!llvm::is_contained(needed, true) ||
        llvm::none_of(results, [](Value v) { return bool(v); }))
      continue;
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitOpError() << "has no gradient, and the loss depends on it; implement "
                                  "DifferentiableOpInterface or take it out of the loss";
    SmallVector<Value> gradients(op->getNumOperands());
    if (failed(differentiable.buildVjp(builder, results, needed, gradients)))
      return failure();
    for (auto [operand, gradient, isNeeded] : llvm::zip_equal(op->getOperands(), gradients, needed))
      if (gradient && isNeeded)
        contribute(operand, gradient, op->getLoc());
    if (numberOps)
      for (Operation *added = insertedBefore(); added != last; added = added->getPrevNode())
        added->setAttr(kGradientOfAttrName, op->getAttr(kOpNumberAttrName));
  }

  SmallVector<Value> result;
  for (Value value : wrt) {
    Value gradient = cotangents.lookup(value);
    if (!gradient)
      gradient =
          ConstantOp::create(builder, value.getLoc(), cast<RankedTensorType>(value.getType()), 0.0);
    result.push_back(gradient);
  }
  return result;
}
