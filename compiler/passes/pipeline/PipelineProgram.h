//===- PipelineProgram.h - Fragments and messages of a pipeline -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PIPELINE_PIPELINEPROGRAM_H
#define DTC_COMPILER_PASSES_PIPELINE_PIPELINEPROGRAM_H

#include "compiler/passes/pipeline/StageAssignment.h"

#include "llvm/ADT/SetVector.h"

#include <optional>
#include <vector>

namespace dtc {

/// The work that a device runs at once: a pass of a stage, for one microbatch.
struct Fragment {
  int64_t stage = 0;
  StagePass pass = StagePass::Forward;
  int64_t device = 0; ///< coordinate on the pipeline axis
  std::vector<mlir::Operation *> ops;
  /// Values that others need: fragments of the device, transfers, the loop's sums.
  llvm::SetVector<mlir::Value> results;
};

/// Values that a fragment makes and another device needs, once for each microbatch.
struct StageTransfer {
  size_t producer = 0;           ///< index of a fragment
  int64_t receiver = 0;          ///< device
  llvm::SetVector<size_t> users; ///< fragments of the receiver
  llvm::SetVector<mlir::Value> values;
};

/// The loop over microbatches as fragments and transfers. Fragments are in an order in which each
/// one's values come from those before it: forward along the stages, then back, weights last.
struct PipelineProgram {
  std::vector<Fragment> fragments;
  std::vector<StageTransfer>
      transfers; ///< by producer, receiver and first user; the index is the channel
  /// Pairs of fragments of one device, but of different stages: the second uses what the first
  /// makes.
  llvm::SetVector<std::pair<size_t, size_t>> handovers;
  llvm::DenseMap<mlir::Operation *, size_t> fragmentOf;
};

/// Cuts the loop's body. `deviceOf` maps a stage to the coordinate on the pipeline axis. Emits an
/// error where a value flows against the pipeline, which stages that rise along the program and
/// gradients that follow their ops exclude.
mlir::FailureOr<PipelineProgram> cutLoop(dist::MicrobatchLoopOp loop,
                                         const StageAssignment &assignment,
                                         llvm::function_ref<int64_t(int64_t)> deviceOf);

/// An op of one device's body of the loop, in order.
struct BodyOp {
  enum Kind { Receive, Run, Send } kind;
  size_t index; ///< of a message or a fragment
};

/// The body of a device's loop: each fragment after the messages whose values it is the first to
/// use, and before those that it makes.
std::vector<BodyOp> bodyOf(const PipelineProgram &program, int64_t device);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_PIPELINE_PIPELINEPROGRAM_H
