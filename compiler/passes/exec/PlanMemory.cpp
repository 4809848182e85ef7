//===- PlanMemory.cpp - Assign an offset to every buffer ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/exec/Liveness.h"
#include "compiler/passes/exec/SharedStates.h"
#include "support/OuterEntries.h"

#include "mlir/IR/Builders.h"

#include <map>

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
    if (failed(shareStates(getOperation())))
      return signalPassFailure();
    // What sends fragments runs beside all others, so that its buffers come after theirs.
    for (bool sends : {false, true}) {
      llvm::DenseMap<Attribute, size_t> coordinates; // the next one of each entry point
      for (auto program : getOperation().getOps<exec::ProgramOp>()) {
        size_t coordinate = coordinates[program.getEntryAttr()]++;
        if (sendsFragment(program) != sends)
          continue;
        endOfOthers.resize(std::max(endOfOthers.size(), coordinate + 1), 0);
        plan(program, sends ? endOfOthers[coordinate] : 0);
        if (!sends)
          endOfOthers[coordinate] =
              std::max(endOfOthers[coordinate], int64_t(*program.getArenaBytes()));
      }
    }
    endOfOthers.clear();
  }

  static bool sendsFragment(exec::ProgramOp program) {
    return program.getEntry() && program.getEntry()->starts_with(kOuterSendEntry);
  }

  /// Both memories are planned alike, each with an arena of its own.
  /// What is no state lies at `begin` on the device, or behind.
  void plan(exec::ProgramOp program, int64_t begin) {
    Liveness liveness(program);
    auto liveRanges = liveness.compute();
    auto [device, deviceByKind] = planMemory(program, liveRanges, /*onHost=*/false, begin);
    auto [host, hostByKind] = planMemory(program, liveRanges, /*onHost=*/true, 0);
    for (auto buffer : program.getOps<exec::BufferOp>())
      if (auto [other, offset] = liveness.sharers().lookup(buffer); other)
        buffer.setOffset(*cast<exec::BufferOp>(other).getOffset() + offset);
    program.setArenaBytes(device.arenaBytes);
    program.setArenaLowerBound(device.lowerBound);
    program.setMemoryByKindAttr(deviceByKind);
    if (host.arenaBytes == 0)
      return;
    program.setHostArenaBytes(host.arenaBytes);
    program.setHostMemoryByKindAttr(hostByKind);
  }

  /// States live throughout, so that nothing is lost by placing them first, in their order: at the
  /// same offsets in all programs that share them. The rest of the arena follows them. Returns the
  /// sizes of the arena, and the bytes by kind at its peak.
  std::pair<ArenaOffsets, DictionaryAttr>
  planMemory(exec::ProgramOp program, const llvm::MapVector<Operation *, LiveRange> &liveRanges,
             bool onHost, int64_t begin) {
    int64_t stateBytes = 0;
    llvm::DenseMap<Operation *, int64_t> stateOffsets;
    for (auto state : program.getOps<exec::StateOp>()) {
      Operation *root = exec::getRoot(state.getBuffer());
      if (exec::isOnHost(state.getBuffer()) == onHost &&
          stateOffsets.try_emplace(root, stateBytes).second)
        stateBytes += liveRanges.lookup(root).bytes;
    }
    SmallVector<LiveRange> list;
    for (auto &[root, liveRange] : liveRanges)
      if (exec::isOnHost(root->getResult(0)) == onHost && !stateOffsets.contains(root))
        list.push_back(liveRange);
    ArenaOffsets arena = assignOffsets(list);
    const int64_t rest = std::max(stateBytes, begin); // where it begins

    std::map<StringRef, int64_t> byKind;
    size_t next = 0;
    for (auto &[root, liveRange] : liveRanges) {
      if (exec::isOnHost(root->getResult(0)) != onHost)
        continue;
      auto buffer = cast<exec::BufferOp>(root);
      auto state = stateOffsets.find(root);
      bool isState = state != stateOffsets.end();
      buffer.setOffset(isState ? state->second : rest + arena.offsets[next++]);
      if (isState || (liveRange.first <= arena.peak && arena.peak <= liveRange.last))
        byKind[name(buffer.getKind())] += liveRange.bytes;
    }
    Builder b(&getContext());
    SmallVector<NamedAttribute> kinds;
    for (auto [kind, bytes] : byKind)
      kinds.push_back(b.getNamedAttr(kind, b.getI64IntegerAttr(bytes)));
    arena.arenaBytes += rest;
    arena.lowerBound += stateBytes;
    return {std::move(arena), b.getDictionaryAttr(kinds)};
  }

  llvm::SmallVector<int64_t> endOfOthers; ///< of the device's arenas, by coordinate
};
} // namespace
