//===- Optimizers.h - The optimizers that a train step may have -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// An optimizer is an op with OptimizerOpInterface, a kernel, and an entry in the table here.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_TRAIN_OPTIMIZERS_H
#define DTC_COMPILER_PASSES_TRAIN_OPTIMIZERS_H

#include "mlir/IR/Builders.h"

#include <string>

namespace dtc {

/// The hyperparameters of all optimizers; each uses those of its op.
struct OptimizerSettings {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weightDecay = 0.1, momentum = 0.9;
};

/// The scalars that the updates of all parameters share. `step` is null where the optimizer counts
/// no steps.
struct OptimizerScalars {
  mlir::Value learningRate, step, gradScale, apply;
};

struct OptimizerKind {
  llvm::StringRef name;
  /// The parts of its state for each parameter, in the words of PyTorch's.
  llvm::ArrayRef<llvm::StringRef> states;
  /// Whether it needs the number of the step.
  bool countsSteps;
  /// Builds the op: the results are the new parameter and the new states.
  mlir::ValueRange (*build)(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value parameter,
                            mlir::Value gradient, mlir::ValueRange states,
                            const OptimizerScalars &scalars, const OptimizerSettings &settings);
};

/// The optimizer of that name; null if there is none.
const OptimizerKind *findOptimizer(llvm::StringRef name);

/// "adamw, adam, sgd, lion".
std::string optimizerNames();

} // namespace dtc

#endif // DTC_COMPILER_PASSES_TRAIN_OPTIMIZERS_H
