//===- PlanSimulation.h - Simulation of a plan without a cluster ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A step of a plan where no cluster is known, from the plan itself:
//
//   - An execution of a task takes Task.seconds. Where the plan says 0 it takes the task's FLOPs at
//     `flopsPerSecond`, which leaves out what collectives and memory cost. The time is spread over
//     the task's kernels and collectives in proportion to their FLOPs, or evenly if it has none, so
//     that a transfer starts and is needed part of the way through.
//   - A message takes messageTime() over the link of the pipeline axis. Channels do not share its
//     bandwidth.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_PLANSIMULATION_H
#define DTC_SIMULATOR_PLANSIMULATION_H

#include "plan/plan.pb.h"
#include "simulator/Timeline.h"
#include "support/Error.h"
#include "support/LinkSpeed.h"

namespace dtc {

/// FLOPs a second of a device that nothing is known of, where a plan does not say how long a task
/// takes. All tasks share it, so that it hardly changes the shape of a schedule, only how long
/// transfers are beside tasks.
inline constexpr double kAssumedFlopsPerSecond = 5e12;

struct TimelineOptions {
  bool rendezvous = false; ///< a send keeps its device until the receive has started
  double flopsPerSecond = kAssumedFlopsPerSecond;
  /// The link of the pipeline axis. A figure of 0 comes from the plan, or else from kAssumedLink.
  LinkSpeed link = {};
};

/// Simulates a step of a plan that findPlanError() accepts, with simulateStep() and its errors. An
/// error too if a transfer has no other end.
Expected<Timeline> simulatePlan(const plan::Plan &plan, const TimelineOptions &options = {});

} // namespace dtc

#endif // DTC_SIMULATOR_PLANSIMULATION_H
