//===- ScheduleOrder.cpp - Order of the fragments of a loop ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/exec/ScheduleOrder.h"

using namespace mlir;
using namespace dtc;

void dtc::orderAsScheduled(dist::MicrobatchLoopOp loop) {
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
