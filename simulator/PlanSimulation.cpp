//===- PlanSimulation.cpp - When every device of a plan would work --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Every device has a clock of its own and runs until it needs a time that another device has yet to
// determine. As no time depends on which of two devices is asked first, the order in which they run
// does not matter, and there is no queue of events: only one of the devices that may be able to go
// on, because what they waited for may be known by now.
//
//===----------------------------------------------------------------------===//

#include "simulator/PlanSimulation.h"

#include "plan/PlanTypes.h"
#include "plan/TransferEnds.h"
#include "simulator/ChannelTimes.h"
#include "simulator/TaskCost.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <utility>

namespace dtc::runtime {

namespace {

/// A collective over the pipeline axis: its number among those of each program.
using MeetingNumber = size_t;

struct Meeting {
  size_t arrived = 0; // devices
  double time = 0;    // when the last of them came
};

struct DeviceState {
  size_t execution = 0;
  size_t stop = 0;
  bool begun = false; // the execution
  double clock = 0;
  double computed = 0; // seconds of the execution that have been computed
  std::map<std::pair<uint32_t, uint32_t>, size_t> underWay; // transfer, microbatch: the message
  std::map<uint32_t, MeetingNumber> meetings;               // async ones, by instruction
  size_t numMeetings = 0;                                   // that it has come to
  bool arrived = false;                                     // at what the present stop waits for
  std::string waitsFor;                                     // why it does not go on
};

class Simulator {
public:
  Simulator(const plan::Plan &plan, const SimulationOptions &options, Timeline &timeline)
      : plan(plan), options(options), timeline(timeline) {}

  MaybeError run() {
    if (MaybeError error = prepare())
      return error;
    for (size_t p = 0; p < devices.size(); ++p)
      wake(p);
    while (!ready.empty()) {
      size_t p = ready.front();
      ready.pop_front();
      isReady[p] = false;
      if (MaybeError error = advance(p))
        return error;
    }
    if (MaybeError error = checkEnd())
      return error;
    for (const auto &[number, channel] : channels)
      channel.addTo(timeline.transfers);
    return std::nullopt;
  }

private:
  const plan::Program &program(size_t p) const { return plan.programs(static_cast<int>(p)); }

  /// What the device waits for may be known now.
  void wake(size_t p) {
    if (!isReady[p])
      ready.push_back(p);
    isReady[p] = true;
  }

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
    isReady.resize(timeline.programs.size());

    Expected<std::map<uint32_t, TransferEnds>> paired = pairTransfers(plan);
    if (!paired)
      return paired.error();
    for (const auto &[number, ends] : *paired)
      channels.try_emplace(number, number, ends,
                           link.latency + static_cast<double>(ends.bytes) / link.bandwidth);
    for (size_t p = 0; p < devices.size(); ++p) {
      costs.emplace_back();
      timeline.taskNames.emplace_back();
      for (const plan::Task &task : program(p).tasks()) {
        costs.back().push_back(TaskCost::of(task, timeline.axis, options.flopsPerSecond));
        timeline.taskNames.back().push_back(task.name());
      }
    }
    return std::nullopt;
  }

  /// Runs a device until it ends or has to wait.
  MaybeError advance(size_t p) {
    DeviceState &device = devices[p];
    for (auto size = static_cast<size_t>(program(p).schedule_size()); device.execution < size;) {
      const plan::ScheduleEntry &entry = program(p).schedule(static_cast<int>(device.execution));
      const TaskCost &cost = costs[p][entry.task()];
      for (; device.stop < cost.stops.size(); ++device.stop) {
        const TaskCost::Stop &stop = cost.stops[device.stop];
        compute(p, entry, stop.before * cost.seconds);
        Expected<bool> passed = pass(p, entry, stop.instruction);
        if (!passed)
          return passed.error();
        if (!*passed)
          return std::nullopt;
      }
      compute(p, entry, cost.seconds);
      if (!device.begun)
        addInterval(p, entry, 0);
      ++device.execution;
      device.stop = 0;
      device.begun = false;
      device.computed = 0;
      device.meetings.clear();
    }
    return std::nullopt;
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
      intervals.push_back({device.execution, entry.task(), entry.microbatch(), task.kind(),
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
      return it == devices[p].meetings.end() ||
             reach(p, meetingTime(it->second), [&] { return meetingText(); });
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

  /// Lets the device wait for a time, if that is known by now; else `describe` says for what.
  template <typename Describe>
  bool reach(size_t p, std::optional<double> time, const Describe &describe) {
    DeviceState &device = devices[p];
    if (!time) {
      device.waitsFor = describe();
      return false;
    }
    device.clock = std::max(device.clock, *time);
    return true;
  }

  Expected<bool> passStart(size_t p, uint32_t transfer, uint32_t microbatch) {
    const plan::Transfer &end = program(p).transfers(static_cast<int>(transfer));
    ChannelTimes &channel = channels.at(end.channel());
    DeviceState &device = devices[p];
    auto [it, fresh] = device.underWay.try_emplace({transfer, microbatch}, 0);
    bool isSend = end.kind() == plan::Transfer::SEND;
    // A send that waits for its receive comes here again.
    if (!device.arrived) {
      if (!fresh)
        return Error{fmt::format("transfer {} is started again for microbatch {}; expected it to "
                                 "be finished first",
                                 transfer, microbatch)};
      Expected<size_t> message = channel.start(isSend, microbatch, device.clock);
      if (!message)
        return message.error();
      it->second = *message;
      wake(channel.otherEnd(isSend));
    }
    if (!isSend || !options.rendezvous)
      return true;
    device.arrived = !reach(p, channel.posted(it->second), [&] {
      return fmt::format("pipeline coordinate {} to start its receive of microbatch {} on channel "
                         "{}",
                         end.peer(), microbatch, end.channel());
    });
    return !device.arrived;
  }

  Expected<bool> passFinish(size_t p, uint32_t transfer, uint32_t microbatch) {
    const plan::Transfer &end = program(p).transfers(static_cast<int>(transfer));
    DeviceState &device = devices[p];
    auto it = device.underWay.find({transfer, microbatch});
    if (it == device.underWay.end())
      return Error{fmt::format("transfer {} is finished for microbatch {}, but it was not started",
                               transfer, microbatch)};
    if (!reach(p, channels.at(end.channel()).arrived(it->second), [&] {
          return fmt::format("pipeline coordinate {} to {} microbatch {} on channel {}", end.peer(),
                             end.kind() == plan::Transfer::SEND ? "receive" : "send", microbatch,
                             end.channel());
        }))
      return false;
    device.underWay.erase(it);
    return true;
  }

  bool passMeeting(size_t p, bool async, uint32_t instruction) {
    DeviceState &device = devices[p];
    if (!device.arrived)
      arrive(device);
    MeetingNumber meeting = device.numMeetings - 1;
    if (async)
      device.meetings[instruction] = meeting;
    device.arrived = !async && !reach(p, meetingTime(meeting), [&] { return meetingText(); });
    return !device.arrived;
  }

  void arrive(DeviceState &device) {
    if (device.numMeetings == meetings.size())
      meetings.emplace_back();
    Meeting &meeting = meetings[device.numMeetings++];
    meeting.time = std::max(meeting.time, device.clock);
    if (++meeting.arrived == devices.size())
      for (size_t p = 0; p < devices.size(); ++p)
        wake(p);
  }

  /// When all have come to a meeting.
  std::optional<double> meetingTime(MeetingNumber number) const {
    const Meeting &meeting = meetings[number];
    return meeting.arrived == devices.size() ? std::optional(meeting.time) : std::nullopt;
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

  size_t programs() const { return devices.size(); }

  const plan::Plan &plan;
  const SimulationOptions &options;
  Timeline &timeline;
  std::map<uint32_t, ChannelTimes> channels;
  std::vector<Meeting> meetings;            // by number
  std::vector<std::vector<TaskCost>> costs; // by program and task
  std::vector<DeviceState> devices;
  std::deque<size_t> ready; // devices that may be able to go on, each once
  std::vector<bool> isReady;
};

} // namespace

Expected<Timeline> simulatePlan(const plan::Plan &plan, const SimulationOptions &options) {
  Timeline timeline;
  if (MaybeError error = Simulator(plan, options, timeline).run())
    return *error;
  return timeline;
}

} // namespace dtc::runtime
