//===- OverlapCollectives.cpp - Overlap of collectives with computation ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/exec/ClosingReductions.h"
#include "dialects/dist/ChunkAttribute.h"
#include "plan/KernelTable.h"

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

/// Walks a task and finds for each collective, and for each instruction of the host, the first
/// instruction that must not run before its end.
class TaskOverlap {
public:
  /// `kept` are the buffers that live throughout the program, those of states; `closing` are the
  /// closing instructions, `sums` the buffers of sums over microbatches, `parked` the values on the
  /// host that are copied back as they are.
  TaskOverlap(exec::TaskOp task, const exec::AccessFinder &accesses,
              const llvm::DenseSet<Operation *> &kept, const llvm::DenseSet<Operation *> &closing,
              const llvm::DenseSet<Operation *> &sums, const llvm::DenseSet<Value> &parked)
      : task(task), accesses(accesses), kept(kept), closing(closing), sums(sums), parked(parked) {}
  void run();

private:
  struct Pending {
    Lane lane;
    SmallVector<Operation *> reads, writes; ///< buffers
    unsigned kernelsBefore = 0;     ///< how many kernels of the device come before the start
    unsigned kernelsAtEnd = 0;      ///< ... and before the end
    Operation *end = nullptr;       ///< the instruction that must wait; null: the task's end
    SmallVector<Operation *> after; ///< what it comes after on other lanes
    Value token;                    ///< once it is asynchronous
  };
  void start(Operation &op, Lane lane);
  /// Whether a closing instruction reads a sum, which takes memory until the loop ends anyway.
  bool isSumOfLoop(Operation &op, Value input) const {
    return closing.contains(&op) && sums.contains(exec::getRoot(input));
  }
  void handleConflicts(Operation &op, Lane lane);
  /// Lets the device wait for a value that `op` needs of the host, and for those that started with
  /// it or before: before the products that `op` follows, so that one kernel can compute both.
  void awaitFetched(Operation *fetch, Operation &op);
  bool isFetch(Operation *started) const {
    return exec::laneOf(started) == Lane::ToDevice &&
           parked.contains(cast<exec::KernelOp>(started).getInputs()[0]);
  }
  /// Ends the oldest of the instructions that keep memory before `next`, where there are `most` of
  /// them. Collectives that run for the last microbatch alone count by themselves: what others wait
  /// for is the same in all microbatches.
  void limitHeld(Operation &next, llvm::SetVector<Operation *> &holding, size_t most);
  void finish(Operation *started, Operation *end);
  void makeAsync(Operation *op, Pending &pending);

  exec::TaskOp task;
  const exec::AccessFinder &accesses;
  const llvm::DenseSet<Operation *> &kept;
  const llvm::DenseSet<Operation *> &closing, &sums;
  const llvm::DenseSet<Value> &parked;
  llvm::MapVector<Operation *, Pending> started;
  /// The running instructions that read or write a buffer.
  llvm::DenseMap<Operation *, SmallVector<Operation *, 1>> readers, writers;
  llvm::SetVector<Operation *> running;
  /// The running collectives whose inputs are memory that their outputs do not use: it is free
  /// again when they end.
  llvm::SetVector<Operation *> holding, closingHolding;
  llvm::SetVector<Operation *> leaving; ///< the running copies of values that are parked
  unsigned kernels = 0;                 ///< of the device, passed so far
  /// The last product of the device with nothing but its kernels since, or the first of several
  /// that follow each other; null: none.
  Operation *product = nullptr;
  bool isAfterProduct = false; ///< directly
};

} // namespace

/// The lane of an op that may run beside the compute queue: before this pass, no collective has a
/// token.
static Lane laneOf(Operation &op) {
  return isa<exec::CollectiveOp>(op) ? Lane::Communication : exec::laneOf(&op);
}

/// One collective runs, one waits for it: a third would only keep memory.
static constexpr size_t kMostHolding = 2;
/// A layer of a transformer keeps about a dozen values for its backward pass: so they leave under
/// the next layer's kernels.
static constexpr size_t kMostLeaving = 12;

static bool isOfHost(Lane lane) { return lane != Lane::Compute && lane != Lane::Communication; }

void TaskOverlap::finish(Operation *op, Operation *end) {
  Pending &pending = started[op];
  pending.end = end;
  pending.kernelsAtEnd = kernels;
  running.remove(op);
  holding.remove(op);
  closingHolding.remove(op);
  leaving.remove(op);
  for (Operation *buffer : pending.reads)
    llvm::erase(readers[buffer], op);
  for (Operation *buffer : pending.writes)
    llvm::erase(writers[buffer], op);
}

/// Finds the running instructions that use the same bytes as `op`. The device waits for them before
/// `op`. If `op` and the other are on two lanes and one of these is the host's, the lane of `op`
/// waits instead, but for a value that leaves.
void TaskOverlap::handleConflicts(Operation &op, Lane lane) {
  llvm::SetVector<Operation *> conflicts;
  exec::Accesses used = accesses.of(&op);
  auto add = [&](ArrayRef<Value> buffers, auto &running) {
    for (Value buffer : buffers)
      for (Operation *conflict : running.lookup(exec::getRoot(buffer)))
        conflicts.insert(conflict);
  };
  add(used.reads, writers);
  add(used.writes, writers);
  add(used.writes, readers);
  for (Operation *conflict : conflicts) {
    if (!running.contains(conflict))
      continue;
    Lane other = started[conflict].lane;
    if (lane == Lane::Compute && isFetch(conflict)) {
      awaitFetched(conflict, op);
      continue;
    }
    // A value that is fetched must have left: the device does not need its memory any more.
    if (lane == Lane::Compute || (!isOfHost(lane) && !isOfHost(other)) ||
        leaving.contains(conflict))
      finish(conflict, &op);
    else if (lane != other)
      started[&op].after.push_back(conflict);
  }
}

void TaskOverlap::awaitFetched(Operation *fetch, Operation &op) {
  Operation *end = product && fetch->isBeforeInBlock(product) ? product : &op;
  const unsigned before = started[fetch].kernelsBefore;
  for (Operation *other : llvm::to_vector(running))
    if (isFetch(other) && started[other].kernelsBefore <= before)
      finish(other, end);
}

void TaskOverlap::limitHeld(Operation &next, llvm::SetVector<Operation *> &holding, size_t most) {
  while (holding.size() >= most)
    finish(holding.front(), &next);
}

void TaskOverlap::start(Operation &op, Lane lane) {
  exec::Accesses used = accesses.of(&op);
  // Chunks are waited for one after another: they hold no more than the whole would.
  bool mayHold = lane == Lane::Communication && !op.hasAttr(dist::kChunkAttrName);
  bool holds = mayHold && llvm::any_of(used.reads, [&](Value input) {
                 return !kept.contains(exec::getRoot(input)) && !isSumOfLoop(op, input) &&
                        llvm::none_of(used.writes, [&](Value output) {
                          return exec::getRoot(output) == exec::getRoot(input);
                        });
               });
  if (holds) {
    auto &ofKind = closing.contains(&op) ? closingHolding : holding;
    limitHeld(op, ofKind, kMostHolding);
    ofKind.insert(&op);
  }
  if (lane == Lane::ToHost &&
      llvm::any_of(used.writes, [&](Value output) { return parked.contains(output); })) {
    limitHeld(op, leaving, kMostLeaving);
    leaving.insert(&op);
  }
  Pending &pending = started[&op];
  pending.lane = lane;
  pending.kernelsBefore = kernels;
  auto add = [&](ArrayRef<Value> buffers, SmallVector<Operation *> &list, auto &map) {
    for (Value buffer : buffers) {
      list.push_back(exec::getRoot(buffer));
      map[list.back()].push_back(&op);
    }
  };
  add(used.reads, pending.reads, readers);
  add(used.writes, pending.writes, writers);
  running.insert(&op);
}

/// An op's results are fixed: it is made again, with a token.
void TaskOverlap::makeAsync(Operation *op, Pending &pending) {
  // A lane is through with all before the last.
  llvm::SmallMapVector<Lane, Operation *, 4> lastOf;
  for (Operation *before : pending.after) {
    if (!started[before].token)
      continue; // it is not asynchronous: it has ended
    Operation *&last = lastOf[started[before].lane];
    if (!last || last->isBeforeInBlock(before))
      last = before;
  }
  SmallVector<Value> after;
  for (auto [lane, last] : lastOf)
    after.push_back(started[last].token);
  OpBuilder builder(op);
  auto token = exec::TokenType::get(task.getContext());
  if (auto kernel = dyn_cast<exec::KernelOp>(op)) {
    pending.token = exec::KernelOp::create(builder, op->getLoc(), token, kernel.getKernelAttr(),
                                           kernel.getInputs(), kernel.getOutputs(),
                                           kernel.getSettingsAttr(), kernel.getFlopsAttr(), after)
                        .getToken();
  } else {
    auto collective = cast<exec::CollectiveOp>(op);
    pending.token =
        exec::CollectiveOp::create(
            builder, op->getLoc(), token, collective.getKind(), collective.getReductionAttr(),
            collective.getAxes(), collective.getInputs(), collective.getOutputs(),
            collective.getDimsAttr(), collective.getSplitDimsAttr(), collective.getSourceAxesAttr(),
            collective.getShiftAttr(), collective.getReasonsAttr(), after)
            .getToken();
  }
  if (pending.end)
    builder.setInsertionPoint(pending.end);
  else
    builder.setInsertionPointToEnd(&task.getBody().front());
  exec::WaitOp::create(builder, op->getLoc(), pending.token);
}

void TaskOverlap::run() {
  for (Operation &op : task.getBody().front()) {
    bool isAsync = bool(exec::tokenOf(&op)); // already: others end before
    Lane lane = isAsync ? Lane::Compute : laneOf(op);
    handleConflicts(op, lane);
    auto kernel = dyn_cast<exec::KernelOp>(op);
    if (lane != Lane::Compute)
      start(op, lane);
    else if (!isAsync)
      kernels += bool(kernel);
    bool computes = kernel && lane == Lane::Compute && !isAsync;
    bool isProduct = computes && findKernel(kernel.getKernel()).kernelClass == KernelClass::Product;
    if (!computes)
      product = nullptr;
    else if (isProduct && !isAfterProduct)
      product = &op;
    isAfterProduct = isProduct;
  }
  while (!running.empty())
    finish(running.back(), nullptr);
  SmallVector<Operation *> dead;
  for (auto &[op, pending] : started) {
    if (!isOfHost(pending.lane) && pending.after.empty() &&
        pending.kernelsAtEnd == pending.kernelsBefore)
      continue; // nothing overlaps with it
    makeAsync(op, pending);
    dead.push_back(op);
  }
  for (Operation *op : dead)
    op->erase();
}

/// The values on the host that are copied back as they are: no kernel of the host makes them.
static llvm::DenseSet<Value> findParked(exec::ProgramOp program) {
  llvm::DenseSet<Value> fetched, made;
  program.walk([&](exec::KernelOp kernel) {
    if (exec::laneOf(kernel) == Lane::ToDevice)
      fetched.insert_range(kernel.getInputs());
    if (exec::laneOf(kernel) == Lane::Host)
      made.insert_range(kernel.getOutputs());
  });
  for (Value value : made)
    fetched.erase(value);
  return fetched;
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
      startClosingReductions(program);
      llvm::DenseSet<Operation *> closing = findClosing(program);
      llvm::DenseSet<Operation *> sums;
      llvm::DenseSet<Value> parked = findParked(program);
      program.walk([&](exec::KernelOp kernel) {
        if (readsOwnOutput(kernel.getKernel()))
          sums.insert(exec::getRoot(kernel.getOutputs()[0]));
      });
      for (auto task : program.getOps<exec::TaskOp>())
        TaskOverlap(task, accesses, kept, closing, sums, parked).run();
    }
  }
};
} // namespace
