//===- Liveness.h - Live ranges of buffers --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_EXEC_LIVENESS_H
#define DTC_COMPILER_PASSES_EXEC_LIVENESS_H

#include "compiler/analysis/ArenaOffsets.h"
#include "compiler/passes/exec/PlaceInSums.h"
#include "compiler/passes/exec/SlotSharing.h"
#include "dialects/exec/Exec.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

#include <limits>
#include <string>
#include <vector>

namespace dtc {

/// When the buffers of a program are in use. Program points number the instructions of the tasks in
/// the order in which the tasks first run.
class Liveness {
public:
  explicit Liveness(exec::ProgramOp program) : program(program), accesses(program) {}
  /// Gives the buffers of microbatches their slots. Returns the buffers in order of declaration,
  /// with their live ranges, without those that share the bytes of another one.
  llvm::MapVector<mlir::Operation *, LiveRange> compute();
  /// For each buffer that lies in the bytes of another one: where. After compute().
  const llvm::DenseMap<mlir::Operation *, PlaceInBuffer> &sharers() const { return shared; }
  /// The instruction of a program point. After compute().
  mlir::Operation *instructionAt(int point) const;

private:
  struct Use {
    int first = std::numeric_limits<int>::max();
    int last = -1;
    void extend(int from, int to) {
      first = std::min(first, from);
      last = std::max(last, to);
    }
  };
  /// When a task runs, by number of the program's runs, and its program points.
  struct TaskRuns {
    exec::TaskOp task;
    int first = 0, last = 0;
    int begin = 0, end = 0;
    llvm::SmallVector<std::pair<int, int64_t>> all; ///< with the microbatch
  };
  void findRuns();
  /// Notes when each buffer is used in the first runs of the tasks. The number of program points.
  int findUses();
  void noteUser(mlir::Operation &op, mlir::Operation *user, const exec::Accesses &used, int now);
  /// Tasks that take turns are one loop: a value that only one of them uses is made again each
  /// time; all others that they touch must be left alone from the first to the last of them.
  void extendOverTurns();
  /// What a closing instruction makes is there once, from then on: of the tasks that take turns,
  /// only those that run after the last run of its own must leave it alone.
  void extendToLaterTasks(Use &use, size_t maker);
  /// The whole loop over microbatches may run again: sums, inputs and values from before it are
  /// there until its end.
  void extendOverRepetitions();
  void giveSlots();
  /// Shards of sums, made by closing instructions, take the bytes of sums that are reduced before:
  /// these are there until the end of the loop in all microbatches but the last one.
  void giveBytesOfSums();
  SlotUsers describeUsers(const std::vector<unsigned> &tasks) const;

  exec::ProgramOp program;
  exec::AccessFinder accesses;
  llvm::DenseSet<mlir::Operation *> closing; ///< instructions
  std::vector<TaskRuns> tasks;               ///< in the order of their first runs
  int64_t microbatches = 1;                  ///< of the mesh
  // By buffer:
  llvm::MapVector<mlir::Operation *, Use> uses;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<unsigned, 2>> usersOf; ///< tasks
  llvm::DenseSet<mlir::Operation *> sums;                                    ///< over microbatches
  llvm::DenseSet<mlir::Operation *> inputs;
  llvm::DenseMap<mlir::Operation *, size_t> madeOnce; ///< by closing instructions, of which task
  /// The last instruction that uses it, and when; for a kernel of the host, when it ends.
  llvm::DenseMap<mlir::Operation *, std::pair<mlir::Operation *, int>> lastUser;
  /// By asynchronous closing collectives: by which, and when it starts.
  llvm::MapVector<mlir::Operation *, std::pair<mlir::Operation *, int>> madeOnLane;
  llvm::DenseMap<mlir::Operation *, PlaceInBuffer> shared;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_EXEC_LIVENESS_H
