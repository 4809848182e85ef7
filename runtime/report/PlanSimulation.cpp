//===- PlanSimulation.cpp - When every device of a plan would work --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Every device has a clock of its own and runs until it needs a time that another device has yet to
// determine. As no time depends on which of two devices is asked first, the order in which they run
// does not matter, and there is no queue of events.
//
//===----------------------------------------------------------------------===//

#include "runtime/report/PlanSimulation.h"

#include "runtime/plan/PlanTypes.h"
#include "runtime/report/TransferEnds.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <utility>

namespace dtc::runtime {

namespace {

/// A message of a channel. Its times are known once the devices have come to them.
struct Message {
  uint32_t sentMicrobatch = 0;
  uint32_t postedMicrobatch = 0;
  std::optional<double> sent;   // when its send started
  std::optional<double> posted; // when its receive started
  std::optional<double> start;
  std::optional<double> end;
};

struct Channel {
  TransferEnds ends;
  double seconds = 0; // of a message
  std::deque<Message> messages;
  size_t numSent = 0;
  size_t numPosted = 0;
  size_t numArrived = 0;
};

/// What a task does besides computing.
struct Stop {
  int instruction = 0;
  double before = 0; // the share of the task's time that passes before it, 0 to 1
};

struct TaskCost {
  double seconds = 0; // of one execution
  std::vector<Stop> stops;
};

/// A collective over the pipeline axis: its number among those of the program.
using Meeting = size_t;

struct DeviceState {
  size_t execution = 0;
  size_t stop = 0;
  bool begun = false; // the execution
  double clock = 0;
  double computed = 0; // seconds of the execution that have been computed
  std::map<std::pair<uint32_t, uint32_t>, size_t> underWay; // transfer, microbatch: the message
  std::map<uint32_t, Meeting> meetings;                     // async ones, by instruction
  std::vector<double> arrivals;                             // at each meeting
  bool arrived = false;                                     // at the meeting of the present stop
  std::string waitsFor;                                     // why it does not go on
};

class Simulator {
public:
  Simulator(const plan::Plan &plan, const SimulationOptions &options, Timeline &timeline)
      : plan(plan), options(options), timeline(timeline) {}

  MaybeError run() {
    if (MaybeError error = prepare())
      return error;
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t p = 0; p < devices.size(); ++p) {
        Expected<bool> went = advance(p);
        if (!went)
          return went.error();
        progress |= *went;
      }
    }
    if (MaybeError error = checkEnd())
      return error;
    addTransfers();
    return std::nullopt;
  }

private:
  const plan::Program &program(size_t p) const { return plan.programs(static_cast<int>(p)); }

  MaybeError prepare() {
    LinkSpeed link = kAssumedLink;
    for (const plan::Axis &axis : plan.axes()) {
      if (axis.temporal())
        timeline.microbatches = axis.size();
      if (!axis.pipeline())
        continue;
      timeline.axis = axis.name();
      for (LinkSpeed known : {LinkSpeed{axis.bandwidth(), axis.latency()}, options.link}) {
        link.bandwidth = known.bandwidth > 0 ? known.bandwidth : link.bandwidth;
        link.latency = known.latency > 0 ? known.latency : link.latency;
      }
    }
    timeline.model = plan.model();
    timeline.schedule = plan.pipeline().schedule();
    timeline.stages = plan.pipeline().stages();
    timeline.programs.resize(static_cast<size_t>(plan.programs_size()));
    devices.resize(timeline.programs.size());

    Expected<std::map<uint32_t, TransferEnds>> paired = pairTransfers(plan);
    if (!paired)
      return paired.error();
    for (const auto &[number, ends] : *paired)
      channels[number] = {
          ends, link.latency + static_cast<double>(ends.bytes) / link.bandwidth, {}, 0, 0, 0};
    for (const plan::Program &program : plan.programs()) {
      costs.emplace_back();
      for (const plan::Task &task : program.tasks())
        costs.back().push_back(costOf(task));
    }
    return std::nullopt;
  }

  bool isMeeting(const plan::Instruction &instruction) const {
    const auto &axes = instruction.collective().axes();
    return !timeline.axis.empty() && instruction.has_collective() &&
           std::find(axes.begin(), axes.end(), timeline.axis) != axes.end();
  }

  TaskCost costOf(const plan::Task &task) const {
    auto computes = [](const plan::Instruction &instruction) {
      return instruction.has_kernel() || instruction.has_collective();
    };
    double flops = 0, even = 0;
    for (const plan::Instruction &instruction : task.instructions())
      if (computes(instruction)) {
        flops += instruction.flops();
        even += 1;
      }
    TaskCost cost;
    cost.seconds = task.seconds() > 0 ? task.seconds() : flops / options.flopsPerSecond;
    if (!std::isfinite(cost.seconds))
      cost.seconds = 0;
    bool byFlops = flops > 0 && std::isfinite(flops);
    double total = byFlops ? flops : even, passed = 0;
    for (int i = 0; i < task.instructions_size(); ++i) {
      const plan::Instruction &instruction = task.instructions(i);
      bool stops = instruction.has_start_transfer() || instruction.has_finish_transfer() ||
                   instruction.has_wait() || isMeeting(instruction);
      if (stops)
        cost.stops.push_back({i, total > 0 ? std::min(1.0, passed / total) : 1.0});
      if (computes(instruction))
        passed += byFlops ? instruction.flops() : 1;
    }
    return cost;
  }

  /// Runs a device until it ends or has to wait. Whether it came any further.
  Expected<bool> advance(size_t p) {
    DeviceState &device = devices[p];
    bool progress = false;
    for (auto size = static_cast<size_t>(program(p).schedule_size()); device.execution < size;) {
      const plan::ScheduleEntry &entry = program(p).schedule(static_cast<int>(device.execution));
      const TaskCost &cost = costs[p][entry.task()];
      for (; device.stop < cost.stops.size(); ++device.stop) {
        const Stop &stop = cost.stops[device.stop];
        compute(p, entry, stop.before * cost.seconds);
        Expected<bool> passed = pass(p, entry, stop.instruction);
        if (!passed)
          return passed.error();
        if (!*passed)
          return progress;
        progress = true;
      }
      compute(p, entry, cost.seconds);
      if (!device.begun)
        addInterval(p, entry, 0);
      ++device.execution;
      device.stop = 0;
      device.begun = false;
      device.computed = 0;
      device.meetings.clear();
      progress = true;
    }
    device.waitsFor.clear();
    return progress;
  }

  /// Works until `seconds` of the execution are done.
  void compute(size_t p, const plan::ScheduleEntry &entry, double seconds) {
    DeviceState &device = devices[p];
    if (seconds <= device.computed)
      return;
    addInterval(p, entry, seconds - device.computed);
    device.computed = seconds;
  }

  void addInterval(size_t p, const plan::ScheduleEntry &entry, double seconds) {
    DeviceState &device = devices[p];
    std::vector<TaskInterval> &intervals = timeline.programs[p];
    double end = device.clock + seconds;
    // One interval as long as the device has not waited.
    if (device.begun && intervals.back().end == device.clock) {
      intervals.back().end = end;
    } else {
      const plan::Task &task = program(p).tasks(static_cast<int>(entry.task()));
      intervals.push_back({device.execution, task.name(), entry.microbatch(), task.kind(),
                           task.stage(), device.clock, end});
    }
    device.begun = true;
    device.clock = end;
  }

  /// Whether the device gets past an instruction now.
  Expected<bool> pass(size_t p, const plan::ScheduleEntry &entry, int index) {
    const plan::Task &task = program(p).tasks(static_cast<int>(entry.task()));
    const plan::Instruction &instruction = task.instructions(index);
    if (instruction.has_collective())
      return passMeeting(p, instruction.collective().async(), static_cast<uint32_t>(index));
    if (instruction.has_wait()) {
      auto it = devices[p].meetings.find(instruction.wait().instruction());
      return it == devices[p].meetings.end() || reach(p, meetingTime(it->second), meetingText());
    }
    uint32_t transfer = instruction.has_start_transfer() ? instruction.start_transfer().transfer()
                                                         : instruction.finish_transfer().transfer();
    Expected<bool> passed = instruction.has_start_transfer()
                                ? passStart(p, transfer, entry.microbatch())
                                : passFinish(p, transfer, entry.microbatch());
    if (!passed)
      return passed.error().inContext(
          programs() > 1 ? fmt::format("program {}, {}", p, describeInstruction(plan, task, index))
                         : describeInstruction(plan, task, index));
    return passed;
  }

  /// Lets the device wait for a time, if that is known by now.
  bool reach(size_t p, std::optional<double> time, const std::string &what) {
    DeviceState &device = devices[p];
    if (!time) {
      device.waitsFor = what;
      return false;
    }
    device.clock = std::max(device.clock, *time);
    return true;
  }

  Expected<bool> passStart(size_t p, uint32_t transfer, uint32_t microbatch) {
    const plan::Transfer &end = program(p).transfers(static_cast<int>(transfer));
    Channel &channel = channels.at(end.channel());
    DeviceState &device = devices[p];
    auto [it, fresh] = device.underWay.try_emplace({transfer, microbatch}, 0);
    bool isSend = end.kind() == plan::Transfer::SEND;
    // A send that waits for its receive comes here again.
    if (!device.arrived) {
      if (!fresh)
        return Error{fmt::format("transfer {} is started again for microbatch {}; expected it to "
                                 "be finished first",
                                 transfer, microbatch)};
      it->second = isSend ? channel.numSent++ : channel.numPosted++;
      if (it->second == channel.messages.size())
        channel.messages.emplace_back();
      Message &message = channel.messages[it->second];
      (isSend ? message.sentMicrobatch : message.postedMicrobatch) = microbatch;
      (isSend ? message.sent : message.posted) = device.clock;
      if (message.sent && message.posted && message.sentMicrobatch != message.postedMicrobatch)
        return Error{fmt::format("message {} of channel {} is of microbatch {}, but its receive "
                                 "is for microbatch {}; expected the same order at both ends",
                                 it->second, end.channel(), message.sentMicrobatch,
                                 message.postedMicrobatch)};
      deliver(channel);
    }
    if (!isSend || !options.rendezvous)
      return true;
    device.arrived = !reach(p, channel.messages[it->second].posted,
                            fmt::format("pipeline coordinate {} to start its receive of "
                                        "microbatch {} on channel {}",
                                        end.peer(), microbatch, end.channel()));
    return !device.arrived;
  }

  /// Gives times to the messages of a channel that have both ends.
  static void deliver(Channel &channel) {
    for (; channel.numArrived < channel.messages.size(); ++channel.numArrived) {
      Message &message = channel.messages[channel.numArrived];
      if (!message.sent || !message.posted)
        return;
      message.start = std::max(*message.sent, *message.posted);
      if (channel.numArrived > 0)
        message.start = std::max(*message.start, *channel.messages[channel.numArrived - 1].end);
      message.end = *message.start + channel.seconds;
    }
  }

  Expected<bool> passFinish(size_t p, uint32_t transfer, uint32_t microbatch) {
    const plan::Transfer &end = program(p).transfers(static_cast<int>(transfer));
    DeviceState &device = devices[p];
    auto it = device.underWay.find({transfer, microbatch});
    if (it == device.underWay.end())
      return Error{fmt::format("transfer {} is finished for microbatch {}, but it was not started",
                               transfer, microbatch)};
    bool isSend = end.kind() == plan::Transfer::SEND;
    if (!reach(p, channels.at(end.channel()).messages[it->second].end,
               fmt::format("pipeline coordinate {} to {} microbatch {} on channel {}", end.peer(),
                           isSend ? "receive" : "send", microbatch, end.channel())))
      return false;
    device.underWay.erase(it);
    return true;
  }

  bool passMeeting(size_t p, bool async, uint32_t instruction) {
    DeviceState &device = devices[p];
    if (!device.arrived)
      device.arrivals.push_back(device.clock);
    Meeting meeting = device.arrivals.size() - 1;
    if (async)
      device.meetings[instruction] = meeting;
    device.arrived = !async && !reach(p, meetingTime(meeting), meetingText());
    return !device.arrived;
  }

  /// When all have come to a meeting.
  std::optional<double> meetingTime(Meeting meeting) const {
    double time = 0;
    for (const DeviceState &device : devices) {
      if (device.arrivals.size() <= meeting)
        return std::nullopt;
      time = std::max(time, device.arrivals[meeting]);
    }
    return time;
  }

  std::string meetingText() const {
    return fmt::format("all coordinates on \"{}\" to come to a collective", timeline.axis);
  }

  MaybeError checkEnd() const {
    std::vector<std::string> texts;
    for (size_t p = 0; p < devices.size(); ++p) {
      const DeviceState &device = devices[p];
      if (device.execution == static_cast<size_t>(program(p).schedule_size()))
        continue;
      const plan::ScheduleEntry &entry = program(p).schedule(static_cast<int>(device.execution));
      texts.push_back(
          fmt::format("pipeline coordinate {} waits in task \"{}\" of microbatch {} for {}", p,
                      program(p).tasks(static_cast<int>(entry.task())).name(), entry.microbatch(),
                      device.waitsFor));
    }
    if (texts.empty())
      return std::nullopt;
    return Error{fmt::format("the plan stalls{}: {}; every device must reach the end of its "
                             "schedule",
                             options.rendezvous ? " if sends wait for their receives" : "",
                             fmt::join(texts, ", "))};
  }

  void addTransfers() {
    for (const auto &[number, channel] : channels)
      for (const Message &message : channel.messages)
        if (message.end)
          timeline.transfers.push_back({number, message.sentMicrobatch, channel.ends.from,
                                        channel.ends.to, channel.ends.bytes, *message.start,
                                        *message.end});
  }

  size_t programs() const { return devices.size(); }

  const plan::Plan &plan;
  const SimulationOptions &options;
  Timeline &timeline;
  std::map<uint32_t, Channel> channels;
  std::vector<std::vector<TaskCost>> costs; // by program and task
  std::vector<DeviceState> devices;
};

} // namespace

Expected<Timeline> simulatePlan(const plan::Plan &plan, const SimulationOptions &options) {
  Timeline timeline;
  if (MaybeError error = Simulator(plan, options, timeline).run())
    return *error;
  return timeline;
}

} // namespace dtc::runtime
