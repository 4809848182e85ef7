//===- StepProgress.h - Progress of a simulated step ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The state that the parts of StepSimulator.cpp share: the time, the flows at work with their ends
// in a queue, the place of each device in its schedule, and the intervals that it has worked.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_STEPPROGRESS_H
#define DTC_SIMULATOR_STEPPROGRESS_H

#include "simulator/SharedResources.h"
#include "simulator/StepSimulator.h"

#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

namespace dtc {

/// The owner of a flow.
struct FlowOwner {
  enum Kind { Computing, Operation, Transfer } kind = Computing;
  size_t device = 0;               // or the program that sends
  uint32_t channel = 0;            // of Transfer
  Lane lane = Lane::Communication; // of Operation
};

/// The place of a device in its schedule, and its present work.
struct DeviceProgress {
  size_t execution = 0, step = 0;
  bool isInTask = false;
  bool isPaused = false;              // no interval is open
  std::optional<double> blockedSince; // waits for a lane or for a message
  size_t movers = 0;                  // collectives and messages at work
  std::optional<SharedResources::Flow> computing;
  double computingSince = 0;
  struct Ports {
    SharedResources::Resource linkOut, linkIn, networkOut, networkIn;
  } ports{};
  std::optional<SharedResources::Resource> cores; // of its node, where the devices share them
  SharedResources::Resource host = 0;             // the memory bandwidth of its node's host
};

class StepProgress {
public:
  explicit StepProgress(const StepWork &work);

  const SimulatedExecution &executionOf(size_t p) const {
    return work.devices[p].schedule[devices[p].execution];
  }
  bool hasEnded(size_t p) const { return devices[p].execution == work.devices[p].schedule.size(); }
  const std::vector<SimulatedOperation> &stepsOf(size_t p) const {
    return work.devices[p].tasks[executionOf(p).task].steps;
  }
  const std::string &taskName(size_t p) const {
    return work.names.taskNames[p][executionOf(p).task];
  }

  /// Ends the simulation. Always false: the device does not get past its step.
  bool fail(size_t p, const std::string &text);

  /// Goes to the next end of a flow. Returns its owner, or none where no flow is at work.
  std::optional<FlowOwner> goToNextEnd();

  void startFlow(double seconds, const SharedResources::Uses &uses, const FlowOwner &owner);
  /// The resources that bytes from one device to another use.
  SharedResources::Uses usesOf(size_t from, size_t to, DevicePorts ports) const;
  /// The resources that work of a device's host uses, which takes this share of the bandwidth of
  /// the host's memory.
  SharedResources::Uses usesOfHost(size_t p, double share) const;
  /// A collective or a message of the device begins to move, or has ended.
  void addMover(size_t p, bool isMore);

  void startComputing(size_t p, double seconds);
  void finishComputing(size_t p);

  void beginInterval(size_t p);
  void pause(size_t p);
  /// An execution that waited in its middle has an interval for each part that it worked.
  void resume(size_t p);
  void endInterval(size_t p);

  const StepWork &work;
  double now = 0;
  MaybeError failure;
  std::vector<DeviceProgress> devices;
  StepSimulation result;

private:
  struct Event {
    double time;
    uint64_t number; // of those at one time, the first to be scheduled comes first
    SharedResources::End end;

    bool operator>(const Event &other) const {
      return std::tie(time, number) > std::tie(other.time, other.number);
    }
  };

  SharedResources::Flow start(double seconds, const SharedResources::Uses &uses, double factor,
                              const FlowOwner &owner);
  /// The speed factor of a device's computing while collectives and messages move.
  double factorOf(size_t p) const {
    return devices[p].movers > 0 ? 1 - work.devices[p].overlapSlowdown : 1;
  }

  SharedResources resources;
  std::vector<FlowOwner> owners;          // by flow
  std::vector<SharedResources::End> ends; // that have changed and are not in the queue yet
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  uint64_t numEvents = 0;
};

} // namespace dtc

#endif // DTC_SIMULATOR_STEPPROGRESS_H
