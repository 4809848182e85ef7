//===- SampleNoise.h - Steps that clip the gradient of each sample --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_TRAIN_SAMPLENOISE_H
#define DTC_COMPILER_PASSES_TRAIN_SAMPLENOISE_H

#include "compiler/passes/train/TrainedLoss.h"

#include "mlir/IR/Builders.h"

namespace dtc {

/// The samples of a batch, which the function records, and inputs the dimension: the size of the
/// dimension "batch" of its inputs. Emits an error where there is none or more than one size, and
/// where the step cannot be that of DP-SGD.
mlir::FailureOr<int64_t> countSamples(const TrainedLoss &loss,
                                      const BuildTrainStepPassOptions &options);

/// The gradient and what stands for its noise, for dtc-clip-samples.
mlir::Value markSampleNoise(mlir::OpBuilder &builder, mlir::Value gradient,
                            mlir::StringAttr parameter);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_TRAIN_SAMPLENOISE_H
