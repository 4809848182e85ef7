//===- DeviceLanes.cpp - The lanes of the devices in a simulated step -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/DeviceLanes.h"

#include <algorithm>
#include <utility>

namespace dtc {

bool DeviceLanes::passOperation(size_t p, const SimulatedOperation &step) {
  DeviceState &device = devices[p];
  if (device.waitsFor)
    return leave(p);
  LaneState &lane = device.lane(step.lane);
  Place place{step.lane, lane.first + lane.operations.size()};
  Operation operation{step, {}, progress.devices[p].execution};
  for (uint32_t id : step.after)
    if (auto it = device.started.find(id); it != device.started.end())
      operation.after.push_back(it->second);
  lane.operations.push_back(std::move(operation));
  if (step.isAsync)
    device.started[step.id] = place;
  else
    device.waitsFor = place;
  runNext(p, step.lane);
  return step.isAsync || leave(p);
}

bool DeviceLanes::passWait(size_t p, const SimulatedOperation &step) {
  DeviceState &device = devices[p];
  auto it = device.started.find(step.id);
  if (it == device.started.end())
    return true; // it was over one device
  device.waitsFor = it->second;
  return leave(p);
}

bool DeviceLanes::leave(size_t p) {
  DeviceProgress &device = progress.devices[p];
  if (!devices[p].isDone(*devices[p].waitsFor)) {
    if (!device.blockedSince)
      device.blockedSince = progress.now;
    return false;
  }
  countWaiting(p);
  device.blockedSince.reset();
  devices[p].waitsFor.reset();
  return true;
}

const SimulatedOperation *DeviceLanes::atWork(size_t p) {
  DeviceState &device = devices[p];
  if (!device.waitsFor)
    return nullptr;
  Lane lane = device.waitsFor->lane;
  // The operations before another were started before it, so that this ends.
  while (true) {
    LaneState &state = device.lane(lane);
    if (state.operations.empty())
      return nullptr;
    Operation &first = state.operations.front();
    if (state.isRunning)
      return &first.step;
    auto it = std::find_if(first.after.begin(), first.after.end(),
                           [&](const Place &place) { return !device.isDone(place); });
    if (it == first.after.end())
      return nullptr;
    lane = it->lane;
  }
}

void DeviceLanes::countWaiting(size_t p) {
  DeviceProgress &device = progress.devices[p];
  if (!devices[p].waitsFor || !device.blockedSince)
    return;
  StepBreakdown &times = progress.result.devices[p];
  if (const SimulatedOperation *step = atWork(p))
    (step->lane == Lane::Communication ? times.exposed[step->axes] : times.exposedHost) +=
        progress.now - *device.blockedSince;
  device.blockedSince = progress.now;
}

void DeviceLanes::runNext(size_t p) {
  for (size_t lane = 0; lane < kNumLanes; ++lane)
    runNext(p, static_cast<Lane>(lane));
}

void DeviceLanes::runNext(size_t p, Lane number) {
  DeviceState &device = devices[p];
  LaneState &lane = device.lane(number);
  if (lane.isRunning || lane.operations.empty())
    return;
  Operation &operation = lane.operations.front();
  if (!std::all_of(operation.after.begin(), operation.after.end(),
                   [&](const Place &place) { return device.isDone(place); }))
    return;
  countWaiting(p);
  lane.isRunning = true;
  operation.start = progress.now;
  const SimulatedOperation &step = operation.step;
  SharedResources::Uses uses;
  if (number == Lane::Communication) {
    progress.addMover(p, true);
    uses = progress.usesOf(p, p, step.ports);
  } else {
    uses = progress.usesOfHost(p, step.hostShare);
  }
  progress.startFlow(step.seconds, uses, {FlowOwner::Operation, p, 0, number});
}

bool DeviceLanes::finish(size_t p, Lane number) {
  LaneState &lane = devices[p].lane(number);
  const Operation &operation = lane.operations.front();
  countWaiting(p);
  lane.isRunning = false;
  if (number == Lane::Communication) {
    if (keepIntervals)
      progress.result.collectives[p].push_back({operation.execution, operation.step.id,
                                                operation.step.axes, operation.start,
                                                progress.now});
    progress.addMover(p, false);
  }
  lane.operations.pop_front();
  ++lane.first;
  runNext(p);
  return devices[p].waitsFor && devices[p].isDone(*devices[p].waitsFor);
}

} // namespace dtc
