//===- PlanSteps.h - What the devices of a plan do, with times -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_PLANSTEPS_H
#define DTC_SIMULATOR_PLANSTEPS_H

#include "plan/plan.pb.h"
#include "simulator/TaskKernels.h"
#include "simulator/cluster/CollectiveTime.h"
#include "simulator/cluster/Topology.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dtc::runtime {

/// A part of a task: computing up to the next instruction that communicates, or that instruction.
struct SimulatedStep {
  enum class Kind : uint8_t { Compute, Collective, Wait, StartTransfer, FinishTransfer };

  Kind kind = Kind::Compute;
  bool isAsync = false;     // of Collective
  bool meets = false;       // of Collective: it is over the pipeline axis
  bool usesNetwork = false; // of Collective: the cards, else the node's link
  uint32_t id = 0;    // Collective, Wait: the collective's instruction; transfers: their number
  uint32_t axes = 0;  // of Collective: index into PlanSteps::axes
  double seconds = 0; // of Compute and Collective, if nothing else is in the way
};

struct SimulatedTask {
  std::vector<SimulatedStep> steps;
  KernelSeconds kernels{}; // of one execution
};

/// The seconds of one execution of a task on a device that nobody makes wait: collectives begin
/// when the device comes to them and those before them in its stream have ended, messages take
/// nothing.
double isolatedSeconds(const SimulatedTask &task, double overlapSlowdown);

/// A channel: its ends, and what one of its messages takes.
struct SimulatedChannel {
  size_t from = 0, to = 0; // programs
  uint64_t bytes = 0;
  double seconds = 0;
  bool usesNetwork = false; // the cards, else the node's link
};

/// A device that stands for all with its coordinate on the pipeline axis.
struct SimulatedDevice {
  std::vector<SimulatedTask> tasks;
  double overlapSlowdown = 0; // the largest of the devices that it stands for
  /// Where the devices of its node share cores: which of those nodes, how many cores, and how many
  /// of the devices that it stands for are there.
  int64_t sharedNode = -1;
  double sharedCores = 0, devicesInNode = 1;
};

/// A plan as the simulator runs it.
struct PlanSteps {
  const plan::Plan *plan = nullptr;
  std::vector<SimulatedDevice> devices;       // by coordinate on the pipeline axis
  std::vector<std::vector<std::string>> axes; // sets of axes that collectives are over
  std::map<uint32_t, SimulatedChannel> channels;

  /// Every instruction of the plan's tasks with its time on the devices of a topology. Where the
  /// devices of one coordinate are of several kinds, the slowest counts. The plan is one that
  /// validatePlan() accepts, the mesh of the topology is the plan's. Both outlive the steps. An
  /// error if an equation of a product does not fit its operands.
  static Expected<PlanSteps> create(const plan::Plan &plan, const Topology &topology);
};

} // namespace dtc::runtime

#endif // DTC_SIMULATOR_PLANSTEPS_H
