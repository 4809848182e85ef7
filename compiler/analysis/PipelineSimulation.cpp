//===- PipelineSimulation.cpp - Simulation of pipeline schedules ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/PipelineSimulation.h"

#include "simulator/StepSimulator.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>
#include <utility>

using namespace dtc;

/// A number for each unit.
static size_t unitIndex(const PipelineShape &shape, StagePass kind, int stage, int microbatch) {
  return (indexOf(kind) * shape.stages() + stage) * shape.microbatches + microbatch;
}
static size_t countUnits(const PipelineShape &shape) {
  return size_t(3) * shape.stages() * shape.microbatches;
}

std::vector<StageValue> dtc::linkValues(const PipelineSchedule &schedule,
                                        llvm::ArrayRef<StageEdge> links) {
  std::vector<StageValue> channels;
  for (const StageEdge &link : links) {
    assert(link.from < link.to);
    StageValue activation{{StagePass::Forward, link.from}, {}, link.seconds};
    StageValue gradient{{StagePass::Backward, link.to}, {}, link.seconds};
    activation.consumers = {{StagePass::Forward, link.to}, {StagePass::Backward, link.to}};
    gradient.consumers = {{StagePass::Backward, link.from}};
    if (schedule.splitsWeight) {
      activation.consumers.push_back({StagePass::Weight, link.to});
      gradient.consumers.push_back({StagePass::Weight, link.from});
    }
    channels.push_back(activation);
    channels.push_back(gradient);
  }
  return channels;
}

std::vector<StageEdge> dtc::chainEdges(const PipelineShape &shape, double seconds) {
  std::vector<StageEdge> links;
  for (int stage = 1; stage < shape.stages(); ++stage)
    links.push_back({stage - 1, stage, seconds});
  return links;
}

//===----------------------------------------------------------------------===//
// Simulation
//===----------------------------------------------------------------------===//

/// The place of each unit in the order of its device.
static std::vector<int> unitPositions(const PipelineSchedule &schedule) {
  std::vector<int> positions(countUnits(schedule.shape), -1);
  for (const auto &order : schedule.orders)
    for (auto [position, unit] : llvm::enumerate(order))
      positions[unitIndex(schedule.shape, unit.kind, unit.stage, unit.microbatch)] = position;
  return positions;
}

PipelineInFlight dtc::countInFlight(const PipelineSchedule &schedule) {
  PipelineInFlight result;
  result.stageInFlight.assign(schedule.shape.stages(), 0);
  result.deviceInFlight.assign(schedule.shape.devices, 0);
  std::vector<int> inFlight(schedule.shape.stages(), 0);
  for (auto [number, order] : llvm::enumerate(schedule.orders)) {
    int onDevice = 0;
    for (const PipelineUnit &unit : order) {
      int change = unit.kind == StagePass::Forward ? 1 : unit.kind == schedule.lastKind() ? -1 : 0;
      onDevice += change;
      int onStage = inFlight[unit.stage] += change;
      result.deviceInFlight[number] = std::max(result.deviceInFlight[number], onDevice);
      result.stageInFlight[unit.stage] = std::max(result.stageInFlight[unit.stage], onStage);
    }
  }
  return result;
}

namespace {

/// A schedule as the simulator of steps takes it. Each unit is a task that computes; tasks before
/// it start receives and wait for messages, one after it starts what it sends.
class WorkBuilder {
public:
  WorkBuilder(const PipelineSchedule &schedule, llvm::ArrayRef<StageSeconds> stageSeconds,
              llvm::ArrayRef<StageValue> channels, llvm::ArrayRef<ReceivePosting> postings)
      : schedule(schedule), shape(schedule.shape), channels(channels), postings(postings),
        positions(unitPositions(schedule)), tasks(roleCount()), sends(roleCount()),
        consumed(roleCount()) {
    assert(stageSeconds.size() == size_t(shape.stages()));
    assert(postings.empty() || postings.size() == channels.size());
    work.isRendezvous = true;
    work.devices.resize(shape.devices);
    work.names.taskNames.resize(shape.devices);
    for (int stage = 0; stage < shape.stages(); ++stage)
      for (StagePass kind : {StagePass::Forward, StagePass::Backward, StagePass::Weight})
        tasks[role(kind, stage)] =
            addTask(schedule.device(stage), PipelineUnit{kind, 0, stage}.str(),
                    {.seconds = secondsOf(kind, stageSeconds[stage])});
    for (size_t c = 0; c < channels.size(); ++c)
      addChannel(c);
  }

  StepWork build() {
    for (int device = 0; device < shape.devices; ++device)
      addSchedule(device);
    return std::move(work);
  }

  /// How many tasks of a device compute: its first ones.
  size_t computing() const { return size_t(3) * shape.chunks; }

  /// Finds a unit whose input its own device makes later in its order. Returns a description of it,
  /// or an empty text.
  std::string findLateInput() const {
    for (const auto &order : schedule.orders)
      for (const PipelineUnit &unit : order) {
        int position = positionOf({unit.kind, unit.stage}, unit.microbatch);
        auto isLate = [&](const UnitRole &producer) {
          int made = positionOf(producer, unit.microbatch);
          return made < 0 || made > position;
        };
        bool late = unit.kind == StagePass::Backward && isLate({StagePass::Forward, unit.stage});
        late |= unit.kind == StagePass::Weight && isLate({StagePass::Backward, unit.stage});
        for (size_t c : consumed[role(unit.kind, unit.stage)])
          late |= !isMessage(c) && isLate(channels[c].producer);
        if (late)
          return "device " + std::to_string(schedule.device(unit.stage)) +
                 " waits for the inputs of " + unit.str();
      }
    return "";
  }

private:
  using Step = SimulatedOperation;
  struct Ends {
    uint32_t post = 0, receive = 0; ///< tasks of the receiver
  };

  size_t roleCount() const { return size_t(3) * shape.stages(); }
  size_t role(StagePass kind, int stage) const { return indexOf(kind) * shape.stages() + stage; }
  int positionOf(const UnitRole &unit, int microbatch) const {
    return positions[unitIndex(shape, unit.kind, unit.stage, microbatch)];
  }
  int sender(size_t c) const { return schedule.device(channels[c].producer.stage); }
  int receiver(size_t c) const { return schedule.device(channels[c].consumers.front().stage); }
  bool isMessage(size_t c) const { return sender(c) != receiver(c); }

  double secondsOf(StagePass kind, const StageSeconds &seconds) const {
    return kind == StagePass::Forward  ? seconds.forward
           : kind == StagePass::Weight ? seconds.weight
           : schedule.splitsWeight     ? seconds.backward
                                       : seconds.backward + seconds.weight;
  }

  uint32_t addTask(int device, std::string name, const Step &step) {
    auto &all = work.devices[device].tasks;
    all.emplace_back().steps = {step};
    work.names.taskNames[device].push_back(std::move(name));
    return all.size() - 1;
  }
  uint32_t addTransfer(int device, size_t c, bool isSend) {
    auto &all = work.devices[device].transfers;
    all.push_back({uint32_t(c), isSend});
    return all.size() - 1;
  }

  void addChannel(size_t c) {
    const StageValue &channel = channels[c];
    for (const UnitRole &consumer : channel.consumers) {
      assert(schedule.device(consumer.stage) == receiver(c));
      auto &all = consumed[role(consumer.kind, consumer.stage)];
      if (!llvm::is_contained(all, c)) // a consumer may be named twice
        all.push_back(c);
    }
    ends.emplace_back();
    if (!isMessage(c))
      return;
    work.channels[c] = {.from = size_t(sender(c)),
                        .to = size_t(receiver(c)),
                        .seconds = channel.seconds,
                        .carriesOne = false};
    uint32_t received = addTransfer(receiver(c), c, /*isSend=*/false);
    std::string text = " channel " + std::to_string(c);
    ends[c].post =
        addTask(receiver(c), "post" + text, {.kind = Step::Kind::StartTransfer, .id = received});
    ends[c].receive = addTask(receiver(c), "receive" + text,
                              {.kind = Step::Kind::FinishTransfer, .id = received});
    Step send{.kind = Step::Kind::StartTransfer, .id = addTransfer(sender(c), c, /*isSend=*/true)};
    uint32_t &sending = sends[role(channel.producer.kind, channel.producer.stage)];
    if (sending == 0)
      sending = addTask(sender(c), "send", send);
    else
      work.devices[sender(c)].tasks[sending].steps.push_back(send);
  }

  void addSchedule(int device) {
    auto &entries = work.devices[device].schedule;
    auto add = [&](uint32_t task, int microbatch) {
      entries.push_back({task, uint32_t(microbatch)});
    };
    const auto &order = schedule.orders[device];
    // By place in the order: the receives that are posted before it.
    std::vector<std::vector<std::pair<uint32_t, int>>> posts(order.size() + 1);
    for (size_t c = 0; c < channels.size(); ++c)
      if (isMessage(c) && receiver(c) == device)
        for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch)
          posts[postings.empty() ? 0 : postings[c].positions[microbatch]].push_back(
              {ends[c].post, microbatch});
    for (auto [position, unit] : llvm::enumerate(order)) {
      for (auto [task, microbatch] : posts[position])
        add(task, microbatch);
      for (size_t c : consumed[role(unit.kind, unit.stage)])
        if (isMessage(c) && isFirstUse(c, unit.microbatch, int(position)))
          add(ends[c].receive, unit.microbatch);
      add(tasks[role(unit.kind, unit.stage)], unit.microbatch);
      if (uint32_t task = sends[role(unit.kind, unit.stage)])
        add(task, unit.microbatch);
    }
  }

  bool isFirstUse(size_t c, int microbatch, int position) const {
    return llvm::all_of(channels[c].consumers, [&](const UnitRole &consumer) {
      int other = positionOf(consumer, microbatch);
      return other < 0 || position <= other;
    });
  }

  const PipelineSchedule &schedule;
  const PipelineShape &shape;
  llvm::ArrayRef<StageValue> channels;
  llvm::ArrayRef<ReceivePosting> postings;
  std::vector<int> positions;
  std::vector<uint32_t> tasks, sends;        ///< by role; the task 0 sends nothing
  std::vector<std::vector<size_t>> consumed; ///< channels, by role
  std::vector<Ends> ends;                    ///< by channel
  StepWork work;
};

} // namespace

PipelineSimulation dtc::simulateSchedule(const PipelineSchedule &schedule,
                                         llvm::ArrayRef<StageSeconds> stageSeconds,
                                         llvm::ArrayRef<StageValue> channels,
                                         llvm::ArrayRef<ReceivePosting> postings) {
  PipelineSimulation result{countInFlight(schedule)};
  WorkBuilder builder(schedule, stageSeconds, channels, postings);
  result.times.resize(schedule.shape.devices);
  result.deadlock = builder.findLateInput();
  if (!result.deadlock.empty())
    return result;
  size_t computing = builder.computing();
  auto simulation = simulateStep(builder.build());
  if (!simulation) {
    result.deadlock = simulation.error().message;
    return result;
  }
  double busy = 0;
  for (auto [device, intervals] : llvm::enumerate(simulation->timeline.programs)) {
    for (const TaskInterval &interval : intervals)
      if (interval.task < computing)
        result.times[device].push_back({interval.start, interval.end});
    busy += simulation->devices[device].computing;
    if (!result.times[device].empty())
      result.span = std::max(result.span, result.times[device].back().end);
  }
  if (result.span > 0)
    result.bubbleShare = 1 - busy / (schedule.shape.devices * result.span);
  return result;
}

//===----------------------------------------------------------------------===//
// Receives
//===----------------------------------------------------------------------===//

/// For each microbatch, the last place at which it or one before it is used.
static std::vector<int> lastUsesSoFar(llvm::ArrayRef<int> lastUses) {
  std::vector<int> latest(lastUses.begin(), lastUses.end());
  for (size_t i = 1; i < latest.size(); ++i)
    latest[i] = std::max(latest[i], latest[i - 1]);
  return latest;
}

int dtc::countSlots(llvm::ArrayRef<int> first, llvm::ArrayRef<int> last) {
  std::vector<int> latest = lastUsesSoFar(last);
  int slots = 1;
  for (int i = 0, count = first.size(); i < count; ++i) {
    // Copies go round: all from the first that is still in use to this one are taken.
    int oldest = llvm::lower_bound(latest, first[i]) - latest.begin();
    slots = std::max(slots, i - oldest + 1);
  }
  return slots;
}

ReceivePosting dtc::postReceives(llvm::ArrayRef<double> sendTimes, llvm::ArrayRef<int> lastUses,
                                 llvm::ArrayRef<double> receiverEnds) {
  assert(sendTimes.size() == lastUses.size() && llvm::is_sorted(sendTimes));
  int count = sendTimes.size();
  std::vector<int> latestPosts;
  for (double time : sendTimes)
    latestPosts.push_back(llvm::lower_bound(receiverEnds, time) - receiverEnds.begin());

  ReceivePosting posting;
  posting.slots = std::max(countSlots(latestPosts, lastUses), std::min(count, 2));
  std::vector<int> latest = lastUsesSoFar(lastUses);
  for (int i = 0; i < count; ++i)
    posting.positions.push_back(i < posting.slots ? 0 : latest[i - posting.slots] + 1);
  return posting;
}

std::vector<ReceivePosting> dtc::postReceives(const PipelineSchedule &schedule,
                                              llvm::ArrayRef<StageValue> channels,
                                              const PipelineSimulation &simulation) {
  assert(simulation.deadlock.empty());
  const PipelineShape &shape = schedule.shape;
  std::vector<int> positions = unitPositions(schedule);
  std::vector<std::vector<double>> ends(shape.devices);
  for (auto [device, times] : llvm::enumerate(simulation.times))
    for (const UnitTime &time : times)
      ends[device].push_back(time.end);

  std::vector<ReceivePosting> postings;
  /// By sender and receiver: the place in the sender's order, channel and microbatch of a message.
  std::map<std::pair<int, int>, std::vector<std::tuple<int, size_t, int>>> messages;
  for (auto [index, channel] : llvm::enumerate(channels)) {
    int from = schedule.device(channel.producer.stage);
    int to = schedule.device(channel.consumers.front().stage);
    std::vector<int> made, lastUses(shape.microbatches, 0);
    std::vector<double> sendTimes;
    for (int i = 0; i < shape.microbatches; ++i) {
      made.push_back(positions[unitIndex(shape, channel.producer.kind, channel.producer.stage, i)]);
      sendTimes.push_back(ends[from][made.back()]);
      for (const UnitRole &use : channel.consumers)
        lastUses[i] = std::max(lastUses[i], positions[unitIndex(shape, use.kind, use.stage, i)]);
    }
    if (from == to) {
      postings.push_back({countSlots(made, lastUses), {}, {}});
      continue;
    }
    postings.push_back(postReceives(sendTimes, lastUses, ends[to]));
    for (int i = 0; i < shape.microbatches; ++i)
      messages[{from, to}].push_back({made[i], index, i});
    postings.back().sentAt = std::move(made);
  }
  for (auto &[pair, sends] : messages) {
    llvm::sort(sends);
    int latest = 0;
    for (auto [at, channel, microbatch] : sends) {
      int &position = postings[channel].positions[microbatch];
      position = latest = std::max(latest, position);
    }
  }
  return postings;
}
