//===- PredictedTimes.h - Predicted times of communication -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_PREDICTEDTIMES_H
#define DTC_RUNTIME_TRAIN_PREDICTEDTIMES_H

#include "plan/plan.pb.h"
#include "runtime/executor/RunWatch.h"

namespace dtc::runtime {

/// The seconds that collectives and transfers of the plan take by the links of its axes, as
/// dtc-plan explain predicts them: those of the cluster that it was compiled for, or assumed ones.
PredictTime predictTimes(const plan::Plan &plan);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_PREDICTEDTIMES_H
