//===- StepProgress.cpp - Progress of a simulated step --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/StepProgress.h"

#include <fmt/format.h>
#include <map>
#include <utility>

namespace dtc {

StepProgress::StepProgress(const StepWork &work) : work(work) {
  devices.resize(work.devices.size());
  result.devices.resize(devices.size());
  result.collectives.resize(devices.size());
  result.timeline = work.names;
  result.timeline.programs.resize(devices.size());
  std::map<int64_t, SharedResources::Resource> cores, hosts; // by node
  for (size_t p = 0; p < devices.size(); ++p) {
    DeviceProgress &device = devices[p];
    device.ports = {resources.addResource(1), resources.addResource(1), resources.addResource(1),
                    resources.addResource(1)};
    const SimulatedDevice &shape = work.devices[p];
    auto ofNode = [&](std::map<int64_t, SharedResources::Resource> &byNode, double capacity) {
      auto [it, fresh] = byNode.try_emplace(shape.node);
      if (fresh)
        it->second = resources.addResource(capacity);
      return it->second;
    };
    if (shape.sharedCores > 0)
      device.cores = ofNode(cores, shape.sharedCores);
    device.host = ofNode(hosts, 1);
    result.devices[p].exposed.resize(work.axes.size());
  }
}

bool StepProgress::fail(size_t p, const std::string &text) {
  failure = Error{fmt::format("pipeline coordinate {}, task \"{}\": {}", p, taskName(p), text)};
  return false;
}

//===----------------------------------------------------------------------===//
// Flows
//===----------------------------------------------------------------------===//

std::optional<FlowOwner> StepProgress::goToNextEnd() {
  for (const SharedResources::End &end : std::exchange(ends, {}))
    events.push({end.time, numEvents++, end});
  while (!events.empty()) {
    Event event = events.top();
    events.pop();
    // Ends that have changed since are in the queue still, and are no time of the step.
    if (!resources.finish(event.end, ends))
      continue;
    now = event.time;
    return owners[event.end.flow];
  }
  return std::nullopt;
}

SharedResources::Flow StepProgress::start(double seconds, const SharedResources::Uses &uses,
                                          double factor, const FlowOwner &owner) {
  SharedResources::Flow flow = resources.start(now, seconds, uses, factor, ends);
  if (owners.size() <= flow)
    owners.resize(flow + 1);
  owners[flow] = owner;
  return flow;
}

void StepProgress::startFlow(double seconds, const SharedResources::Uses &uses,
                             const FlowOwner &owner) {
  start(seconds, uses, 1, owner);
}

SharedResources::Uses StepProgress::usesOf(size_t from, size_t to, DevicePorts ports) const {
  SharedResources::Uses uses;
  if (devices[from].cores) {
    uses.add(*devices[from].cores, work.devices[from].devicesInNode);
  } else if (ports == DevicePorts::Network) {
    uses.add(devices[from].ports.networkOut);
    uses.add(devices[to].ports.networkIn);
  } else if (ports == DevicePorts::Link) {
    uses.add(devices[from].ports.linkOut);
    uses.add(devices[to].ports.linkIn);
  }
  return uses;
}

SharedResources::Uses StepProgress::usesOfHost(size_t p, double share) const {
  SharedResources::Uses uses;
  if (devices[p].cores)
    uses.add(*devices[p].cores, work.devices[p].devicesInNode);
  else
    uses.add(devices[p].host, share * work.devices[p].devicesInNode);
  return uses;
}

void StepProgress::addMover(size_t p, bool isMore) {
  devices[p].movers += isMore ? 1 : -1;
  if (devices[p].computing)
    resources.setFactor(now, *devices[p].computing, factorOf(p), ends);
}

void StepProgress::startComputing(size_t p, double seconds) {
  DeviceProgress &device = devices[p];
  SharedResources::Uses uses;
  if (device.cores)
    uses.add(*device.cores, work.devices[p].devicesInNode);
  device.computingSince = now;
  device.computing = start(seconds, uses, factorOf(p), {FlowOwner::Computing, p});
}

void StepProgress::finishComputing(size_t p) {
  devices[p].computing.reset();
  result.devices[p].computing += now - devices[p].computingSince;
}

//===----------------------------------------------------------------------===//
// Intervals
//===----------------------------------------------------------------------===//

void StepProgress::beginInterval(size_t p) {
  const SimulatedExecution &execution = executionOf(p);
  const SimulatedTask &task = work.devices[p].tasks[execution.task];
  result.timeline.programs[p].push_back({devices[p].execution, execution.task, execution.microbatch,
                                         task.pass, task.stage, now, now});
}

void StepProgress::pause(size_t p) {
  if (!std::exchange(devices[p].isPaused, true))
    result.timeline.programs[p].back().end = now;
}

void StepProgress::resume(size_t p) {
  if (!std::exchange(devices[p].isPaused, false))
    return;
  TaskInterval &last = result.timeline.programs[p].back();
  if (last.seconds() == 0)
    last.start = now;
  else if (last.end != now)
    beginInterval(p);
}

void StepProgress::endInterval(size_t p) {
  std::vector<TaskInterval> &intervals = result.timeline.programs[p];
  intervals.back().end = now;
  size_t count = intervals.size();
  if (count > 1 && intervals.back().seconds() == 0 &&
      intervals[count - 2].execution == intervals.back().execution)
    intervals.pop_back();
}

} // namespace dtc
