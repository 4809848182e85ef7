//===- OverlapCollectives.cpp - Overlap of collectives with computation ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Passes.h"
#include "dialects/dist/ChunkAttribute.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace dtc {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVESPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// Walks a task and finds for each collective the first instruction that must not run before its
/// end.
class TaskOverlap {
public:
  /// `kept` are the buffers that live throughout the program: those of states.
  TaskOverlap(exec::TaskOp task, const exec::AccessFinder &accesses,
              const llvm::DenseSet<Operation *> &kept)
      : task(task), accesses(accesses), kept(kept) {}
  void run();

private:
  struct Pending {
    SmallVector<Operation *> reads, writes; ///< buffers
    unsigned kernelsBefore = 0;             ///< how many kernels come before the start
    unsigned kernelsAtEnd = 0;              ///< ... and before the end
    Operation *end = nullptr; ///< the instruction that must wait; null: the task's end
  };
  void finishConflicting(Operation &op);
  /// Ends the oldest of the collectives that keep memory, where there are too many of them.
  void limitHeld(Operation &next);
  void finish(exec::CollectiveOp collective, Operation *end);

  exec::TaskOp task;
  const exec::AccessFinder &accesses;
  const llvm::DenseSet<Operation *> &kept;
  llvm::MapVector<exec::CollectiveOp, Pending> collectives;
  /// The running collectives that read or write a buffer.
  llvm::DenseMap<Operation *, SmallVector<exec::CollectiveOp, 1>> readers, writers;
  llvm::SetVector<Operation *> running;
  /// The running collectives whose inputs are memory that their outputs do not use: it is free
  /// again when they end.
  llvm::SetVector<Operation *> holding;
  unsigned kernels = 0; ///< passed so far
};

} // namespace

void TaskOverlap::finish(exec::CollectiveOp collective, Operation *end) {
  Pending &pending = collectives[collective];
  pending.end = end;
  pending.kernelsAtEnd = kernels;
  running.remove(collective);
  holding.remove(collective);
  for (Operation *buffer : pending.reads)
    llvm::erase(readers[buffer], collective);
  for (Operation *buffer : pending.writes)
    llvm::erase(writers[buffer], collective);
}

void TaskOverlap::finishConflicting(Operation &op) {
  SmallVector<exec::CollectiveOp> conflicts;
  exec::Accesses used = accesses.of(&op);
  auto add = [&](ArrayRef<Value> buffers, auto &running) {
    for (Value buffer : buffers)
      llvm::append_range(conflicts, running.lookup(exec::getRoot(buffer)));
  };
  add(used.reads, writers);
  add(used.writes, writers);
  add(used.writes, readers);
  for (exec::CollectiveOp conflict : conflicts)
    if (running.contains(conflict))
      finish(conflict, &op);
}

void TaskOverlap::limitHeld(Operation &next) {
  // One runs, one waits for it: a third would only keep memory.
  while (holding.size() >= 2)
    finish(cast<exec::CollectiveOp>(holding.front()), &next);
}

void TaskOverlap::run() {
  Block &block = task.getBody().front();
  for (Operation &op : block) {
    finishConflicting(op);
    kernels += isa<exec::KernelOp>(op);
    auto collective = dyn_cast<exec::CollectiveOp>(op);
    if (!collective || collective.getToken())
      continue;
    // Chunks are waited for one after another: they hold no more than the whole would.
    bool isChunk = collective->hasAttr(dist::kChunkAttrName);
    bool holds = !isChunk && llvm::any_of(collective.getInputs(), [&](Value input) {
      return !kept.contains(exec::getRoot(input)) &&
             llvm::none_of(collective.getOutputs(), [&](Value output) {
               return exec::getRoot(output) == exec::getRoot(input);
             });
    });
    if (holds) {
      limitHeld(op);
      holding.insert(collective);
    }
    Pending &pending = collectives[collective];
    pending.kernelsBefore = kernels;
    auto add = [&](ValueRange buffers, SmallVector<Operation *> &list, auto &map) {
      for (Value buffer : buffers) {
        list.push_back(exec::getRoot(buffer));
        map[list.back()].push_back(collective);
      }
    };
    add(collective.getInputs(), pending.reads, readers);
    add(collective.getOutputs(), pending.writes, writers);
    running.insert(collective);
  }
  while (!running.empty())
    finish(cast<exec::CollectiveOp>(running.back()), nullptr);
  SmallVector<Operation *> dead;
  for (auto &[collective, pending] : collectives) {
    if (pending.kernelsAtEnd == pending.kernelsBefore)
      continue; // nothing overlaps with it
    // An op's results are fixed: the collective is made again, with a collective token.
    OpBuilder builder(collective);
    auto started = exec::CollectiveOp::create(
        builder, collective.getLoc(), exec::TokenType::get(task.getContext()), collective.getKind(),
        collective.getReductionAttr(), collective.getAxes(), collective.getInputs(),
        collective.getOutputs(), collective.getDimsAttr(), collective.getSplitDimsAttr(),
        collective.getSourceAxesAttr(), collective.getShiftAttr(), collective.getReasonsAttr());
    if (pending.end)
      builder.setInsertionPoint(pending.end);
    else
      builder.setInsertionPointToEnd(&block);
    exec::WaitOp::create(builder, collective.getLoc(), started.getToken());
    dead.push_back(collective);
  }
  for (Operation *op : dead)
    op->erase();
}

namespace {
struct OverlapCollectivesPass : dtc::impl::OverlapCollectivesPassBase<OverlapCollectivesPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<exec::ProgramOp>()) {
      exec::AccessFinder accesses(program);
      llvm::DenseSet<Operation *> kept;
      for (auto state : program.getOps<exec::StateOp>())
        kept.insert(exec::getRoot(state.getBuffer()));
      for (auto task : program.getOps<exec::TaskOp>())
        TaskOverlap(task, accesses, kept).run();
    }
  }
};
} // namespace
