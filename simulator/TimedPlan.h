//===- TimedPlan.h - The work of a plan's step on a cluster --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_TIMEDPLAN_H
#define DTC_SIMULATOR_TIMEDPLAN_H

#include "plan/plan.pb.h"
#include "simulator/StepWork.h"
#include "simulator/cluster/Topology.h"
#include "support/Error.h"

namespace dtc {

/// Every instruction of the plan's tasks with its time on the devices of a topology. If the devices
/// of one coordinate are of several kinds, the slowest counts. The plan is one that findPlanError()
/// accepts, the mesh of the topology is the plan's. An error if an equation of a product does not
/// fit its operands.
Expected<StepWork> workOnCluster(const plan::Plan &plan, const Topology &topology);

} // namespace dtc

#endif // DTC_SIMULATOR_TIMEDPLAN_H
