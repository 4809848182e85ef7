//===- StepSimulator.cpp - A step of a plan on paper ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/StepSimulator.h"

#include "simulator/FlowNetwork.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

namespace dtc::runtime {

namespace {

constexpr size_t nobody = SIZE_MAX;

/// A collective that a device has come to.
struct Operation {
  SimulatedStep step;
  size_t execution = 0;
  uint64_t meeting = 0; // of one over the pipeline axis: its number
  double start = 0;
  bool isDone = false;
};

struct Message {
  std::optional<double> sent, posted;
  std::optional<double> start; // on its way
  bool isDone = false;
  size_t waiters[2] = {nobody, nobody};
};

struct Channel {
  const SimulatedChannel *shape = nullptr;
  std::deque<Message> messages;
  size_t numSent = 0, numPosted = 0, numArrived = 0;
  std::vector<uint32_t> microbatches; // by message
};

struct Ports {
  FlowNetwork::Resource linkOut, linkIn, networkOut, networkIn;
};

struct Device {
  size_t execution = 0, step = 0;
  bool isInTask = false;
  std::optional<double> blockedSince;
  // The stream of collectives: those that have ended are forgotten from the front.
  std::deque<Operation> stream;
  uint64_t firstOperation = 0;          // number of stream.front()
  uint64_t running = 0;                 // number of the one that is to run next, or runs
  bool isRunning = false;               // or waits for the others to come to it
  bool isMoving = false;                // runs
  std::map<uint32_t, uint64_t> started; // async ones of this execution, by instruction
  uint64_t meetings = 0;
  std::optional<uint64_t> waitsFor;                         // an operation
  std::map<std::pair<uint32_t, uint32_t>, size_t> underWay; // transfer, microbatch: the message
  size_t movers = 0;                                        // collectives and messages at work
  std::optional<FlowNetwork::Flow> computing;
  double computingSince = 0;
  Ports ports{};
  std::optional<FlowNetwork::Resource> cores;
};

/// Whose end a flow's end is.
struct Owner {
  enum Kind { Computing, Collective, Transfer } kind = Computing;
  size_t device = 0;    // or the program that sends
  uint32_t channel = 0; // of Transfer
};

struct Event {
  double time;
  uint64_t number; // of those at one time, the first to be scheduled comes first
  FlowNetwork::End end;

  bool operator>(const Event &other) const {
    return std::tie(time, number) > std::tie(other.time, other.number);
  }
};

class Simulator {
public:
  Simulator(const PlanSteps &steps, bool keepCollectives)
      : steps(steps), plan(*steps.plan), keepCollectives(keepCollectives) {}

  Expected<StepSimulation> run() {
    prepare();
    for (size_t p = 0; p < devices.size(); ++p)
      advance(p);
    schedule();
    while (!events.empty()) {
      Event event = events.top();
      events.pop();
      // Ends that have changed since are in the queue still, and are no time of the step.
      if (!network.finish(event.end, ends))
        continue;
      now = event.time;
      finished(owners[event.end.flow]);
      schedule();
    }
    if (MaybeError error = checkEnd())
      return *error;
    summarize();
    return std::move(result);
  }

private:
  void prepare() {
    devices.resize(steps.devices.size());
    result.devices.resize(devices.size());
    result.collectives.resize(devices.size());
    std::map<int64_t, FlowNetwork::Resource> cores;
    for (size_t p = 0; p < devices.size(); ++p) {
      Device &device = devices[p];
      device.ports = {network.addResource(1), network.addResource(1), network.addResource(1),
                      network.addResource(1)};
      const SimulatedDevice &shape = steps.devices[p];
      if (shape.sharedNode >= 0) {
        auto [it, fresh] = cores.try_emplace(shape.sharedNode);
        if (fresh)
          it->second = network.addResource(shape.sharedCores);
        device.cores = it->second;
      }
      result.devices[p].exposed.resize(steps.axes.size());
    }
    for (const auto &[number, shape] : steps.channels)
      channels[number].shape = &shape;
    Timeline &timeline = result.timeline;
    for (const plan::Axis &axis : plan.axes()) {
      if (axis.temporal())
        timeline.microbatches = axis.size();
      if (axis.pipeline())
        timeline.axis = axis.name();
    }
    timeline.model = plan.model();
    timeline.schedule = plan.pipeline().schedule();
    timeline.stages = plan.pipeline().stages();
    timeline.programs.resize(devices.size());
    for (const plan::Program &program : plan.programs()) {
      timeline.taskNames.emplace_back();
      for (const plan::Task &task : program.tasks())
        timeline.taskNames.back().push_back(task.name());
    }
  }

  const plan::Program &program(size_t p) const { return plan.programs(static_cast<int>(p)); }
  const plan::ScheduleEntry &entryOf(size_t p) const {
    return program(p).schedule(static_cast<int>(devices[p].execution));
  }

  /// Puts the ends that have changed into the queue.
  void schedule() {
    for (const FlowNetwork::End &end : ends)
      events.push({end.time, numEvents++, end});
    ends.clear();
  }

  FlowNetwork::Flow startFlow(double seconds, const FlowNetwork::Uses &uses, double factor,
                              Owner owner) {
    FlowNetwork::Flow flow = network.start(now, seconds, uses, factor, ends);
    if (owners.size() <= flow)
      owners.resize(flow + 1);
    owners[flow] = owner;
    return flow;
  }

  void finished(const Owner &owner) {
    switch (owner.kind) {
    case Owner::Computing: {
      Device &device = devices[owner.device];
      device.computing.reset();
      result.devices[owner.device].computing += now - device.computingSince;
      ++device.step;
      advance(owner.device);
      break;
    }
    case Owner::Collective:
      finishOperation(owner.device);
      break;
    case Owner::Transfer:
      finishMessage(owner.channel);
      break;
    }
  }

  /// Goes on until the device computes, waits or has ended.
  void advance(size_t p) {
    Device &device = devices[p];
    auto size = static_cast<size_t>(program(p).schedule_size());
    while (device.execution < size) {
      const plan::ScheduleEntry &entry = entryOf(p);
      const std::vector<SimulatedStep> &tasks = steps.devices[p].tasks[entry.task()].steps;
      if (!device.isInTask) {
        device.isInTask = true;
        beginInterval(p);
      }
      for (; device.step < tasks.size(); ++device.step)
        if (!pass(p, tasks[device.step]))
          return;
      endInterval(p);
      ++device.execution;
      device.step = 0;
      device.isInTask = false;
      device.started.clear();
    }
  }

  void beginInterval(size_t p) {
    const plan::ScheduleEntry &entry = entryOf(p);
    const plan::Task &task = program(p).tasks(static_cast<int>(entry.task()));
    result.timeline.programs[p].push_back({devices[p].execution, entry.task(), entry.microbatch(),
                                           task.kind(), task.stage(), now, now});
  }
  void endInterval(size_t p) { result.timeline.programs[p].back().end = now; }

  /// Whether the device gets past a step now; if not, whoever ends what it waits for calls
  /// advance().
  bool pass(size_t p, const SimulatedStep &step) {
    switch (step.kind) {
    case SimulatedStep::Kind::Compute:
      compute(p, step.seconds);
      return false;
    case SimulatedStep::Kind::Collective: {
      Device &device = devices[p];
      if (device.waitsFor)
        return leaveOperation(p);
      uint64_t number = device.firstOperation + device.stream.size();
      device.stream.push_back({step, device.execution, step.meets ? device.meetings++ : 0});
      if (step.isAsync)
        device.started[step.id] = number;
      else
        device.waitsFor = number;
      runNext(p);
      return step.isAsync || leaveOperation(p);
    }
    case SimulatedStep::Kind::Wait: {
      Device &device = devices[p];
      auto it = device.started.find(step.id);
      if (it == device.started.end())
        return true; // it was over one device
      device.waitsFor = it->second;
      return leaveOperation(p);
    }
    case SimulatedStep::Kind::StartTransfer:
      startTransfer(p, step.id);
      return true;
    case SimulatedStep::Kind::FinishTransfer:
      return finishTransfer(p, step.id);
    }
    return true;
  }

  void compute(size_t p, double seconds) {
    Device &device = devices[p];
    FlowNetwork::Uses uses;
    if (device.cores)
      uses.add(*device.cores, steps.devices[p].devicesInNode);
    device.computingSince = now;
    device.computing = startFlow(seconds, uses, factorOf(p), {Owner::Computing, p, 0});
  }

  double factorOf(size_t p) const {
    return devices[p].movers > 0 ? 1 - steps.devices[p].overlapSlowdown : 1;
  }
  void addMover(size_t p, bool isMore) {
    devices[p].movers += isMore ? 1 : -1;
    if (devices[p].computing)
      network.setFactor(now, *devices[p].computing, factorOf(p), ends);
  }

  //===--- Collectives ------------------------------------------------------===//

  /// Whether the operation that the device waits for is over.
  bool leaveOperation(size_t p) {
    Device &device = devices[p];
    uint64_t number = *device.waitsFor;
    bool isForgotten = number < device.firstOperation;
    if (!isForgotten && !device.stream[number - device.firstOperation].isDone) {
      if (!device.blockedSince)
        device.blockedSince = now;
      return false;
    }
    countWaiting(p);
    device.blockedSince.reset();
    device.waitsFor.reset();
    return true;
  }

  /// Counts how long a device has waited for its stream up to now, before that does something else:
  /// the operation at work is what it waits for, be it one before that of the wait. Waiting for
  /// others to come to an operation is idle.
  void countWaiting(size_t p) {
    Device &device = devices[p];
    if (!device.waitsFor || !device.blockedSince)
      return;
    if (device.isMoving)
      result.devices[p].exposed[runningOperation(p).step.axes] += now - *device.blockedSince;
    device.blockedSince = now;
  }

  Operation &runningOperation(size_t p) {
    return devices[p].stream[devices[p].running - devices[p].firstOperation];
  }

  /// Starts the next operation of a device's stream, if there is one and all members have come.
  void runNext(size_t p) {
    Device &device = devices[p];
    if (device.isRunning || device.running >= device.firstOperation + device.stream.size())
      return;
    Operation &operation = runningOperation(p);
    device.isRunning = true;
    operation.start = now;
    if (!operation.step.meets) {
      startOperation(p);
      return;
    }
    std::vector<size_t> &arrived = meetings[operation.meeting];
    arrived.push_back(p);
    if (arrived.size() < devices.size())
      return;
    for (size_t member : std::exchange(arrived, {}))
      startOperation(member);
  }

  void startOperation(size_t p) {
    Device &device = devices[p];
    const SimulatedStep &step = runningOperation(p).step;
    countWaiting(p);
    device.isMoving = true;
    FlowNetwork::Uses uses;
    if (device.cores) {
      uses.add(*device.cores, steps.devices[p].devicesInNode);
    } else {
      // Between nodes the cards are what is scarce.
      uses.add(step.usesNetwork ? device.ports.networkOut : device.ports.linkOut);
      uses.add(step.usesNetwork ? device.ports.networkIn : device.ports.linkIn);
    }
    addMover(p, true);
    startFlow(step.seconds, uses, 1, {Owner::Collective, p, 0});
  }

  void finishOperation(size_t p) {
    Device &device = devices[p];
    Operation &operation = runningOperation(p);
    countWaiting(p);
    device.isMoving = false;
    operation.isDone = true;
    if (keepCollectives)
      result.collectives[p].push_back(
          {operation.execution, operation.step.id, operation.step.axes, operation.start, now});
    ++device.running;
    device.isRunning = false;
    addMover(p, false);
    while (!device.stream.empty() && device.stream.front().isDone) {
      device.stream.pop_front();
      ++device.firstOperation;
    }
    runNext(p);
    if (device.waitsFor && *device.waitsFor < device.firstOperation)
      advance(p);
  }

  //===--- Transfers --------------------------------------------------------===//

  void startTransfer(size_t p, uint32_t transfer) {
    const plan::Transfer &end = program(p).transfers(static_cast<int>(transfer));
    Channel &channel = channels.at(end.channel());
    bool isSend = end.kind() == plan::Transfer::SEND;
    size_t number = isSend ? channel.numSent++ : channel.numPosted++;
    if (number >= channel.messages.size())
      channel.messages.emplace_back();
    (isSend ? channel.messages[number].sent : channel.messages[number].posted) = now;
    devices[p].underWay[{transfer, entryOf(p).microbatch()}] = number;
    if (isSend)
      channel.microbatches.push_back(entryOf(p).microbatch());
    deliver(end.channel());
  }

  /// Puts the next message of a channel on its way, if both ends have started it.
  void deliver(uint32_t number) {
    Channel &channel = channels.at(number);
    if (channel.numArrived >= channel.messages.size())
      return;
    Message &message = channel.messages[channel.numArrived];
    if (!message.sent || !message.posted || message.start)
      return;
    message.start = now;
    const SimulatedChannel &shape = *channel.shape;
    Device &from = devices[shape.from], &to = devices[shape.to];
    FlowNetwork::Uses uses;
    if (from.cores) {
      uses.add(*from.cores, steps.devices[shape.from].devicesInNode);
    } else {
      uses.add(shape.usesNetwork ? from.ports.networkOut : from.ports.linkOut);
      uses.add(shape.usesNetwork ? to.ports.networkIn : to.ports.linkIn);
    }
    addMover(shape.from, true);
    addMover(shape.to, true);
    startFlow(shape.seconds, uses, 1, {Owner::Transfer, shape.from, number});
  }

  void finishMessage(uint32_t number) {
    Channel &channel = channels.at(number);
    const SimulatedChannel &shape = *channel.shape;
    addMover(shape.from, false);
    addMover(shape.to, false);
    Message &message = channel.messages[channel.numArrived];
    message.isDone = true;
    result.timeline.transfers.push_back({number, channel.microbatches[channel.numArrived],
                                         shape.from, shape.to, shape.bytes, *message.start, now});
    ++channel.numArrived;
    deliver(number);
    for (size_t waiter : message.waiters)
      if (waiter != nobody)
        advance(waiter);
  }

  bool finishTransfer(size_t p, uint32_t transfer) {
    Device &device = devices[p];
    const plan::Transfer &end = program(p).transfers(static_cast<int>(transfer));
    auto it = device.underWay.find({transfer, entryOf(p).microbatch()});
    if (it == device.underWay.end())
      return true; // validatePlan() refuses such plans
    Message &message = channels.at(end.channel()).messages[it->second];
    if (!message.isDone) {
      device.blockedSince = now;
      endInterval(p);
      message.waiters[end.kind() == plan::Transfer::SEND ? 0 : 1] = p;
      return false;
    }
    if (device.blockedSince) {
      double moving = now - std::max(*device.blockedSince, *message.start);
      result.devices[p].exposedTransfers += std::max(0.0, moving);
      device.blockedSince.reset();
      // What waited in its middle has an interval for each part that it worked.
      if (result.timeline.programs[p].back().seconds() == 0)
        result.timeline.programs[p].pop_back();
      beginInterval(p);
    }
    device.underWay.erase(it);
    return true;
  }

  //===--- The end ----------------------------------------------------------===//

  MaybeError checkEnd() const {
    for (size_t p = 0; p < devices.size(); ++p)
      if (devices[p].execution < static_cast<size_t>(program(p).schedule_size())) {
        const plan::Task &task = program(p).tasks(static_cast<int>(entryOf(p).task()));
        return Error{
            fmt::format("pipeline coordinate {} waits for ever in task \"{}\" for "
                        "microbatch {}: what it waits for is never sent, or not all come to it",
                        p, task.name(), entryOf(p).microbatch())};
      }
    return std::nullopt;
  }

  void summarize() {
    // Of what was started and nobody waited for, too.
    result.seconds = now;
    for (DeviceTimes &times : result.devices) {
      double busy = times.computing + times.exposedTransfers;
      for (double seconds : times.exposed)
        busy += seconds;
      times.idle = std::max(0.0, result.seconds - busy);
    }
    std::stable_sort(
        result.timeline.transfers.begin(), result.timeline.transfers.end(),
        [](const TransferInterval &a, const TransferInterval &b) { return a.channel < b.channel; });
  }

  const PlanSteps &steps;
  const plan::Plan &plan;
  bool keepCollectives;
  StepSimulation result;
  FlowNetwork network;
  std::vector<Owner> owners; // by flow
  std::vector<FlowNetwork::End> ends;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  uint64_t numEvents = 0;
  double now = 0;
  std::vector<Device> devices;
  std::map<uint32_t, Channel> channels;
  std::map<uint64_t, std::vector<size_t>> meetings; // who has come
};

} // namespace

Expected<StepSimulation> simulateStep(const PlanSteps &steps, bool keepCollectives) {
  return Simulator(steps, keepCollectives).run();
}

} // namespace dtc::runtime
