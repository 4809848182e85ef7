//===- Replicas.h - Replicas whose states differ --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A sharding names the axes that split a tensor; along all others devices hold copies. In a plan
// with an entry point "outer", or with those of fragments, the copies of some states differ along
// one axis, the outer one, from one outer step to the next. Which states these are follows from the
// plan: those that its step updates with values that depend on the device's coordinate on the axis.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_REPLICAS_H
#define DTC_PLAN_REPLICAS_H

#include "plan/plan.pb.h"
#include "support/Error.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace dtc {

/// The replicas along the outer axis of a plan.
struct Replicas {
  std::string axis;
  int64_t count = 1;
  std::set<std::string> states; ///< names of those that differ
  /// Names of the step's outputs that differ: each replica has one of its own.
  std::set<std::string> outputs;

  bool differ(const plan::State &state) const { return states.count(state.name()) > 0; }
};

/// Nullopt for a plan without an outer step, of all parameters or of fragments. The outer axis is
/// the one over which its programs reduce. Expects a plan that findPlanError() accepts.
std::optional<Replicas> replicasOf(const plan::Plan &plan);

/// Proves of a plan with an outer step that replicas send each other nothing along the outer axis
/// in the step, and in what takes and applies fragments. It proves too that no value that differs
/// along the axis is where readers take one for all: in an output of another entry point that the
/// axis does not split, in a state of the outer step, or in a parameter after an outer step of all
/// parameters. Replicas of clients, which have an entry point "outer_check", send each other
/// scalars in the step, whose outputs and step state are then of all. Each entry point alone is one
/// that findPlanError() accepts.
MaybeError checkReplicas(const plan::Plan &plan);

} // namespace dtc

#endif // DTC_PLAN_REPLICAS_H
