//===- ProgramBuilder.h - The declarations and tasks of a program ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_EXEC_PROGRAMBUILDER_H
#define DTC_COMPILER_PASSES_EXEC_PROGRAMBUILDER_H

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace dtc {

/// Writes a program: declarations, then tasks, then the runs of the tasks. Instructions are added
/// to the last task.
class ProgramBuilder {
public:
  /// Creates the program of a function, before it, with an empty task.
  ProgramBuilder(mlir::func::FuncOp function, llvm::StringRef mesh, llvm::StringRef firstTask);

  mlir::OpBuilder &declarations() { return declare; }
  /// In the task that is being filled.
  mlir::OpBuilder &instructions() { return builder; }

  /// Further instructions go to a new task.
  exec::TaskOp beginTask(const llvm::Twine &name);
  /// To the time by estimate of the task that is being filled.
  void addSeconds(double more) { seconds += more; }
  void kernel(mlir::Location loc, llvm::StringRef name, mlir::ValueRange inputs,
              mlir::ValueRange outputs, mlir::DictionaryAttr attributes, double flops = 0);
  void start(exec::TransferOp transfer);
  /// At the end of an earlier task.
  void startIn(exec::TaskOp task, exec::TransferOp transfer);
  void finish(exec::TransferOp transfer);

  /// Adds a run of a task after the others; `inLoop` says whether it is one of a loop that makes
  /// sums.
  void addRun(exec::TaskOp task, int64_t microbatch, bool inLoop);
  size_t numRuns() const { return runs.size(); }

  exec::ProgramOp program() const { return theProgram; }
  /// Writes the runs and removes what is empty.
  void finish();

private:
  struct Run {
    exec::TaskOp task;
    int64_t microbatch;
    bool inLoop;
  };
  void endTask();

  mlir::Location loc;
  exec::ProgramOp theProgram;
  mlir::OpBuilder builder; ///< in the task that is being filled
  mlir::OpBuilder declare; ///< before the first task
  exec::TaskOp task;       ///< the one that is being filled
  double seconds = 0;      ///< that it takes by estimate
  llvm::SmallVector<Run> runs;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_EXEC_PROGRAMBUILDER_H
