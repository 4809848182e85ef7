//===- SampleGradients.h - Gradients of one sample ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PRIVACY_SAMPLEGRADIENTS_H
#define DTC_COMPILER_PASSES_PRIVACY_SAMPLEGRADIENTS_H

#include "compiler/analysis/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

namespace dtc {

/// A value of one sample, in the loop over microbatches.
struct SampleValue {
  mlir::Value value;
  /// The axes that split the sum over samples, but not this value.
  AxisList whole;
};

/// Follows sums over samples back into the loop over microbatches, to the values of one sample.
class SampleTracer {
public:
  /// `batchAxes` are the axes of devices with different samples.
  SampleTracer(dist::MicrobatchLoopOp loop, const LinkedMesh &mesh, AxisList batchAxes);

  /// The value of one sample, where `use` reads the sum over all samples, as ops before the end
  /// of the loop compute it: sums over devices with parts of one sample are completed. Fails with a
  /// diagnostic where it is no such sum.
  mlir::FailureOr<SampleValue> gradientOf(mlir::OpOperand &use);

  /// The same of a value that is any function of sums over samples.
  mlir::FailureOr<SampleValue> valueOf(mlir::OpOperand &use);

  /// Multiplies all gradients that were followed by a factor of the sample, a scalar.
  mlir::LogicalResult scale(mlir::Value factor);

  /// Puts the ops that were added to the loop onto the stage of the gradients.
  void setStages();

  /// Inserts before the end of the loop.
  mlir::OpBuilder builder;

private:
  mlir::FailureOr<SampleValue> trace(mlir::OpOperand &use, AxisList missing);
  mlir::FailureOr<SampleValue> traceOp(mlir::Operation *op, const AxisList &missing);
  mlir::FailureOr<SampleValue> traceSum(mlir::Operation *op, AxisList missing);
  mlir::FailureOr<SampleValue> traceMove(mlir::Operation *op, const AxisList &missing);
  mlir::FailureOr<SampleValue> traceOther(mlir::Operation *op, const AxisList &missing);
  mlir::Value hoist(mlir::Value value);
  bool isInLoop(mlir::Value value) const;
  bool dependsOnLoop(mlir::Value value);
  AxisList axesOf(mlir::Operation *op) const;
  bool splitsBatch(unsigned axis) const { return llvm::is_contained(batchAxes, axis); }
  mlir::InFlightDiagnostic refuse(mlir::Operation *op) const;

  dist::MicrobatchLoopOp loop;
  const LinkedMesh &mesh;
  AxisList batchAxes;
  llvm::SetVector<mlir::Operation *> before; ///< the ops of the loop that were there before
  bool isGradient = true;
  llvm::DenseMap<mlir::Value, SampleValue> known;
  llvm::DenseMap<mlir::Value, mlir::Value> hoisted;
  llvm::DenseMap<mlir::Value, bool> dependent;
  llvm::SetVector<mlir::OpOperand *> leaves; ///< uses of a gradient of one sample
  llvm::SetVector<mlir::OpOperand *> uses;   ///< that were followed
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_PRIVACY_SAMPLEGRADIENTS_H
