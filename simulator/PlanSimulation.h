//===- PlanSimulation.h - When every device of a plan would work ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A run of a plan on paper. One device stands for all that share a coordinate on the pipeline axis.
// It goes through its program's schedule and each task's instructions in order:
//
//   - An execution of a task takes Task.seconds. Where the plan says 0 it takes the task's FLOPs at
//     `flopsPerSecond`, which leaves out what collectives and memory cost. The time is spread over
//     the task's kernels and collectives in proportion to their FLOPs, or evenly if it has none, so
//     that a transfer starts and is needed part of the way through.
//   - A transfer is on its way once its send and its receive have started and the messages before
//     it on its channel have arrived, and takes latency + bytes / bandwidth of the pipeline axis.
//     Channels do not share a link's bandwidth.
//   - Starting a receive takes no time; starting a send neither, unless `rendezvous` makes it wait
//     for the receive. Finishing either waits until the message has arrived.
//   - A collective over the pipeline axis waits until all coordinates have come to theirs.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_PLANSIMULATION_H
#define DTC_SIMULATOR_PLANSIMULATION_H

#include "plan/plan.pb.h"
#include "simulator/Timeline.h"
#include "support/Error.h"
#include "support/LinkSpeed.h"

namespace dtc::runtime {

/// FLOPs a second of a device that nothing is known of, where a plan does not say how long a task
/// takes. All tasks share it, so that it hardly changes the shape of a schedule, only how long
/// transfers are beside tasks.
inline constexpr double assumedFlopsPerSecond = 5e12;

struct SimulationOptions {
  bool rendezvous = false;
  double flopsPerSecond = assumedFlopsPerSecond;
  /// Of the pipeline axis. What is 0 comes from the plan, and where that says nothing from
  /// kAssumedLink.
  LinkSpeed link = {};
};

/// Runs a step of a plan that validatePlan() accepts. An error if the devices would wait for each
/// other for ever, or a transfer has no other end.
Expected<Timeline> simulatePlan(const plan::Plan &plan, const SimulationOptions &options = {});

} // namespace dtc::runtime

#endif // DTC_SIMULATOR_PLANSIMULATION_H
