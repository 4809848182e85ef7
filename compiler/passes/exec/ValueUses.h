//===- ValueUses.h - Uses of the values of a function ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_EXEC_VALUEUSES_H
#define DTC_COMPILER_PASSES_EXEC_VALUEUSES_H

#include "compiler/analysis/Layout.h"
#include "dialects/dist/Dist.h"
#include "dialects/dtc/DtcOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dtc {

/// Whether all users of a broadcast read its operand instead, and repeat it themselves.
bool isFolded(BroadcastOp op);

/// The value that an operand reads once broadcasts are folded.
mlir::Value foldedSource(mlir::OpOperand &operand);

/// How the values of a partitioned function are used. Ops are numbered in the order in which they
/// first run, which is that of their text.
class ValueUses {
public:
  /// With `keepSums` a loop over one microbatch makes sums as any other does.
  ValueUses(mlir::func::FuncOp function, const LinkedMesh &mesh, bool keepSums);

  int64_t microbatchesOf(dist::MicrobatchLoopOp loop) const;
  /// Whether the yielded values of the loop are added up, rather than each handed on as the only
  /// one of its kind.
  bool makesSums(dist::MicrobatchLoopOp loop) const;
  /// For a result of a fragment or a bucket, the value that it returns inside; for one of a loop
  /// that makes no sums, the value that it yields. Any other value is itself.
  mlir::Value makerInside(mlir::Value value) const;

  int numberOf(mlir::Operation *op) const { return numbers.at(op); }
  /// The number of the last op that uses a value; -1 where none does. A use in a loop that makes
  /// sums of a value from outside lasts until the loop's end, and users of a folded broadcast read
  /// its operand.
  int lastUseOf(mlir::Value value) const;
  bool isReturned(mlir::Value value) const { return returned.contains(value); }
  /// The argument that a returned value updates; null for others.
  mlir::BlockArgument updatedArgument(mlir::Value value) const { return updates.lookup(value); }
  /// Whether an optimizer reads it, before or after its sums.
  bool isGradient(mlir::Value value) const { return gradients.contains(value); }

private:
  void findLastUses(mlir::func::FuncOp function);
  void findReturned(mlir::func::FuncOp function);
  void findGradients(mlir::func::FuncOp function);

  const LinkedMesh &mesh;
  bool keepSums;
  llvm::DenseMap<mlir::Operation *, int> numbers;
  llvm::DenseMap<mlir::Value, int> lastUse;
  llvm::DenseSet<mlir::Value> gradients, returned;
  llvm::DenseMap<mlir::Value, mlir::BlockArgument> updates;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_EXEC_VALUEUSES_H
