//===- TrainedLoss.h - A loss that is to be trained -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_TRAIN_TRAINEDLOSS_H
#define DTC_COMPILER_PASSES_TRAIN_TRAINEDLOSS_H

#include "compiler/passes/Passes.h"
#include "compiler/passes/train/Optimizers.h"
#include "compiler/passes/train/ParameterSettings.h"

namespace dtc {

/// A sum or mean over samples that a model returns beside its loss, to be reported with each step.
struct ModelMetric {
  mlir::Value value;
  mlir::StringAttr name;
  bool isMean = false;
  /// A step in which an element is more than 0 changes no parameter. No element is negative.
  bool mustBeZero = false;
};

/// The new value of a frozen parameter that the model computes itself, such as a running mean.
struct ModelUpdate {
  mlir::BlockArgument state;
  mlir::Value value;
};

/// The parts of a train step, or of gradients alone.
struct TrainedLoss {
  /// Emits an error where the function is none that computes a loss of parameters that train, or
  /// where the optimizer cannot work with the options.
  static mlir::FailureOr<TrainedLoss> read(mlir::func::FuncOp function,
                                           const BuildTrainStepPassOptions &options);

  /// Emits an error where the loss depends on no parameter that trains: a step would change nothing
  /// but by weight decay.
  mlir::LogicalResult checkTrains();

  /// Whether the value is computed from a parameter that trains, or from data.
  bool dependsOnParameters(mlir::Value value) const;
  bool dependsOnData(mlir::Value value) const;

  mlir::func::FuncOp function;
  const OptimizerKind *optimizer = nullptr; ///< null: gradients alone
  ParameterSettings settings = {};
  mlir::Value loss = {};
  llvm::SmallVector<ModelMetric> metrics = {};
  llvm::SmallVector<ModelUpdate> updates = {};
  mlir::Type elementType = {};                        ///< of the loss and of all parameters
  llvm::SmallVector<mlir::BlockArgument> params = {}; ///< that train
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_TRAIN_TRAINEDLOSS_H
