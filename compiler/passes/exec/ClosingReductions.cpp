//===- ClosingReductions.cpp - Gradients reduced in the last microbatch ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/exec/ClosingReductions.h"

#include "plan/KernelTable.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace dtc;

/// The shard that a moved reduction makes is held beside all sums until the update, unless it
/// finds bytes of sums that are reduced before it (Liveness.h). Those that find none may take this
/// share of the bytes of the sums, or as much as one reduction makes. A reduction in place takes
/// nothing.
static constexpr int64_t kHeldDivisor = 32;

/// The value of a buffer, which its views share. A reuse is another value.
static Value valueOf(Value buffer) {
  while (auto view = buffer.getDefiningOp<exec::ViewOp>())
    buffer = view.getSource();
  return buffer;
}

static bool addsToSum(Operation *op) {
  auto kernel = dyn_cast<exec::KernelOp>(op);
  return kernel && readsOwnOutput(kernel.getKernel());
}

namespace {

/// A task of the loop over microbatches.
struct LoopTask {
  exec::TaskOp op;
  size_t lastRun = 0; ///< by number of the program's runs
  int64_t lastMicrobatch = 0;
};

/// The tasks of the loop over microbatches, and the task after it.
struct Loop {
  explicit Loop(exec::ProgramOp program) {
    llvm::StringMap<exec::TaskOp> byName;
    for (auto task : program.getOps<exec::TaskOp>())
      byName[task.getSymName()] = task;
    for (auto [number, run] : llvm::enumerate(program.getOps<exec::RunOp>())) {
      exec::TaskOp op = byName.lookup(run.getTask());
      if (run.getInLoop())
        tasks[op] = {op, number, int64_t(run.getMicrobatch())};
      else if (!tasks.empty() && !after)
        after = op;
    }
  }

  llvm::MapVector<Operation *, LoopTask> tasks;
  exec::TaskOp after;
};

/// Finds the reductions of the task after the loop that can move, and moves them.
class Mover {
public:
  explicit Mover(exec::ProgramOp program) : program(program), accesses(program), loop(program) {}
  void run();

private:
  LoopTask *findHost();
  bool sends(exec::TaskOp task) const;
  void findSums(const LoopTask &host);
  void findReadersAndMakers();
  bool isReduction(Operation &op) const;
  bool collect(Operation *op, llvm::SetVector<Operation *> &chain);
  bool collectInput(Operation *reader, Value input, llvm::SetVector<Operation *> &chain);
  bool writesFreely(Operation *op) const;
  bool workFollows(const llvm::SetVector<Operation *> &chain) const;
  int64_t heldBytes(Operation *reduction) const;
  int64_t freedBytes(const llvm::SetVector<Operation *> &chain) const;
  void move(Operation *op);

  exec::ProgramOp program;
  exec::AccessFinder accesses;
  Loop loop;
  mutable exec::TaskOp host; // its ops are listed by const functions
  /// By value: sums and moved results, with the instruction of the host after which it is there;
  /// null: at the beginning of the host.
  llvm::DenseMap<Value, Operation *> ready;
  llvm::DenseSet<Value> sums;
  llvm::DenseMap<Value, unsigned> readers;   ///< how many instructions after the loop read it
  llvm::DenseMap<Value, Operation *> makers; ///< of the task after the loop
  llvm::DenseSet<Operation *> moved;
};

} // namespace

bool Mover::sends(exec::TaskOp task) const {
  return llvm::any_of(task.getOps<exec::StartOp>(), [&](exec::StartOp start) {
    auto transfer =
        SymbolTable::lookupNearestSymbolFrom<exec::TransferOp>(start, start.getTransferAttr());
    return transfer && transfer.getKind() == TransferKind::Send;
  });
}

/// The task that takes the reductions: the last one to run, of those that make gradients, if it
/// runs for the last microbatch then.
LoopTask *Mover::findHost() {
  bool isPipeline =
      llvm::any_of(loop.tasks, [](auto &entry) { return entry.second.op.getPass().has_value(); });
  LoopTask *found = nullptr;
  for (auto &[op, task] : loop.tasks) {
    bool makesGradients =
        isPipeline ? task.op.getPass().value_or(StagePass::Forward) != StagePass::Forward : true;
    if (makesGradients && !sends(task.op) && (!found || found->lastRun < task.lastRun))
      found = &task;
  }
  bool endsWithLast = found && found->lastMicrobatch + 1 == exec::countMicrobatches(program);
  return endsWithLast ? found : nullptr;
}

/// Sums that are whole when the host has run for the last time.
void Mover::findSums(const LoopTask &last) {
  for (auto &[op, task] : loop.tasks)
    for (Operation &instruction : task.op.getBody().front())
      if (addsToSum(&instruction) && task.lastRun <= last.lastRun)
        for (Value output : cast<exec::KernelOp>(instruction).getOutputs())
          ready[valueOf(output)] = task.op == last.op ? &instruction : nullptr;
}

void Mover::findReadersAndMakers() {
  for (auto task : program.getOps<exec::TaskOp>()) {
    if (loop.tasks.count(task))
      continue;
    for (Operation &op : task.getBody().front()) {
      exec::Accesses used = accesses.of(&op);
      for (Value buffer : used.reads)
        ++readers[valueOf(buffer)];
      for (Value buffer : used.writes)
        makers[valueOf(buffer)] = &op;
    }
  }
  auto addBinding = [&](Value buffer) { ++readers[valueOf(buffer)]; };
  for (auto output : program.getOps<exec::OutputOp>())
    addBinding(output.getBuffer());
  for (auto update : program.getOps<exec::UpdateOp>())
    addBinding(update.getBuffer());
}

bool Mover::isReduction(Operation &op) const {
  auto collective = dyn_cast<exec::CollectiveOp>(op);
  return collective && (collective.getKind() == CollectiveKind::AllReduce ||
                        collective.getKind() == CollectiveKind::ReduceScatter);
}

/// Whether no other instruction after the loop needs the former content of the bytes that the
/// instruction writes: they are a buffer of their own, or those of an operand that nothing else
/// reads.
bool Mover::writesFreely(Operation *op) const {
  exec::Accesses used = accesses.of(op);
  return llvm::all_of(used.writes, [&](Value output) {
    auto reuse = valueOf(output).getDefiningOp<exec::ReuseOp>();
    if (!reuse)
      return true;
    Value before = valueOf(reuse.getSource());
    return readers.lookup(before) == 1 &&
           llvm::any_of(used.reads, [&](Value input) { return valueOf(input) == before; });
  });
}

/// Adds the instruction and those that have to move before it; false if one of these cannot.
bool Mover::collect(Operation *op, llvm::SetVector<Operation *> &chain) {
  if (!writesFreely(op))
    return false;
  for (Value input : accesses.of(op).reads)
    if (!collectInput(op, input, chain))
      return false;
  chain.insert(op);
  return true;
}

bool Mover::collectInput(Operation *reader, Value input, llvm::SetVector<Operation *> &chain) {
  Value value = valueOf(input);
  if (ready.contains(value))
    return true;
  Operation *maker = makers.lookup(value);
  auto kernel = dyn_cast_or_null<exec::KernelOp>(maker);
  return kernel && maker->getParentOp() == loop.after && kernel.getInputs().size() == 1 &&
         kernel.getOutputs().size() == 1 && readers.lookup(value) == 1 && !exec::isOnHost(value) &&
         !addsToSum(maker) && collect(maker, chain);
}

/// Whether the host computes after the last of the sums: else nothing would hide the reduction
/// there.
bool Mover::workFollows(const llvm::SetVector<Operation *> &chain) const {
  auto kernels = host.getOps<exec::KernelOp>();
  return llvm::any_of(kernels, [&](exec::KernelOp kernel) {
    return !moved.contains(kernel) && llvm::all_of(chain, [&](Operation *op) {
      return llvm::all_of(accesses.of(op).reads, [&](Value input) {
        Operation *other = ready.lookup(valueOf(input));
        return !other || other->isBeforeInBlock(kernel);
      });
    });
  });
}

/// The bytes that the reduction writes and that are of no operand. What is made for it alone is
/// held until it ends.
int64_t Mover::heldBytes(Operation *reduction) const {
  int64_t bytes = 0;
  for (Value output : accesses.of(reduction).writes)
    if (!valueOf(output).getDefiningOp<exec::ReuseOp>())
      bytes += exec::getNumBytes(cast<MemRefType>(output.getType()));
  return bytes;
}

/// The bytes of sums that nothing needs once the instructions have run.
int64_t Mover::freedBytes(const llvm::SetVector<Operation *> &chain) const {
  int64_t bytes = 0;
  for (Operation *op : chain) {
    exec::Accesses used = accesses.of(op);
    for (Value input : used.reads) {
      Value value = valueOf(input);
      bool isInPlace = llvm::any_of(
          used.writes, [&](Value output) { return exec::getRoot(output) == exec::getRoot(value); });
      if (sums.contains(value) && readers.lookup(value) == 1 && !isInPlace)
        bytes += exec::getNumBytes(cast<MemRefType>(value.getType()));
    }
  }
  return bytes;
}

/// Before the next product or attention from `first` on: kernels before that one, which one kernel
/// of a GPU may compute, stay together. Before `first` if there is none, and at the end if that is
/// null.
static Operation *findPlaceAfter(Operation *first) {
  for (Operation *op = first; op; op = op->getNextNode())
    if (auto kernel = dyn_cast<exec::KernelOp>(op)) {
      KernelClass kind = findKernel(kernel.getKernel()).kernelClass;
      if (kind == KernelClass::Product || kind == KernelClass::Attention)
        return op;
    }
  return first;
}

/// Moves `op` behind the last of its operands, and behind the instructions that were moved there.
void Mover::move(Operation *op) {
  Operation *maker = nullptr;
  for (Value input : accesses.of(op).reads)
    if (Operation *other = ready.lookup(valueOf(input)))
      if (!maker || maker->isBeforeInBlock(other))
        maker = other;
  Block &block = host.getBody().front();
  Operation *next = maker ? maker->getNextNode() : (block.empty() ? nullptr : &block.front());
  while (next && moved.contains(next))
    next = next->getNextNode();
  next = findPlaceAfter(next);
  if (next)
    op->moveBefore(next);
  else
    op->moveBefore(&block, block.end());
  moved.insert(op);
  for (Value output : accesses.of(op).writes)
    ready[valueOf(output)] = op;
}

void Mover::run() {
  LoopTask *found = loop.after ? findHost() : nullptr;
  if (!found)
    return;
  host = found->op;
  findSums(*found);
  if (ready.empty())
    return;
  int64_t bytesOfSums = 0, mostHeld = 0;
  for (auto &[value, maker] : ready) {
    sums.insert(value);
    bytesOfSums += exec::getNumBytes(cast<MemRefType>(value.getType()));
  }
  findReadersAndMakers();
  Block &behind = loop.after.getBody().front();
  for (Operation &op : behind)
    if (isReduction(op))
      mostHeld = std::max(mostHeld, heldBytes(&op));
  int64_t bytesLeft = std::max(bytesOfSums / kHeldDivisor, mostHeld), bytesFreed = 0;
  for (Operation &op : llvm::make_early_inc_range(behind)) {
    llvm::SetVector<Operation *> chain;
    if (!isReduction(op) || !collect(&op, chain) || !workFollows(chain))
      continue;
    int64_t held = heldBytes(&op);
    if (held > bytesLeft + bytesFreed)
      continue;
    int64_t inSums = std::min(held, bytesFreed);
    bytesLeft -= held - inSums;
    bytesFreed += freedBytes(chain) - inSums;
    for (Operation *each : chain)
      move(each);
  }
}

void dtc::startClosingReductions(exec::ProgramOp program) { Mover(program).run(); }

llvm::DenseSet<Operation *> dtc::findClosing(exec::ProgramOp program) {
  Loop loop(program);
  exec::AccessFinder accesses(program);
  llvm::DenseSet<Value> whole; // sums, and values made of them
  for (auto &[op, task] : loop.tasks)
    for (Operation &instruction : task.op.getBody().front())
      if (addsToSum(&instruction))
        for (Value output : cast<exec::KernelOp>(instruction).getOutputs())
          whole.insert(valueOf(output));
  llvm::DenseSet<Operation *> closing;
  auto reads = [&](Operation &op) {
    if (auto wait = dyn_cast<exec::WaitOp>(op))
      return closing.contains(wait.getToken().getDefiningOp());
    if (!isa<exec::KernelOp, exec::CollectiveOp>(op))
      return false;
    return llvm::any_of(accesses.of(&op).reads,
                        [&](Value input) { return whole.contains(valueOf(input)); });
  };
  for (bool grows = !whole.empty(); grows;) {
    grows = false;
    for (auto &[op, task] : loop.tasks)
      for (Operation &instruction : task.op.getBody().front())
        if (!closing.contains(&instruction) && reads(instruction)) {
          closing.insert(&instruction);
          grows = true;
          for (Value output : accesses.of(&instruction).writes)
            whole.insert(valueOf(output));
        }
  }
  return closing;
}
