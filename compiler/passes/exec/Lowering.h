//===- Lowering.h - From tensors to kernels on buffers ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_EXEC_LOWERING_H
#define DTC_COMPILER_PASSES_EXEC_LOWERING_H

#include "compiler/analysis/Layout.h"
#include "compiler/passes/exec/BufferAssignment.h"
#include "compiler/passes/exec/ProgramBuilder.h"
#include "compiler/passes/exec/ValueUses.h"
#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dtc {

/// Replaces a partitioned function by a program, op by op: `uses` has the facts about its values,
/// `buffers` their places, and `program` the instructions so far.
class Lowering {
public:
  /// Pipelines are ordered as scheduled.
  Lowering(mlir::func::FuncOp function, const LinkedMesh &mesh, bool keepSums)
      : function(function), mesh(mesh), uses(function, mesh, keepSums),
        program(function, mesh.name,
                function.getOps<dist::MicrobatchLoopOp>().empty() ? "step" : "prepare"),
        buffers(uses, program.declarations()) {}
  mlir::LogicalResult run();

private:
  // States, inputs and outputs
  mlir::LogicalResult lowerArguments();
  mlir::LogicalResult lowerReturn(mlir::func::ReturnOp op);

  mlir::LogicalResult lowerOp(mlir::Operation &op);
  mlir::LogicalResult lowerKernel(mlir::Operation &op);
  /// One collective of the given tensors.
  void lowerCollectives(llvm::ArrayRef<mlir::Operation *> ops);
  void lowerBucket(dist::BucketOp bucket);

  // The loop over microbatches, and the stages of a pipeline in it
  mlir::LogicalResult lowerLoop(dist::MicrobatchLoopOp loop);
  /// The ops of one microbatch, or of a fragment of it, which add to the loop's sums.
  mlir::LogicalResult lowerBody(mlir::Block &block);
  mlir::LogicalResult lowerScheduled(dist::MicrobatchLoopOp loop);
  mlir::LogicalResult lowerFragment(dist::FragmentOp fragment);
  /// Declare one end of a transfer, and the buffers of what is received.
  exec::TransferOp declareSend(dist::SendOp send);
  exec::TransferOp declareReceive(dist::ReceiveOp receive);
  /// Waits for messages that were sent outside a loop.
  void finishSends();

  mlir::func::FuncOp function;
  const LinkedMesh &mesh;
  const ValueUses uses;
  ProgramBuilder program;
  BufferAssignment buffers;
  llvm::SmallVector<exec::TransferOp> unfinished; ///< sends outside a loop
  /// The sums, by number of the loop's result, that a value is added to.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 1>> sumsOf;
  llvm::DenseMap<mlir::Value, mlir::StringAttr> stateNames; ///< of arguments
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_EXEC_LOWERING_H
