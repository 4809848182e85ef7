//===- StepWork.h - Timed work of the devices in a step -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The input of StepSimulator.h: the tasks of each device with seconds, in the order of its
// schedule. TimedPlan.h makes it of a plan and a cluster, PlanSimulation.h of a plan and its own
// estimates, and the compiler of the schedule of a pipeline whose plan is yet to be made.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_STEPWORK_H
#define DTC_SIMULATOR_STEPWORK_H

#include "plan/KernelTable.h"
#include "simulator/Timeline.h"
#include "support/Kinds.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dtc {

/// Seconds by class.
using KernelSeconds = std::array<double, kNumKernelClasses>;

/// The ports of a device that moving bytes keeps busy.
enum class DevicePorts : uint8_t {
  None,
  Link,   ///< those of its node's link
  Network ///< its network card
};

/// A part of a task: computing up to the next instruction that is on a lane of the device or that
/// communicates, or that instruction.
struct SimulatedOperation {
  enum class Kind : uint8_t { Compute, OnLane, Wait, StartTransfer, FinishTransfer };

  Kind kind = Kind::Compute;
  Lane lane = Lane::Communication;       // of OnLane
  bool isAsync = false;                  // of OnLane
  DevicePorts ports = DevicePorts::None; // of a collective
  uint32_t id = 0;      // OnLane, Wait: the instruction on the lane; transfers: their number
  uint32_t axes = 0;    // of a collective: index into StepWork::axes
  double seconds = 0;   // of Compute and OnLane, if nothing else is in the way
  double hostShare = 1; // of a lane of the host: the share of the host's memory bandwidth it takes
  std::vector<uint32_t> after = {}; // of OnLane: earlier instructions that it waits for
};

struct SimulatedTask {
  std::vector<SimulatedOperation> steps;
  std::optional<StagePass> pass; // none of a task that is outside the pipeline
  uint32_t stage = 0;            // of `pass`
  KernelSeconds kernels{};       // of one execution
};

/// A run of a task.
struct SimulatedExecution {
  uint32_t task = 0;
  uint32_t microbatch = 0;
};

/// An end of a channel.
struct SimulatedTransfer {
  uint32_t channel = 0;
  bool isSend = false;
};

/// A channel: its ends, and the size and time of a message.
struct SimulatedChannel {
  size_t from = 0, to = 0; // devices
  uint64_t bytes = 0;
  double seconds = 0;
  DevicePorts ports = DevicePorts::None;
  bool carriesOne = true; // a message is on its way once the one before it has arrived
};

/// A device that stands for all with its coordinate on the pipeline axis.
struct SimulatedDevice {
  std::vector<SimulatedTask> tasks;
  std::vector<SimulatedExecution> schedule;
  std::vector<SimulatedTransfer> transfers;
  double overlapSlowdown = 0; // the largest of the devices that it stands for
  /// Its node, and how many of the devices that this one stands for are there.
  int64_t node = 0;
  double devicesInNode = 1;
  double sharedCores = 0; // of a node whose devices share cores; 0: each has its own
};

struct StepWork {
  std::vector<SimulatedDevice> devices;       // by coordinate on the pipeline axis
  std::vector<std::vector<std::string>> axes; // sets of axes that collectives are over
  std::map<uint32_t, SimulatedChannel> channels;
  bool isRendezvous = false; // a send keeps its device until the receive has started
  Timeline names;            // of a timeline, without intervals and transfers

  /// The schedule, the transfers and the names of a plan; the tasks have no steps yet.
  static StepWork ofSchedule(const plan::Plan &plan);
};

/// The seconds of one execution of a task on a device that waits for no other: messages take
/// nothing.
double isolatedSeconds(const SimulatedTask &task, double overlapSlowdown);

} // namespace dtc

#endif // DTC_SIMULATOR_STEPWORK_H
