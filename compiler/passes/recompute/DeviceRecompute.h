//===- DeviceRecompute.h - Recomputation on one device --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_RECOMPUTE_DEVICERECOMPUTE_H
#define DTC_COMPILER_PASSES_RECOMPUTE_DEVICERECOMPUTE_H

#include "compiler/analysis/Layout.h"
#include "compiler/analysis/Recompute.h"
#include "compiler/passes/pipeline/StageAssignment.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace dtc {

enum class RecomputeMode { None, Gathers, Elementwise, Selective, Full, Auto };

/// Chooses and recomputes for one device: a coordinate on the pipeline axis, or the only one.
class DeviceRecompute {
public:
  /// `work` holds the ops of the loop's body that have a stage of the device, in their order,
  /// before anything is recomputed.
  DeviceRecompute(dist::MicrobatchLoopOp loop, const LinkedMesh &mesh,
                  const StageAssignment &assignment, std::vector<int> microbatchesInFlight,
                  llvm::DenseSet<int64_t> stages, llvm::ArrayRef<mlir::Operation *> work)
      : body(loop.getBody().front()), mesh(mesh), assignment(assignment),
        inFlight(std::move(microbatchesInFlight)), stages(std::move(stages)), work(work) {
    buildProblem();
    findSegments();
  }
  /// `keepBytes` is for RecomputeMode::Auto.
  RecomputeChoice choose(RecomputeMode mode, int64_t keepBytes);
  /// Computes again what was chosen.
  void apply(const RecomputeChoice &choice);

  /// Seconds of the forward passes of all stages for one microbatch.
  double forwardSeconds() const;

private:
  void buildProblem();
  int valueIndex(mlir::Value value, int64_t stage);
  void findSegments();
  bool isWeight(mlir::Value value);
  double findWeightFlopsPerByte();
  bool isGatheredActivation(mlir::Operation *op);
  std::vector<bool> findSelective();
  bool leavesSegment(mlir::Operation *op) const;
  mlir::Value recomputed(mlir::Value value, int64_t stage, mlir::Operation *before);
  bool isForward(mlir::Operation *op) const {
    dist::StageAttr stage = assignment.of(op);
    return stage && stage.getPass() == StagePass::Forward && stages.contains(stage.getIndex());
  }

  mlir::Block &body;
  const LinkedMesh &mesh;
  const StageAssignment &assignment;
  std::vector<int> inFlight; ///< by stage
  llvm::DenseSet<int64_t> stages;
  llvm::ArrayRef<mlir::Operation *> work;   ///< of all passes of the stages
  llvm::SmallVector<mlir::Operation *> ops; ///< of the forward passes of the stages
  RecomputeProblem problem;
  /// Each stage keeps what it gets from another one by itself.
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, int> indexOf;
  /// Parts of the forward pass that are recomputed one at a time. Values that go from one to
  /// another are kept: recomputing one would recompute everything before it, and hold all of that
  /// at once.
  llvm::DenseMap<mlir::Operation *, int> segmentOf;
  llvm::DenseMap<mlir::Value, bool> weights; ///< what isWeight() found
  llvm::DenseSet<mlir::Operation *> again;
  llvm::DenseMap<mlir::Value, mlir::Value> clones;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_RECOMPUTE_DEVICERECOMPUTE_H
