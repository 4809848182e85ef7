//===- ModelMetrics.h - Metrics that a model returns ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_MODELMETRICS_H
#define DTC_RUNTIME_TRAIN_MODELMETRICS_H

#include "runtime/executor/Session.h"
#include "runtime/metrics/StepMetrics.h"

namespace dtc::runtime {

/// Reads what the plan's metrics are after the last step, and what follows from those of experts.
/// All processes call it together.
MaybeError addModelMetrics(const Session &session, StepMetrics &metrics);

/// An error where a metric that must be zero is not: the last step has computed something that the
/// model does not mean. A train step has then changed no parameter. All processes call it together.
MaybeError checkZeroMetrics(const Session &session);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_MODELMETRICS_H
