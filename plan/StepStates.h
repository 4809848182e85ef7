//===- StepStates.h - Kinds of step state in a plan -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_STEPSTATES_H
#define DTC_PLAN_STEPSTATES_H

#include "plan/plan.pb.h"
#include "support/StepStateKinds.h"

namespace dtc {

/// Null if the kind is no step state.
const StepStateKind *stepStateKindOf(plan::State::Kind kind);

/// The kind of a step state.
plan::State::Kind kindOf(const StepStateKind &state);

} // namespace dtc

#endif // DTC_PLAN_STEPSTATES_H
