//===- Partitioner.h - State of the SPMD partitioner ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_SPMD_PARTITIONER_H
#define DTC_COMPILER_PASSES_SPMD_PARTITIONER_H

#include "compiler/analysis/Layout.h"
#include "compiler/analysis/ReshardSteps.h"
#include "dialects/dtc/DtcOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

namespace dtc {

/// When an op runs: before the loop over microbatches, in it, or after it.
enum class Phase { Before, Loop, After };

class Partitioner {
public:
  Partitioner(mlir::func::FuncOp function, const LinkedMesh &mesh, bool accumulates)
      : function(function), mesh(mesh), temporalAxis(mesh.temporalAxis()), accumulates(accumulates),
        planner(mesh) {}
  mlir::LogicalResult run();

private:
  Layout layoutOf(mlir::Value value) { return getLayout(mesh, dist::getSharding(value)); }
  bool mentionsTemporalAxis(const Layout &layout) {
    return temporalAxis && layout.mentions(*temporalAxis);
  }
  mlir::RankedTensorType localType(mlir::Type type, const Layout &layout);
  mlir::LogicalResult classify();
  /// For a loop that runs for each batch of a step: makes the sums over batches, then
  /// classifyOps().
  mlir::LogicalResult classifyRepeated();
  mlir::LogicalResult classifyOps();
  mlir::LogicalResult classifySingle();
  /// Puts after the loop what depends on its sums, and finds these. `batchSums` are the ops that
  /// take sums over batches.
  mlir::LogicalResult classifyLate(const llvm::DenseSet<mlir::Operation *> &batchSums,
                                   bool sumsBatches);
  bool takesSums(mlir::Operation *op, const llvm::DenseSet<mlir::Value> &values);
  bool isInLoop(mlir::Operation *op) const {
    auto it = phases.find(op);
    return it != phases.end() && it->second == Phase::Loop;
  }
  void sinkIntoAfter();
  mlir::LogicalResult refuseGather(dist::ReshardOp op);
  /// The end of an error about microbatches, with the remedy: `ofOneBatch` in a step of one batch.
  llvm::StringRef remedy(llvm::StringRef ofOneBatch) const;
  void recordIndexLimits();
  bool comesLast(const AxisList &dim) const;
  mlir::LogicalResult localizeSignature(mlir::Block &body);
  /// The ops of a phase, in their order.
  mlir::LogicalResult emitPhase(Phase phase, mlir::OpBuilder &builder);
  /// Gives each microbatch its part of the data.
  void cutArguments(mlir::Block &body, mlir::OpBuilder &loopBuilder);
  /// The loop over microbatches at the end of `body`, and its sums.
  mlir::LogicalResult emitLoop(mlir::Block &body, mlir::OpBuilder &builder);
  /// The value that the loop yields for one that it sums.
  mlir::Value yieldOf(mlir::Value value, mlir::Block &body, mlir::OpBuilder &loopBuilder,
                      bool hasStages);
  /// The return, in local types, and the attributes of the signature.
  void emitReturn(mlir::OpBuilder &builder);
  mlir::LogicalResult emit(mlir::Operation &op, mlir::OpBuilder &builder);
  mlir::LogicalResult emitReshard(dist::ReshardOp op, mlir::OpBuilder &builder);
  mlir::LogicalResult emitOp(ShardingRuleOpInterface op, mlir::OpBuilder &builder);
  mlir::Value maskAllPadding(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value local,
                             mlir::Value value);
  void recordOperandAxes(mlir::Operation *op, mlir::Operation *local);
  void recordPlace(mlir::Operation *local, llvm::ArrayRef<std::pair<mlir::Value, unsigned>> dims,
                   llvm::StringRef shapeName, llvm::StringRef shardingName);
  mlir::LogicalResult checkFollows(ShardingRuleOpInterface op, const ShardingRule &rule,
                                   const FactorAxes &axes);
  mlir::Value emitStep(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                       const ReshardStep &step, ReductionKind kind,
                       mlir::DictionaryAttr reason = {});
  /// `operand` of an op, in which padding counts for nothing where the op sums over it.
  mlir::Value maskPadding(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value operand,
                          const TensorFactors &factors, const ShardingRule &rule,
                          const FactorAxes &axes);
  mlir::ArrayAttr axisNames(llvm::ArrayRef<unsigned> axes);

  mlir::func::FuncOp function;
  const LinkedMesh &mesh;
  std::optional<unsigned> temporalAxis;
  bool accumulates;     ///< the loop has to run for several batches
  bool repeats = false; ///< it is planned so that it can
  ReshardCache planner;
  llvm::DenseMap<mlir::Operation *, Phase> phases;
  /// Values that differ between batches but not between the microbatches of one batch.
  llvm::DenseSet<mlir::Value> ofBatch;
  /// Values whose sum over the repetitions of the loop is used after it.
  llvm::SetVector<mlir::Value> accumulated;
  mlir::IRMapping locals; ///< global value -> local value; of what the loop makes, the sum after it
  mlir::IRMapping sums;   ///< accumulated global value -> result of the loop
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_SPMD_PARTITIONER_H
