//===- PlanMemory.cpp - Place every buffer in one arena -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/ArenaPlan.h"
#include "compiler/passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <map>

#define DEBUG_TYPE "dtc-plan-memory"

namespace dtc {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// When the buffers of a program are in use. Instants number the instructions of the tasks in the
/// order in which the tasks first run.
class Liveness {
public:
  explicit Liveness(exec::ProgramOp program) : program(program) {}
  /// The buffers in order of declaration, with their lifetimes.
  llvm::MapVector<Operation *, Lifetime> compute();

private:
  struct Use {
    int first = std::numeric_limits<int>::max();
    int last = -1;
    void extend(int from, int to) {
      first = std::min(first, from);
      last = std::max(last, to);
    }
  };

  exec::ProgramOp program;
};

} // namespace

llvm::MapVector<Operation *, Lifetime> Liveness::compute() {
  llvm::MapVector<Operation *, Use> uses;
  for (auto buffer : program.getOps<exec::BufferOp>())
    uses[buffer] = Use();

  llvm::StringMap<int> runCount;
  SmallVector<exec::TaskOp> order;
  for (auto run : program.getOps<exec::RunOp>())
    if (runCount[run.getTask()]++ == 0)
      order.push_back(program.lookupSymbol<exec::TaskOp>(run.getTask()));

  int now = 0;
  llvm::DenseMap<Operation *, exec::TaskOp> onlyTask; // null once a second task uses the buffer
  SmallVector<std::tuple<exec::TaskOp, int, int>> repeated;
  for (exec::TaskOp task : order) {
    int begin = now;
    for (Operation &op : task.getBody().front()) {
      // A collective that runs beside kernels uses its buffers until it is waited for.
      Operation *user = &op;
      if (auto wait = dyn_cast<exec::WaitOp>(op))
        user = wait.getToken().getDefiningOp();
      for (Value operand : user->getOperands()) {
        Operation *root = exec::getRoot(operand);
        uses[root].extend(now, now);
        auto [it, fresh] = onlyTask.try_emplace(root, task);
        if (!fresh && it->second != task)
          it->second = {};
      }
      // The running sum is there from one microbatch to the next.
      if (auto kernel = dyn_cast<exec::KernelOp>(op); kernel && kernel.getKernel() == "accumulate")
        onlyTask[exec::getRoot(kernel.getOutputs()[0])] = {};
      ++now;
    }
    if (runCount[task.getSymName()] > 1)
      repeated.push_back({task, begin, now - 1});
  }
  // The caller writes inputs before the first task.
  for (auto input : program.getOps<exec::InputOp>()) {
    uses[exec::getRoot(input.getBuffer())].extend(0, 0);
    onlyTask[exec::getRoot(input.getBuffer())] = {};
  }
  // Between repetitions of a task, what comes from outside it or goes on after it must be left
  // alone.
  for (auto [task, begin, end] : repeated)
    for (auto &[root, use] : uses)
      if (use.last >= begin && use.first <= end && onlyTask.lookup(root) != task)
        use.extend(begin, end);
  int end = std::max(now - 1, 0);
  for (auto state : program.getOps<exec::StateOp>())
    uses[exec::getRoot(state.getBuffer())].extend(0, end);
  for (auto output : program.getOps<exec::OutputOp>())
    uses[exec::getRoot(output.getBuffer())].extend(end, end);

  llvm::MapVector<Operation *, Lifetime> lifetimes;
  for (auto &[root, use] : uses) {
    int64_t bytes = exec::getNumBytes(cast<MemRefType>(root->getResult(0).getType()));
    if (use.last < 0)
      use = {0, 0};
    lifetimes[root] = {int64_t(llvm::alignTo(bytes, exec::kBufferAlignment)), use.first, use.last};
  }
  return lifetimes;
}

namespace {
struct PlanMemoryPass : dtc::impl::PlanMemoryPassBase<PlanMemoryPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<exec::ProgramOp>())
      plan(program);
  }

  void plan(exec::ProgramOp program) {
    auto lifetimes = Liveness(program).compute();
    SmallVector<Lifetime> list;
    for (auto &entry : lifetimes)
      list.push_back(entry.second);
    ArenaPlan arena = planArena(list);

    Builder b(&getContext());
    std::map<StringRef, int64_t> byKind;
    for (auto [index, entry] : llvm::enumerate(lifetimes)) {
      auto buffer = cast<exec::BufferOp>(entry.first);
      buffer.setOffset(arena.offsets[index]);
      if (entry.second.first <= arena.peak && arena.peak <= entry.second.last)
        byKind[exec::stringifyBufferKind(buffer.getKind())] += entry.second.bytes;
    }
    SmallVector<NamedAttribute> kinds;
    for (auto [kind, bytes] : byKind)
      kinds.push_back(b.getNamedAttr(kind, b.getI64IntegerAttr(bytes)));
    program.setArenaBytes(arena.arenaBytes);
    program.setArenaLowerBound(arena.lowerBound);
    program.setMemoryByKindAttr(b.getDictionaryAttr(kinds));
  }
};
} // namespace
