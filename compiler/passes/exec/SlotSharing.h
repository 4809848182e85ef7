//===- SlotSharing.h - Stages of a device that share slots ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_EXEC_SLOTSHARING_H
#define DTC_COMPILER_PASSES_EXEC_SLOTSHARING_H

#include "compiler/analysis/SlotColoring.h"
#include "dialects/exec/Exec.h"

#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace dtc {

/// Some tasks of a program and when they are at work for each microbatch.
struct SlotUsers {
  std::vector<unsigned> tasks;         ///< numbers, ascending
  int64_t stage = -1;                  ///< the lowest of the tasks' stages; -1: none has one
  unsigned stagePasses = 0;            ///< a bit for each forward, backward, ... pass of a task
  std::vector<SlotInterval> intervals; ///< by microbatch: places in the program's order of runs
};

/// A buffer that each microbatch has its own of.
struct SlottedBuffer {
  exec::BufferOp buffer;
  int64_t stride = 0;      ///< bytes of a copy
  int first = 0, last = 0; ///< the program points between which all copies are in use
  size_t users = 0;        ///< number of those that use it
};

/// Gives buffers, in order of declaration, their slots: as few as let microbatch i have copy
/// i mod slots. The stages of a device are busiest at different moments, so buffers of several
/// stages share slots where this takes fewer than they have in sum; a map then says which slot a
/// microbatch has. Only buffers of one memory, kind, size and live range share, so that nothing is
/// in use longer than before, which the same passes over their stages use (forward, backward,
/// weight); no task uses two that share. For each buffer that shares and is not the first of its
/// group: the first.
llvm::DenseMap<mlir::Operation *, mlir::Operation *>
assignSlots(llvm::ArrayRef<SlottedBuffer> buffers, llvm::ArrayRef<SlotUsers> users);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_EXEC_SLOTSHARING_H
