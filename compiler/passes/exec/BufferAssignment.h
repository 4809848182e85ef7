//===- BufferAssignment.h - Buffers, views and reuses of values -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_EXEC_BUFFERASSIGNMENT_H
#define DTC_COMPILER_PASSES_EXEC_BUFFERASSIGNMENT_H

#include "compiler/passes/exec/ValueUses.h"
#include "dialects/exec/Exec.h"
#include "plan/KernelTable.h"

#include "mlir/IR/Builders.h"

#include <utility>

namespace dtc {

/// Whether a value of the local view lies in the memory of the host.
bool isOnHost(mlir::Value value);

/// The type of the buffer of a value.
mlir::MemRefType bufferType(mlir::Value value);

/// The buffer of each value of a function. Values whose buffers take the same bytes, such as those
/// of an in-place result or a reshape, have one storage.
class BufferAssignment {
public:
  /// Buffers are declared by `declarations`. Both stay.
  BufferAssignment(const ValueUses &uses, mlir::OpBuilder &declarations)
      : uses(uses), declarations(declarations) {}

  mlir::Value bufferOf(mlir::Value value) const { return buffers.at(value); }
  unsigned storageOf(mlir::Value value) const { return storageNumbers.at(value); }

  /// Whether what is made from now on belongs to one microbatch of a loop that makes sums.
  void setInLoop(bool holds) { inLoop = holds; }
  bool isInLoop() const { return inLoop; }

  /// The purpose of a value that needs a buffer of its own.
  BufferKind kindOf(mlir::Value value) const;
  /// Declares a buffer; a reusable one holds an intermediate value, which may be overwritten after
  /// its last use.
  mlir::Value allocate(mlir::Value value, BufferKind kind, bool reusable);
  /// The buffer for result `index` of `op`: that of an operand among the pairs (operand, result)
  /// where nothing needs the operand any more, or that of the state which the result updates where
  /// nothing reads the old value, else a new one.
  mlir::Value allocateResult(mlir::Operation &op, unsigned index,
                             llvm::ArrayRef<InPlacePair> inPlacePairs);
  /// Gives a value the buffer of another one, or a view of it.
  void share(mlir::Value value, mlir::Value with, mlir::Value buffer);
  void share(mlir::Value value, mlir::Value with) { share(value, with, bufferOf(with)); }
  /// The storage of the value keeps its contents after the value's last use.
  void keep(mlir::Value value) { storages[storageOf(value)].reusable = false; }

  /// Gives the buffers that several tasks of a loop use for one microbatch their slots.
  void markMicrobatchBuffers(exec::ProgramOp program) const;

private:
  struct Storage {
    int lastUse = -1;      ///< of any value in it, as an op's number
    bool inLoop = false;   ///< belongs to one microbatch
    bool reusable = false; ///< holds an intermediate value
  };

  void assign(mlir::Value value, unsigned storage, mlir::Value buffer);
  /// Declares that the value takes the bytes of `buffer`, which is in that storage.
  mlir::Value reuse(mlir::Value value, unsigned storage, mlir::Value buffer);
  bool readsStorage(mlir::Operation &op, unsigned storage) const;

  const ValueUses &uses;
  mlir::OpBuilder &declarations;
  bool inLoop = false;
  llvm::SmallVector<Storage> storages;
  llvm::DenseMap<mlir::Value, unsigned> storageNumbers;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
  llvm::SmallVector<exec::BufferOp> microbatchBuffers; ///< that are made in the loop
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_EXEC_BUFFERASSIGNMENT_H
