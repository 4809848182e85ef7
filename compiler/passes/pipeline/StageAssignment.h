//===- StageAssignment.h - Stages of the ops of the microbatch loop -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PIPELINE_STAGEASSIGNMENT_H
#define DTC_COMPILER_PASSES_PIPELINE_STAGEASSIGNMENT_H

#include "dialects/dist/Dist.h"

#include "llvm/ADT/DenseMap.h"

namespace dtc {

/// The stages of the ops of a loop over microbatches, in the local view. Ops that the partitioner
/// added, such as collectives, get the stage of the values that they work on: of a value that one
/// other stage uses and that the op makes larger, that of its users. What depends on no op with a
/// stage, such as a microbatch's part of the data, has none: each stage that needs it has a copy.
class StageAssignment {
public:
  /// With `splitWeights` the backward pass is split: ops that no other stage waits for are in the
  /// pass Weight. In a stage that none waits for, these are the last ops on the way to each sum.
  StageAssignment(dist::MicrobatchLoopOp loop, bool splitWeights);

  /// The stage of an op; null where each stage that needs the op has a copy of it.
  dist::StageAttr of(mlir::Operation *op) const { return stages.lookup(op); }
  /// One more than the highest stage.
  int64_t numStages() const { return count; }

private:
  void followOperands();
  void followUsers();
  void splitWeights();
  void set(mlir::Operation *op, int64_t index, StagePass pass);

  mlir::Block &body;
  llvm::DenseMap<mlir::Operation *, dist::StageAttr> stages;
  int64_t count = 0;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_PIPELINE_STAGEASSIGNMENT_H
