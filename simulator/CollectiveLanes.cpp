//===- CollectiveLanes.cpp - The collectives of a simulated step ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/CollectiveLanes.h"

#include <utility>

namespace dtc {

bool CollectiveLanes::passCollective(size_t p, const SimulatedOperation &step) {
  Lane &lane = lanes[p];
  if (lane.waitsFor)
    return leave(p);
  uint64_t number = lane.first + lane.operations.size();
  lane.operations.push_back(
      {step, progress.devices[p].execution, step.synchronizes ? lane.arrivals++ : 0});
  if (step.isAsync)
    lane.started[step.id] = number;
  else
    lane.waitsFor = number;
  runNext(p);
  return step.isAsync || leave(p);
}

bool CollectiveLanes::passWait(size_t p, const SimulatedOperation &step) {
  Lane &lane = lanes[p];
  auto it = lane.started.find(step.id);
  if (it == lane.started.end())
    return true; // it was over one device
  lane.waitsFor = it->second;
  return leave(p);
}

bool CollectiveLanes::leave(size_t p) {
  Lane &lane = lanes[p];
  DeviceProgress &device = progress.devices[p];
  uint64_t number = *lane.waitsFor;
  bool isForgotten = number < lane.first;
  if (!isForgotten && !lane.operations[number - lane.first].isDone) {
    if (!device.blockedSince)
      device.blockedSince = progress.now;
    pauseIfIdle(p);
    return false;
  }
  countWaiting(p);
  device.blockedSince.reset();
  lane.waitsFor.reset();
  progress.resume(p);
  return true;
}

void CollectiveLanes::countWaiting(size_t p) {
  Lane &lane = lanes[p];
  DeviceProgress &device = progress.devices[p];
  if (!lane.waitsFor || !device.blockedSince)
    return;
  if (lane.isMoving)
    progress.result.devices[p].exposed[runningOperation(p).step.axes] +=
        progress.now - *device.blockedSince;
  device.blockedSince = progress.now;
}

void CollectiveLanes::pauseIfIdle(size_t p) {
  if (lanes[p].waitsFor && progress.devices[p].blockedSince && !lanes[p].isMoving)
    progress.pause(p);
}

CollectiveLanes::Operation &CollectiveLanes::runningOperation(size_t p) {
  return lanes[p].operations[lanes[p].running - lanes[p].first];
}

void CollectiveLanes::runNext(size_t p) {
  Lane &lane = lanes[p];
  if (lane.isRunning || lane.running >= lane.first + lane.operations.size())
    return;
  Operation &operation = runningOperation(p);
  lane.isRunning = true;
  operation.start = progress.now;
  if (!operation.step.synchronizes) {
    start(p);
    return;
  }
  std::vector<size_t> &arrived = arrivals[operation.arrival];
  arrived.push_back(p);
  if (arrived.size() < lanes.size())
    return;
  for (size_t member : std::exchange(arrived, {}))
    start(member);
}

void CollectiveLanes::start(size_t p) {
  Lane &lane = lanes[p];
  const SimulatedOperation &step = runningOperation(p).step;
  countWaiting(p);
  lane.isMoving = true;
  if (lane.waitsFor)
    progress.resume(p);
  progress.addMover(p, true);
  progress.startFlow(step.seconds, progress.usesOf(p, p, step.ports),
                     {FlowOwner::Collective, p, 0});
}

bool CollectiveLanes::finish(size_t p) {
  Lane &lane = lanes[p];
  Operation &operation = runningOperation(p);
  countWaiting(p);
  lane.isMoving = false;
  operation.isDone = true;
  if (keepIntervals)
    progress.result.collectives[p].push_back({operation.execution, operation.step.id,
                                              operation.step.axes, operation.start, progress.now});
  ++lane.running;
  lane.isRunning = false;
  progress.addMover(p, false);
  while (!lane.operations.empty() && lane.operations.front().isDone) {
    lane.operations.pop_front();
    ++lane.first;
  }
  runNext(p);
  if (lane.waitsFor && *lane.waitsFor < lane.first)
    return true;
  pauseIfIdle(p);
  return false;
}

} // namespace dtc
