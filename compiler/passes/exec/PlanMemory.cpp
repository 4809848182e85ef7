//===- PlanMemory.cpp - Place every buffer in one arena -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/exec/Liveness.h"

#include "mlir/IR/Builders.h"

#include <map>

#define DEBUG_TYPE "dtc-plan-memory"

namespace dtc {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

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
