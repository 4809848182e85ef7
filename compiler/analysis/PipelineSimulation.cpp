//===- PipelineSimulation.cpp - The times of a pipeline's schedule --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/PipelineSimulation.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>
#include <utility>

using namespace dtc;

/// A number for each unit.
static size_t unitIndex(const PipelineShape &shape, UnitKind kind, int stage, int microbatch) {
  return (size_t(kind) * shape.stages() + stage) * shape.microbatches + microbatch;
}
static size_t countUnits(const PipelineShape &shape) {
  return size_t(3) * shape.stages() * shape.microbatches;
}

std::vector<PipelineChannel> dtc::linkChannels(const PipelineSchedule &schedule,
                                               llvm::ArrayRef<StageLink> links) {
  std::vector<PipelineChannel> channels;
  for (const StageLink &link : links) {
    assert(link.from < link.to);
    PipelineChannel activation{{UnitKind::Forward, link.from}, {}, link.seconds};
    PipelineChannel gradient{{UnitKind::Backward, link.to}, {}, link.seconds};
    activation.consumers = {{UnitKind::Forward, link.to}, {UnitKind::Backward, link.to}};
    gradient.consumers = {{UnitKind::Backward, link.from}};
    if (schedule.splitsWeight) {
      activation.consumers.push_back({UnitKind::Weight, link.to});
      gradient.consumers.push_back({UnitKind::Weight, link.from});
    }
    channels.push_back(activation);
    channels.push_back(gradient);
  }
  return channels;
}

std::vector<StageLink> dtc::chainLinks(const PipelineShape &shape, double seconds) {
  std::vector<StageLink> links;
  for (int stage = 1; stage < shape.stages(); ++stage)
    links.push_back({stage - 1, stage, seconds});
  return links;
}

//===----------------------------------------------------------------------===//
// Simulation
//===----------------------------------------------------------------------===//

namespace {

/// Each device goes on until it waits for something that is not known yet; the times do not depend
/// on which device goes first.
class Simulator {
public:
  Simulator(const PipelineSchedule &schedule, llvm::ArrayRef<StageSeconds> stageSeconds,
            llvm::ArrayRef<PipelineChannel> channels, llvm::ArrayRef<ReceivePosting> postings)
      : schedule(schedule), shape(schedule.shape), stageSeconds(stageSeconds), channels(channels),
        posted(channels.size()), arrived(channels.size()), devices(shape.devices),
        produced(roleCount()), consumed(roleCount()), ends(countUnits(shape), unknown) {
    assert(stageSeconds.size() == size_t(shape.stages()));
    assert(postings.empty() || postings.size() == channels.size());
    for (auto &device : devices)
      device.waitsFor = "its first unit";
    for (auto [c, channel] : llvm::enumerate(channels)) {
      int from = schedule.device(channel.producer.stage);
      int to = schedule.device(channel.consumers.front().stage);
      produced[role(channel.producer.kind, channel.producer.stage)].push_back(c);
      for (const UnitRole &consumer : channel.consumers) {
        assert(schedule.device(consumer.stage) == to);
        consumed[role(consumer.kind, consumer.stage)].push_back(c);
      }
      arrived[c].assign(shape.microbatches, unknown);
      bool waits = from != to && !postings.empty();
      posted[c].assign(shape.microbatches, waits ? unknown : 0);
      isMessage.push_back(from != to);
      if (waits)
        for (auto [microbatch, position] : llvm::enumerate(postings[c].positions)) {
          auto &posts = devices[to].posts;
          posts.resize(std::max<size_t>(posts.size(), position + 1));
          posts[position].push_back({int(c), int(microbatch)});
        }
    }
  }

  PipelineSimulation run() {
    result.times.resize(shape.devices);
    for (bool progress = true; progress;) {
      progress = false;
      for (int device = 0; device < shape.devices; ++device)
        while (step(device))
          progress = true;
    }
    finish();
    return std::move(result);
  }

private:
  static constexpr double unknown = -1;

  struct Device {
    double now = 0;
    size_t position = 0; ///< the next unit
    bool postsDone = false;
    bool unitDone = false; ///< the unit at `position` has ended, and sends
    size_t sends = 0;      ///< how many of them are done
    std::vector<std::vector<std::pair<int, int>>> posts; ///< channel and microbatch, by position
    std::string waitsFor;
  };

  size_t roleCount() const { return size_t(3) * shape.stages(); }
  size_t role(UnitKind kind, int stage) const { return size_t(kind) * shape.stages() + stage; }

  /// Does the next thing that a device has to do: posts receives, works, or sends. False where it
  /// waits or is done.
  bool step(int number) {
    Device &device = devices[number];
    const auto &order = schedule.orders[number];
    if (device.position == order.size())
      return false;
    const PipelineUnit &unit = order[device.position];
    if (!device.postsDone) {
      if (device.position < device.posts.size())
        for (auto [channel, microbatch] : device.posts[device.position])
          posted[channel][microbatch] = device.now;
      return device.postsDone = true;
    }
    if (!device.unitDone)
      return device.unitDone = work(number, unit);
    const auto &sent = produced[role(unit.kind, unit.stage)];
    if (device.sends < sent.size()) {
      if (!send(device, sent[device.sends], unit))
        return false;
      ++device.sends;
      return true;
    }
    ++device.position;
    device.postsDone = device.unitDone = false;
    device.sends = 0;
    return true;
  }

  bool work(int number, const PipelineUnit &unit) {
    Device &device = devices[number];
    double start = device.now;
    auto needs = [&](double time) {
      start = std::max(start, time);
      return time != unknown;
    };
    bool ready = true;
    if (unit.kind == UnitKind::Backward)
      ready &= needs(ends[unitIndex(shape, UnitKind::Forward, unit.stage, unit.microbatch)]);
    if (unit.kind == UnitKind::Weight)
      ready &= needs(ends[unitIndex(shape, UnitKind::Backward, unit.stage, unit.microbatch)]);
    for (int channel : consumed[role(unit.kind, unit.stage)])
      ready &= needs(arrived[channel][unit.microbatch]);
    if (!ready) {
      device.waitsFor = "the inputs of " + unit.str();
      return false;
    }
    const StageSeconds &seconds = stageSeconds[unit.stage];
    double takes = unit.kind == UnitKind::Forward  ? seconds.forward
                   : unit.kind == UnitKind::Weight ? seconds.weight
                   : schedule.splitsWeight         ? seconds.backward
                                                   : seconds.backward + seconds.weight;
    device.now = start + takes;
    busy += takes;
    ends[unitIndex(shape, unit.kind, unit.stage, unit.microbatch)] = device.now;
    result.times[number].push_back({start, device.now});
    return true;
  }

  bool send(Device &device, int channel, const PipelineUnit &unit) {
    double ready = posted[channel][unit.microbatch];
    if (ready == unknown) {
      device.waitsFor = "the receiver of " + unit.str() + ", channel " + std::to_string(channel);
      return false;
    }
    device.now = std::max(device.now, ready);
    arrived[channel][unit.microbatch] =
        device.now + (isMessage[channel] ? channels[channel].seconds : 0);
    return true;
  }

  void finish() {
    for (auto [number, device] : llvm::enumerate(devices)) {
      if (!result.times[number].empty())
        result.span = std::max(result.span, result.times[number].back().end);
      if (device.position < schedule.orders[number].size())
        result.deadlock += (result.deadlock.empty() ? "device " : "; device ") +
                           std::to_string(number) + " waits for " + device.waitsFor;
    }
    if (result.span > 0)
      result.bubbleShare = 1 - busy / (shape.devices * result.span);
    result.stageInFlight.assign(shape.stages(), 0);
    result.deviceInFlight.assign(shape.devices, 0);
    std::vector<int> inFlight(shape.stages(), 0);
    for (auto [number, order] : llvm::enumerate(schedule.orders)) {
      int onDevice = 0;
      for (const PipelineUnit &unit : order) {
        int change = unit.kind == UnitKind::Forward ? 1 : unit.kind == schedule.lastKind() ? -1 : 0;
        onDevice += change;
        int onStage = inFlight[unit.stage] += change;
        result.deviceInFlight[number] = std::max(result.deviceInFlight[number], onDevice);
        result.stageInFlight[unit.stage] = std::max(result.stageInFlight[unit.stage], onStage);
      }
    }
  }

  const PipelineSchedule &schedule;
  const PipelineShape &shape;
  llvm::ArrayRef<StageSeconds> stageSeconds;
  llvm::ArrayRef<PipelineChannel> channels;
  std::vector<std::vector<double>> posted, arrived; ///< by channel and microbatch
  std::vector<bool> isMessage;                      ///< by channel
  std::vector<Device> devices;
  std::vector<std::vector<int>> produced, consumed; ///< channels, by role
  std::vector<double> ends;                         ///< by unit
  double busy = 0;
  PipelineSimulation result;
};

} // namespace

PipelineSimulation dtc::simulateSchedule(const PipelineSchedule &schedule,
                                         llvm::ArrayRef<StageSeconds> stageSeconds,
                                         llvm::ArrayRef<PipelineChannel> channels,
                                         llvm::ArrayRef<ReceivePosting> postings) {
  return Simulator(schedule, stageSeconds, channels, postings).run();
}

//===----------------------------------------------------------------------===//
// Receives
//===----------------------------------------------------------------------===//

/// By microbatch: the last place at which it or one before it is used.
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
                                              llvm::ArrayRef<PipelineChannel> channels,
                                              const PipelineSimulation &simulation) {
  assert(simulation.deadlock.empty());
  const PipelineShape &shape = schedule.shape;
  std::vector<int> positions(countUnits(shape));
  std::vector<std::vector<double>> ends(shape.devices);
  for (int device = 0; device < shape.devices; ++device)
    for (auto [position, unit] : llvm::enumerate(schedule.orders[device])) {
      positions[unitIndex(shape, unit.kind, unit.stage, unit.microbatch)] = position;
      ends[device].push_back(simulation.times[device][position].end);
    }

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
