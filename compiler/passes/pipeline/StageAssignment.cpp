//===- StageAssignment.cpp - Stages of the ops of the microbatch loop -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/pipeline/StageAssignment.h"

#include "compiler/analysis/LocalCost.h"

using namespace mlir;
using namespace dtc;

StageAssignment::StageAssignment(dist::MicrobatchLoopOp loop, bool split)
    : body(loop.getBody().front()) {
  followOperands();
  followUsers();
  if (split)
    splitWeights();
}

void StageAssignment::set(Operation *op, int64_t index, StagePass pass) {
  stages[op] = dist::StageAttr::get(op->getContext(), index, pass);
  count = std::max(count, index + 1);
}

/// The op of the loop's body that makes `value`; null if none does.
static Operation *definerIn(Block &body, Value value) {
  Operation *definer = value.getDefiningOp();
  return definer ? body.findAncestorOpInBlock(*definer) : nullptr;
}

/// The operands of the op and of the ops in its region.
static SmallVector<Value> operandsOf(Operation &op) {
  SmallVector<Value> values;
  op.walk([&](Operation *inner) { llvm::append_range(values, inner->getOperands()); });
  return values;
}

void StageAssignment::followOperands() {
  for (Operation &op : body.without_terminator()) {
    if (auto stage = dist::getStage(&op)) {
      set(&op, stage.getIndex(), stage.getPass());
      continue;
    }
    // Forward, the last of the operands to come decides. Gradients flow from later stages to
    // earlier ones.
    dist::StageAttr last;
    for (Value operand : operandsOf(op)) {
      Operation *definer = definerIn(body, operand);
      dist::StageAttr stage = definer ? of(definer) : dist::StageAttr();
      if (!stage)
        continue;
      auto isLater = [](dist::StageAttr a, dist::StageAttr b) {
        if (a.getPass() != b.getPass())
          return a.getPass() > b.getPass();
        return a.getPass() == StagePass::Forward ? a.getIndex() > b.getIndex()
                                                 : a.getIndex() < b.getIndex();
      };
      if (!last || isLater(stage, last))
        last = stage;
    }
    if (last)
      set(&op, last.getIndex(), last.getPass());
  }
  // A sum is made somewhere.
  for (Value value : body.getTerminator()->getOperands())
    if (Operation *definer = definerIn(body, value); definer && !of(definer))
      set(definer, 0, StagePass::Forward);
}

void StageAssignment::followUsers() {
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    dist::StageAttr own = of(&op);
    if (!own || dist::getStage(&op))
      continue;
    // The stage that all users are in, and the first pass in which one is.
    dist::StageAttr users;
    bool together = true;
    for (Operation *user : op.getUsers()) {
      Operation *inBody = body.findAncestorOpInBlock(*user);
      dist::StageAttr stage = inBody ? of(inBody) : dist::StageAttr();
      if (!stage || (users && stage.getIndex() != users.getIndex())) {
        together = false;
        break;
      }
      if (!users || stage.getPass() < users.getPass())
        users = stage;
    }
    if (!together || !users || users == own)
      continue;
    auto bytes = [](const auto &values) {
      int64_t sum = 0;
      for (Value value : values)
        sum += tensorBytes(value.getType());
      return sum;
    };
    if (users.getIndex() == own.getIndex() || bytes(op.getResults()) > bytes(operandsOf(op)))
      set(&op, users.getIndex(), users.getPass());
  }
}

void StageAssignment::splitWeights() {
  // Which stages another stage's backward pass waits for, and which ops those wait for.
  llvm::DenseSet<int64_t> awaited;
  llvm::DenseSet<Operation *> needed;
  auto isBackward = [&](Operation *op) {
    dist::StageAttr stage = of(op);
    return stage && stage.getPass() == StagePass::Backward;
  };
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    if (!isBackward(&op))
      continue;
    for (Operation *user : op.getUsers()) {
      Operation *inBody = body.findAncestorOpInBlock(*user);
      dist::StageAttr stage = inBody ? of(inBody) : dist::StageAttr();
      if (stage && stage.getIndex() != of(&op).getIndex()) {
        needed.insert(&op);
        awaited.insert(of(&op).getIndex());
      } else if (stage && needed.contains(inBody)) {
        needed.insert(&op);
      }
    }
  }
  llvm::DenseSet<Operation *> weights;
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    if (!isBackward(&op) || needed.contains(&op))
      continue;
    bool isLast = llvm::all_of(op.getUsers(), [&](Operation *user) {
      return user == body.getTerminator() ||
             (op.hasOneUse() && weights.contains(body.findAncestorOpInBlock(*user)));
    });
    if (awaited.contains(of(&op).getIndex()) || isLast)
      weights.insert(&op);
  }
  for (Operation *op : weights)
    set(op, of(op).getIndex(), StagePass::Weight);
}
