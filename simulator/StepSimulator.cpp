//===- StepSimulator.cpp - The simulation of a step ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/StepSimulator.h"

#include "simulator/FlowNetwork.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>
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
  std::optional<uint32_t> sent, posted; // the microbatch of an end that has started
  double start = 0;                     // on its way
  bool isDone = false;
  size_t waiters[2] = {nobody, nobody}; // the sender and the receiver
};

struct Channel {
  const SimulatedChannel *shape = nullptr;
  std::vector<Message> messages;
  size_t numSent = 0, numPosted = 0, numStarted = 0, numArrived = 0;
};

struct Ports {
  FlowNetwork::Resource linkOut, linkIn, networkOut, networkIn;
};

struct Device {
  size_t execution = 0, step = 0;
  bool isInTask = false;
  bool isPaused = false;  // no interval is open
  bool isSending = false; // waits for the receive of what it sends
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
  Simulator(const StepWork &work, bool keepCollectives)
      : work(work), keepCollectives(keepCollectives) {}

  Expected<StepSimulation> run() {
    prepare();
    for (size_t p = 0; p < devices.size(); ++p)
      advance(p);
    schedule();
    while (!events.empty() && !failure) {
      Event event = events.top();
      events.pop();
      // Ends that have changed since are in the queue still, and are no time of the step.
      if (!network.finish(event.end, ends))
        continue;
      now = event.time;
      finished(owners[event.end.flow]);
      schedule();
    }
    if (MaybeError error = failure ? failure : checkEnd())
      return *error;
    summarize();
    return std::move(result);
  }

private:
  void prepare() {
    devices.resize(work.devices.size());
    result.devices.resize(devices.size());
    result.collectives.resize(devices.size());
    result.timeline = work.names;
    result.timeline.programs.resize(devices.size());
    std::map<int64_t, FlowNetwork::Resource> cores;
    for (size_t p = 0; p < devices.size(); ++p) {
      Device &device = devices[p];
      device.ports = {network.addResource(1), network.addResource(1), network.addResource(1),
                      network.addResource(1)};
      const SimulatedDevice &shape = work.devices[p];
      if (shape.sharedNode >= 0) {
        auto [it, fresh] = cores.try_emplace(shape.sharedNode);
        if (fresh)
          it->second = network.addResource(shape.sharedCores);
        device.cores = it->second;
      }
      result.devices[p].exposed.resize(work.axes.size());
    }
    for (const auto &[number, shape] : work.channels)
      channels[number].shape = &shape;
  }

  const SimulatedExecution &executionOf(size_t p) const {
    return work.devices[p].schedule[devices[p].execution];
  }
  bool hasEnded(size_t p) const { return devices[p].execution == work.devices[p].schedule.size(); }
  const std::vector<SimulatedStep> &stepsOf(size_t p) const {
    return work.devices[p].tasks[executionOf(p).task].steps;
  }

  /// Ends the simulation. Always false: the device does not get past its step.
  bool fail(size_t p, const std::string &text) {
    failure = Error{fmt::format("pipeline coordinate {}, task \"{}\": {}", p, taskName(p), text)};
    return false;
  }
  const std::string &taskName(size_t p) const {
    return work.names.taskNames[p][executionOf(p).task];
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
    while (!hasEnded(p) && !failure) {
      const std::vector<SimulatedStep> &steps = stepsOf(p);
      if (!device.isInTask) {
        device.isInTask = true;
        addInterval(p);
      }
      for (; device.step < steps.size(); ++device.step)
        if (!pass(p, steps[device.step]))
          return;
      endInterval(p);
      ++device.execution;
      device.step = 0;
      device.isInTask = false;
      device.started.clear();
    }
  }

  //===--- Intervals --------------------------------------------------------===//

  void addInterval(size_t p) {
    const SimulatedExecution &execution = executionOf(p);
    const SimulatedTask &task = work.devices[p].tasks[execution.task];
    result.timeline.programs[p].push_back({devices[p].execution, execution.task,
                                           execution.microbatch, task.kind, task.stage, now, now});
  }
  void pause(size_t p) {
    if (!std::exchange(devices[p].isPaused, true))
      result.timeline.programs[p].back().end = now;
  }
  /// What waited in its middle has an interval for each part that it worked.
  void resume(size_t p) {
    if (!std::exchange(devices[p].isPaused, false))
      return;
    TaskInterval &last = result.timeline.programs[p].back();
    if (last.seconds() == 0)
      last.start = now;
    else if (last.end != now)
      addInterval(p);
  }
  void endInterval(size_t p) {
    std::vector<TaskInterval> &intervals = result.timeline.programs[p];
    intervals.back().end = now;
    size_t count = intervals.size();
    if (count > 1 && intervals.back().seconds() == 0 &&
        intervals[count - 2].execution == intervals.back().execution)
      intervals.pop_back();
  }

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
      return startTransfer(p, step.id);
    case SimulatedStep::Kind::FinishTransfer:
      return finishTransfer(p, step.id);
    }
    return true;
  }

  void compute(size_t p, double seconds) {
    Device &device = devices[p];
    FlowNetwork::Uses uses;
    if (device.cores)
      uses.add(*device.cores, work.devices[p].devicesInNode);
    device.computingSince = now;
    device.computing = startFlow(seconds, uses, factorOf(p), {Owner::Computing, p, 0});
  }

  double factorOf(size_t p) const {
    return devices[p].movers > 0 ? 1 - work.devices[p].overlapSlowdown : 1;
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
      pauseIfIdle(p);
      return false;
    }
    countWaiting(p);
    device.blockedSince.reset();
    device.waitsFor.reset();
    resume(p);
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

  /// Where it waits for others to come to an operation.
  void pauseIfIdle(size_t p) {
    if (devices[p].waitsFor && devices[p].blockedSince && !devices[p].isMoving)
      pause(p);
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
    if (device.waitsFor)
      resume(p);
    addMover(p, true);
    startFlow(step.seconds, usesOf(p, p, step.ports), 1, {Owner::Collective, p, 0});
  }

  /// What bytes from one device to another use.
  FlowNetwork::Uses usesOf(size_t from, size_t to, DevicePorts ports) const {
    FlowNetwork::Uses uses;
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
    else
      pauseIfIdle(p);
  }

  //===--- Transfers --------------------------------------------------------===//

  bool startTransfer(size_t p, uint32_t transfer) {
    Device &device = devices[p];
    const SimulatedTransfer &end = work.devices[p].transfers[transfer];
    Channel &channel = channels.at(end.channel);
    uint32_t microbatch = executionOf(p).microbatch;
    auto [it, fresh] = device.underWay.try_emplace({transfer, microbatch}, 0);
    if (!device.isSending) {
      if (!fresh)
        return fail(p, fmt::format("transfer {} is started again for microbatch {}; expected it to "
                                   "be finished first",
                                   transfer, microbatch));
      it->second = end.isSend ? channel.numSent++ : channel.numPosted++;
      if (it->second >= channel.messages.size())
        channel.messages.emplace_back();
      Message &message = channel.messages[it->second];
      (end.isSend ? message.sent : message.posted) = microbatch;
      if (message.sent && message.posted && message.sent != message.posted)
        return fail(p, fmt::format("message {} of channel {} is of microbatch {}, but its receive "
                                   "is for microbatch {}; expected the same order at both ends",
                                   it->second, end.channel, *message.sent, *message.posted));
      deliver(end.channel);
    }
    Message &message = channel.messages[it->second];
    device.isSending = work.isRendezvous && end.isSend && !message.posted;
    if (device.isSending) {
      pause(p);
      message.waiters[0] = p;
      return false;
    }
    resume(p);
    // A send that waits for this receive goes on.
    if (!end.isSend && work.isRendezvous)
      if (size_t sender = std::exchange(message.waiters[0], nobody); sender != nobody)
        advance(sender);
    return true;
  }

  /// Puts the next messages of a channel on their way, if both ends have started them.
  void deliver(uint32_t number) {
    Channel &channel = channels.at(number);
    const SimulatedChannel &shape = *channel.shape;
    while (channel.numStarted < channel.messages.size() &&
           (!shape.carriesOne || channel.numStarted == channel.numArrived)) {
      Message &message = channel.messages[channel.numStarted];
      if (!message.sent || !message.posted)
        return;
      ++channel.numStarted;
      message.start = now;
      addMover(shape.from, true);
      addMover(shape.to, true);
      startFlow(shape.seconds, usesOf(shape.from, shape.to, shape.ports), 1,
                {Owner::Transfer, shape.from, number});
    }
  }

  void finishMessage(uint32_t number) {
    Channel &channel = channels.at(number);
    const SimulatedChannel &shape = *channel.shape;
    addMover(shape.from, false);
    addMover(shape.to, false);
    size_t index = channel.numArrived++;
    channel.messages[index].isDone = true;
    Message message = channel.messages[index];
    result.timeline.transfers.push_back(
        {number, *message.sent, shape.from, shape.to, shape.bytes, message.start, now});
    deliver(number);
    for (size_t waiter : message.waiters)
      if (waiter != nobody)
        advance(waiter);
  }

  bool finishTransfer(size_t p, uint32_t transfer) {
    Device &device = devices[p];
    const SimulatedTransfer &end = work.devices[p].transfers[transfer];
    uint32_t microbatch = executionOf(p).microbatch;
    auto it = device.underWay.find({transfer, microbatch});
    if (it == device.underWay.end())
      return fail(p,
                  fmt::format("transfer {} is finished for microbatch {}, but it was not started",
                              transfer, microbatch));
    Message &message = channels.at(end.channel).messages[it->second];
    if (!message.isDone) {
      device.blockedSince = now;
      pause(p);
      message.waiters[end.isSend ? 0 : 1] = p;
      return false;
    }
    if (device.blockedSince) {
      double moving = now - std::max(*device.blockedSince, message.start);
      result.devices[p].exposedTransfers += std::max(0.0, moving);
      device.blockedSince.reset();
      resume(p);
    }
    device.underWay.erase(it);
    return true;
  }

  //===--- The end ----------------------------------------------------------===//

  /// What a device that does not go on waits for.
  std::string describeWait(size_t p) const {
    const SimulatedStep &step = stepsOf(p)[devices[p].step];
    if (step.kind != SimulatedStep::Kind::StartTransfer &&
        step.kind != SimulatedStep::Kind::FinishTransfer)
      return fmt::format("all coordinates on \"{}\" to come to a collective", work.names.axis);
    const SimulatedTransfer &end = work.devices[p].transfers[step.id];
    const SimulatedChannel &channel = work.channels.at(end.channel);
    return fmt::format("pipeline coordinate {} to {} microbatch {} on channel {}",
                       end.isSend ? channel.to : channel.from,
                       devices[p].isSending ? "start its receive of"
                                            : (end.isSend ? "receive" : "send"),
                       executionOf(p).microbatch, end.channel);
  }

  MaybeError checkEnd() const {
    std::vector<std::string> texts;
    for (size_t p = 0; p < devices.size(); ++p)
      if (!hasEnded(p))
        texts.push_back(
            fmt::format("pipeline coordinate {} waits in task \"{}\" of microbatch {} for {}", p,
                        taskName(p), executionOf(p).microbatch, describeWait(p)));
    if (texts.empty())
      return std::nullopt;
    return Error{fmt::format("the plan stalls{}: {}; every device must reach the end of its "
                             "schedule",
                             work.isRendezvous ? " if sends wait for their receives" : "",
                             fmt::join(texts, ", "))};
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

  const StepWork &work;
  bool keepCollectives;
  MaybeError failure;
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

Expected<StepSimulation> simulateStep(const StepWork &work, bool keepCollectives) {
  return Simulator(work, keepCollectives).run();
}

} // namespace dtc::runtime
