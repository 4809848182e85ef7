//===- LossQuotient.h - The sums and the divisor of a loss ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_TRAIN_LOSSQUOTIENT_H
#define DTC_COMPILER_PASSES_TRAIN_LOSSQUOTIENT_H

#include "compiler/passes/train/TrainedLoss.h"

#include "mlir/IR/Builders.h"

#include <optional>

namespace dtc {

/// A value that is `(sums + once) / divisor + rest`. The divisor depends on data and on no
/// parameter, `once` and `rest` depend on no data. Null: 0, and a divisor of 1.
struct LossQuotient {
  mlir::Value sums, divisor, once, rest;
};

/// Splits a value of the loss's function so that several batches add up to one large batch: the
/// sums and the divisor are over all samples, the rest counts once. New ops are built at the
/// builder's insertion point. Nullopt if the value has several divisors, whose sums would need
/// separate gradients.
std::optional<LossQuotient> findLossQuotient(mlir::OpBuilder &builder, const TrainedLoss &loss,
                                             mlir::Value value);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_TRAIN_LOSSQUOTIENT_H
