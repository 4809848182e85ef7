//===- CollectiveStreams.cpp - The collectives of a simulated step --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/CollectiveStreams.h"

#include <utility>

namespace dtc {

bool CollectiveStreams::passCollective(size_t p, const SimulatedOperation &step) {
  Stream &stream = streams[p];
  if (stream.waitsFor)
    return leave(p);
  uint64_t number = stream.first + stream.operations.size();
  stream.operations.push_back(
      {step, progress.devices[p].execution, step.synchronizes ? stream.arrivals++ : 0});
  if (step.isAsync)
    stream.started[step.id] = number;
  else
    stream.waitsFor = number;
  runNext(p);
  return step.isAsync || leave(p);
}

bool CollectiveStreams::passWait(size_t p, const SimulatedOperation &step) {
  Stream &stream = streams[p];
  auto it = stream.started.find(step.id);
  if (it == stream.started.end())
    return true; // it was over one device
  stream.waitsFor = it->second;
  return leave(p);
}

bool CollectiveStreams::leave(size_t p) {
  Stream &stream = streams[p];
  DeviceProgress &device = progress.devices[p];
  uint64_t number = *stream.waitsFor;
  bool isForgotten = number < stream.first;
  if (!isForgotten && !stream.operations[number - stream.first].isDone) {
    if (!device.blockedSince)
      device.blockedSince = progress.now;
    pauseIfIdle(p);
    return false;
  }
  countWaiting(p);
  device.blockedSince.reset();
  stream.waitsFor.reset();
  progress.resume(p);
  return true;
}

void CollectiveStreams::countWaiting(size_t p) {
  Stream &stream = streams[p];
  DeviceProgress &device = progress.devices[p];
  if (!stream.waitsFor || !device.blockedSince)
    return;
  if (stream.isMoving)
    progress.result.devices[p].exposed[runningOperation(p).step.axes] +=
        progress.now - *device.blockedSince;
  device.blockedSince = progress.now;
}

void CollectiveStreams::pauseIfIdle(size_t p) {
  if (streams[p].waitsFor && progress.devices[p].blockedSince && !streams[p].isMoving)
    progress.pause(p);
}

CollectiveStreams::Operation &CollectiveStreams::runningOperation(size_t p) {
  return streams[p].operations[streams[p].running - streams[p].first];
}

void CollectiveStreams::runNext(size_t p) {
  Stream &stream = streams[p];
  if (stream.isRunning || stream.running >= stream.first + stream.operations.size())
    return;
  Operation &operation = runningOperation(p);
  stream.isRunning = true;
  operation.start = progress.now;
  if (!operation.step.synchronizes) {
    start(p);
    return;
  }
  std::vector<size_t> &arrived = arrivals[operation.arrival];
  arrived.push_back(p);
  if (arrived.size() < streams.size())
    return;
  for (size_t member : std::exchange(arrived, {}))
    start(member);
}

void CollectiveStreams::start(size_t p) {
  Stream &stream = streams[p];
  const SimulatedOperation &step = runningOperation(p).step;
  countWaiting(p);
  stream.isMoving = true;
  if (stream.waitsFor)
    progress.resume(p);
  progress.addMover(p, true);
  progress.startFlow(step.seconds, progress.usesOf(p, p, step.ports),
                     {FlowOwner::Collective, p, 0});
}

bool CollectiveStreams::finish(size_t p) {
  Stream &stream = streams[p];
  Operation &operation = runningOperation(p);
  countWaiting(p);
  stream.isMoving = false;
  operation.isDone = true;
  if (keepIntervals)
    progress.result.collectives[p].push_back({operation.execution, operation.step.id,
                                              operation.step.axes, operation.start, progress.now});
  ++stream.running;
  stream.isRunning = false;
  progress.addMover(p, false);
  while (!stream.operations.empty() && stream.operations.front().isDone) {
    stream.operations.pop_front();
    ++stream.first;
  }
  runNext(p);
  if (stream.waitsFor && *stream.waitsFor < stream.first)
    return true;
  pauseIfIdle(p);
  return false;
}

} // namespace dtc
