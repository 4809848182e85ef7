//===- OuterRound.cpp - The time of a round of outer steps ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/OuterRound.h"

#include "plan/PlanTypes.h"
#include "simulator/Simulation.h"
#include "support/OuterEntries.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace dtc {

namespace {
/// Where a run and what it sends beside have come to, in seconds.
struct Clocks {
  double run = 0, sent = 0;

  void settle() { run = std::max(run, sent); }
};
} // namespace

/// What comes after a step.
static void takePartsAfter(int64_t step, const OuterFragments &schedule,
                           const OuterStepTimes &times, int64_t every, Clocks &clocks) {
  const int64_t count = std::ssize(times.fragments);
  for (int64_t k = 0; k < count; ++k)
    if (schedule.isSentAfter(k, step, every) || schedule.isAppliedAfter(k, step, every))
      clocks.settle();
  for (int64_t k = 0; k < count; ++k) {
    const OuterStepTimes::Fragment &fragment = times.fragments[static_cast<size_t>(k)];
    const bool isApplied = schedule.isAppliedAfter(k, step, every);
    if (schedule.isSentAfter(k, step, every)) {
      clocks.run += fragment.take;
      clocks.sent = clocks.run + fragment.send;
    }
    if (isApplied && schedule.delay == 0)
      clocks.settle();
    if (isApplied)
      clocks.run += fragment.apply;
  }
}

OuterRound followOuterRound(const OuterFragments &schedule, const OuterStepTimes &times,
                            int64_t every) {
  OuterRound round;
  round.steps = every;
  round.outerSeconds = times.whole;
  for (const OuterStepTimes::Fragment &fragment : times.fragments)
    round.outerSeconds += fragment.take + fragment.send + fragment.apply;
  // Nothing is applied in the beginning, so that a later round stands for all.
  constexpr int64_t kRounds = 3;
  Clocks clocks;
  double begin = 0;
  for (int64_t step = 1; step <= kRounds * every; ++step) {
    clocks.run += times.step;
    takePartsAfter(step, schedule, times, every, clocks);
    if (step == (kRounds - 1) * every)
      begin = clocks.run;
  }
  round.seconds = clocks.run - begin + times.whole;
  round.exposed = std::max(0.0, round.seconds - static_cast<double>(every) * times.step);
  return round;
}

Expected<OuterRound> simulateOuterRound(const plan::Plan &plan, const cluster::Cluster &cluster,
                                        int64_t every, double stepSeconds) {
  Expected<OuterFragments> schedule = outerFragmentsOf(plan);
  if (!schedule)
    return schedule.error();
  const plan::Plan *whole = findEntryPoint(plan, kOuterStepEntry);
  if (!whole && schedule->entries.empty())
    return Error{"the plan has no outer step; compile with --outer for one that has"};
  if (MaybeError error = checkOuterEvery(*schedule, every))
    return *error;
  OuterStepTimes times;
  times.step = stepSeconds;
  MaybeError failure;
  auto secondsOf = [&](const plan::Plan *entry) {
    Expected<Simulation> simulation = simulateOnCluster(*entry, cluster);
    if (!simulation && !failure)
      failure = simulation.error().inContext(fmt::format("entry point \"{}\"", entry->entry()));
    return simulation ? simulation->stepSeconds : 0;
  };
  times.whole = whole ? secondsOf(whole) : 0;
  for (const OuterFragments::Entries &each : schedule->entries)
    times.fragments.push_back({secondsOf(each.take), secondsOf(each.send), secondsOf(each.apply)});
  if (failure)
    return *failure;
  return followOuterRound(*schedule, times, every);
}

} // namespace dtc
