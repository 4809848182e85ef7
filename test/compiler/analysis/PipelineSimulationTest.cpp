//===- PipelineSimulationTest.cpp - Random pipelines, and their messages --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
// DTC_RANDOM_SEED=n runs the one pipeline of that seed; DTC_RANDOM_CASES=n sets their number.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/PipelineSimulation.h"

#include "test/lib/RandomCases.h"

#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace pipelineSimulationTest {

using namespace dtc;
using namespace dtc::test;

//===----------------------------------------------------------------------===//
// Single messages
//===----------------------------------------------------------------------===//

TEST(CountSlots, IsTheLongestWindowInUse) {
  EXPECT_EQ(countSlots({}, {}), 1);
  EXPECT_EQ(countSlots({0, 2, 4}, {1, 3, 5}), 1);
  EXPECT_EQ(countSlots({0, 2, 4}, {2, 4, 5}), 2); // both ends are in use
  EXPECT_EQ(countSlots({0, 1, 2, 3}, {9, 8, 7, 6}), 4);
  // Microbatch 0 is the only one besides 3 that is in use, but copies go round.
  EXPECT_EQ(countSlots({0, 1, 2, 3}, {9, 1, 2, 3}), 4);
}

TEST(PostReceives, BeforeTheUnitThatRunsWhenTheSenderIsDone) {
  // The receiver's units end at 1, 2, 3, ... Messages are sent while units 2, 4, 6 run, and used by
  // units 3, 5, 7: each could do with the slot of the one before, but two let it come early.
  std::vector<double> ends = {1, 2, 3, 4, 5, 6, 7, 8};
  ReceivePosting posting = postReceives({2.5, 4.5, 6.5}, {3, 5, 7}, ends);
  EXPECT_EQ(posting.slots, 2);
  EXPECT_EQ(posting.positions, (std::vector<int>{0, 0, 4}));
  // Used by units 5, 6, 7 only: when the last is sent, none of the others is free.
  posting = postReceives({2.5, 3.5, 4.5}, {5, 6, 7}, ends);
  EXPECT_EQ(posting.slots, 3);
  EXPECT_EQ(posting.positions, (std::vector<int>{0, 0, 0}));
  // Sent in the moment in which the last use of the one before ends: that is too late for its slot,
  // since the receiver may be about to send, too.
  posting = postReceives({1, 2, 3}, {1, 2, 3}, ends);
  EXPECT_EQ(posting.slots, 2);
  EXPECT_EQ(posting.positions, (std::vector<int>{0, 0, 2}));
  posting = postReceives({1, 2, 3}, {2, 3, 4}, ends);
  EXPECT_EQ(posting.slots, 3);
}

TEST(PostReceives, OneMicrobatchHasOneSlot) {
  ReceivePosting posting = postReceives({1.}, {0}, {2.});
  EXPECT_EQ(posting.slots, 1);
  EXPECT_EQ(posting.positions, std::vector<int>{0});
}

TEST(SimulateSchedule, FindsTheDeadlockOfLateReceives) {
  PipelineSchedule schedule = buildSchedule({2, 1, 2}, *findScheduleRule("1f1b"));
  std::vector<StageSeconds> seconds(2);
  std::vector<StageValue> channels = linkValues(schedule, chainEdges(schedule.shape));
  // Each receive right before its first use: the devices send to each other at the same time.
  //   device 0: F0 F1 B0 B1        device 1: F0 B0 F1 B1
  std::vector<ReceivePosting> late = {{2, {0, 2}}, {2, {2, 3}}};
  PipelineSimulation stuck = simulateSchedule(schedule, seconds, channels, late);
  EXPECT_EQ(
      stuck.deadlock,
      "the plan stalls if sends wait for their receives: pipeline coordinate 0 waits in task "
      "\"send\" of microbatch 1 for pipeline coordinate 1 to start its receive of microbatch 1 "
      "on channel 0, pipeline coordinate 1 waits in task \"send\" of microbatch 0 for pipeline "
      "coordinate 0 to start its receive of microbatch 0 on channel 1; every device must reach "
      "the end of its schedule");
  PipelineSimulation free = simulateSchedule(schedule, seconds, channels);
  auto postings = postReceives(schedule, channels, free);
  EXPECT_EQ(simulateSchedule(schedule, seconds, channels, postings).deadlock, "");
}

TEST(SimulateSchedule, CountsTransfersBetweenDevicesOnly) {
  PipelineSchedule schedule = buildSchedule({2, 2, 1}, *findScheduleRule("zb-v"));
  std::vector<StageSeconds> seconds(4);
  // Stages 1 and 2 are on device 1, so a microbatch passes two transfers on each way.
  PipelineSimulation simulation =
      simulateSchedule(schedule, seconds, linkValues(schedule, chainEdges(schedule.shape, 10)));
  EXPECT_EQ(simulation.span, 4 + 4 + 1 + 4 * 10);
}

//===----------------------------------------------------------------------===//
// Random pipelines
//===----------------------------------------------------------------------===//

namespace {

class RandomPipeline {
public:
  explicit RandomPipeline(uint64_t seed) : engine(seed) {
    shape = {1 + below(8), 1 + below(4), 1 + below(16)};
    // Equal times are the worst: many things happen at once.
    even = below(4) == 0;
    // A chain, or skip connections and towers: each stage but the first reads some lower one.
    bool chain = below(2) == 0;
    for (int to = 1; to < shape.stages(); ++to) {
      int from = chain ? to - 1 : below(to);
      links.push_back({from, to, transfer()});
      for (int skip = chain ? below(3) : below(4); skip > 0; --skip)
        links.push_back({below(to), to, transfer()});
    }
  }

  int below(int n) { return int(engine() % n); }
  double seconds() { return even ? 1 : below(5) == 0 ? 0 : below(1000) / 100.; }
  double transfer() { return even ? 0 : below(500) / 100.; }

  std::vector<StageSeconds> drawSeconds() {
    std::vector<StageSeconds> result;
    for (int stage = 0; stage < shape.stages(); ++stage)
      result.push_back({seconds(), seconds(), seconds()});
    return result;
  }

  /// Some values that go to several stages of a device are one message.
  std::vector<StageValue> drawChannels(const PipelineSchedule &schedule) {
    std::vector<StageValue> merged;
    for (const StageValue &channel : linkValues(schedule, links)) {
      auto same = std::find_if(merged.begin(), merged.end(), [&](const StageValue &other) {
        return other.producer.kind == channel.producer.kind &&
               other.producer.stage == channel.producer.stage &&
               schedule.device(other.consumers[0].stage) ==
                   schedule.device(channel.consumers[0].stage);
      });
      if (same != merged.end() && below(2))
        same->consumers.append(channel.consumers.begin(), channel.consumers.end());
      else
        merged.push_back(channel);
    }
    return merged;
  }

  PipelineShape shape;
  std::vector<StageEdge> links;

private:
  std::mt19937_64 engine;
  bool even = false;
};

} // namespace

namespace {

/// When a unit runs, and its place in its device's order.
struct TimedUnit {
  UnitTime time;
  int position = -1;
};

class UnitTimes {
public:
  explicit UnitTimes(const PipelineShape &shape)
      : shape(shape), units(size_t(3) * shape.stages() * shape.microbatches) {}
  TimedUnit &at(StagePass kind, int stage, int microbatch) {
    return units[(indexOf(kind) * shape.stages() + stage) * shape.microbatches + microbatch];
  }
  const TimedUnit &at(StagePass kind, int stage, int microbatch) const {
    return const_cast<UnitTimes *>(this)->at(kind, stage, microbatch);
  }

private:
  PipelineShape shape;
  std::vector<TimedUnit> units;
};

} // namespace

/// Every unit once, on its device, each kind and stage in the order of microbatches, each device
/// one unit at a time. Returns times and places by kind, stage and microbatch.
static UnitTimes checkUnits(const PipelineSchedule &schedule,
                            const PipelineSimulation &simulation) {
  UnitTimes times(schedule.shape);
  size_t count = 0;
  std::map<std::pair<StagePass, int>, int> next;
  for (int device = 0; device < schedule.shape.devices; ++device) {
    const std::vector<PipelineUnit> &order = schedule.orders[device];
    EXPECT_EQ(order.size(), simulation.times[device].size());
    for (size_t i = 0; i < order.size(); ++i) {
      const PipelineUnit &unit = order[i];
      UnitTime time = simulation.times[device][i];
      EXPECT_EQ(schedule.device(unit.stage), device);
      EXPECT_EQ((next[{unit.kind, unit.stage}]++), unit.microbatch) << unit.str();
      if (i > 0) {
        EXPECT_GE(time.start, simulation.times[device][i - 1].end);
      }
      times.at(unit.kind, unit.stage, unit.microbatch) = {time, int(i)};
      ++count;
    }
  }
  size_t kinds = schedule.splitsWeight ? 3 : 2;
  EXPECT_EQ(count, kinds * schedule.shape.stages() * schedule.shape.microbatches);
  return times;
}

/// The units that a unit needs have ended, and their results have arrived, before it starts.
static void checkDependencies(const PipelineSchedule &schedule, const std::vector<StageEdge> &links,
                              const UnitTimes &times) {
  auto check = [&](StagePass fromKind, int from, StagePass toKind, int to, double seconds) {
    if (schedule.device(from) == schedule.device(to))
      seconds = 0;
    for (int i = 0; i < schedule.shape.microbatches; ++i)
      EXPECT_LE(times.at(fromKind, from, i).time.end + seconds, times.at(toKind, to, i).time.start)
          << "microbatch " << i << " from stage " << from << " to " << to;
  };
  for (int stage = 0; stage < schedule.shape.stages(); ++stage) {
    check(StagePass::Forward, stage, StagePass::Backward, stage, 0);
    if (schedule.splitsWeight)
      check(StagePass::Backward, stage, StagePass::Weight, stage, 0);
  }
  for (const StageEdge &link : links) {
    check(StagePass::Forward, link.from, StagePass::Forward, link.to, link.seconds);
    check(StagePass::Backward, link.to, StagePass::Backward, link.from, link.seconds);
  }
}

/// A copy of a buffer is received into only after the last use of what it held.
static void checkSlots(const PipelineSchedule &schedule, const StageValue &channel,
                       const ReceivePosting &posting, const UnitTimes &times) {
  int count = schedule.shape.microbatches;
  ASSERT_EQ(posting.positions.size(), size_t(count));
  EXPECT_GE(posting.slots, std::min(2, count));
  EXPECT_LE(posting.slots, count);
  for (int i = 0; i < count; ++i) {
    if (i > 0) {
      EXPECT_LE(posting.positions[i - 1], posting.positions[i]);
    }
    for (const UnitRole &use : channel.consumers) {
      EXPECT_LE(posting.positions[i], times.at(use.kind, use.stage, i).position);
      if (i >= posting.slots) {
        EXPECT_GT(posting.positions[i], times.at(use.kind, use.stage, i - posting.slots).position);
      }
    }
  }
}

/// Receives of messages between two devices are posted in the order in which these are sent.
static void checkReceiveOrder(const PipelineSchedule &schedule,
                              const std::vector<StageValue> &channels,
                              const std::vector<ReceivePosting> &postings, const UnitTimes &times) {
  struct Sent {
    int at;
    size_t channel;
    int posted, postedFor;
    auto operator<=>(const Sent &) const = default;
  };
  std::map<std::pair<int, int>, std::vector<Sent>> messages;
  for (size_t c = 0; c < channels.size(); ++c) {
    const UnitRole &maker = channels[c].producer;
    int from = schedule.device(maker.stage), to = schedule.device(channels[c].consumers[0].stage);
    if (from == to)
      continue;
    for (int i = 0; i < schedule.shape.microbatches; ++i) {
      int at = times.at(maker.kind, maker.stage, i).position;
      EXPECT_EQ(postings[c].sentAt[size_t(i)], at);
      messages[{from, to}].push_back({at, c, postings[c].positions[size_t(i)], i});
    }
  }
  for (auto &[pair, sent] : messages) {
    llvm::sort(sent);
    for (size_t i = 1; i < sent.size(); ++i)
      EXPECT_LE(sent[i - 1].posted, sent[i].posted);
  }
}

static void checkPipeline(RandomPipeline &random, const ScheduleRule &rule) {
  PipelineSchedule schedule = buildSchedule(random.shape, rule);
  std::vector<StageValue> channels = random.drawChannels(schedule);
  std::vector<StageSeconds> seconds = random.drawSeconds();
  PipelineSimulation free = simulateSchedule(schedule, seconds, channels);
  ASSERT_EQ(free.deadlock, "");
  UnitTimes times = checkUnits(schedule, free);
  // A merged message takes the seconds of its first link, so expect those of none.
  std::vector<StageEdge> links = random.links;
  for (StageEdge &link : links)
    link.seconds = 0;
  checkDependencies(schedule, links, times);

  std::vector<ReceivePosting> postings = postReceives(schedule, channels, free);
  for (size_t c = 0; c < channels.size(); ++c)
    if (schedule.device(channels[c].producer.stage) !=
        schedule.device(channels[c].consumers[0].stage))
      checkSlots(schedule, channels[c], postings[c], times);
  checkReceiveOrder(schedule, channels, postings, times);

  // As foreseen, no send waits for its receiver.
  PipelineSimulation posted = simulateSchedule(schedule, seconds, channels, postings);
  ASSERT_EQ(posted.deadlock, "");
  for (size_t device = 0; device < free.times.size(); ++device)
    for (size_t i = 0; i < free.times[device].size(); ++i)
      ASSERT_EQ(free.times[device][i].end, posted.times[device][i].end);

  // And however long things take, no deadlock.
  for (StageValue &channel : channels)
    channel.seconds = random.below(1000) / 10.;
  PipelineSimulation other = simulateSchedule(schedule, random.drawSeconds(), channels, postings);
  ASSERT_EQ(other.deadlock, "");
  checkDependencies(schedule, links, checkUnits(schedule, other));
}

TEST(PipelineRandom, EverySchedulesEndsAndKeepsDependencies) {
  forEachRandomCase(10000, [](uint64_t seed) {
    for (const ScheduleRule &rule : getScheduleRules()) {
      RandomPipeline random(seed);
      if (checkShape(random.shape, rule))
        continue;
      SCOPED_TRACE(rule.name.str() + ": " + std::to_string(random.shape.devices) + " devices, " +
                   std::to_string(random.shape.chunks) + " chunks, " +
                   std::to_string(random.shape.microbatches) + " microbatches");
      checkPipeline(random, rule);
    }
  });
}

} // namespace pipelineSimulationTest
