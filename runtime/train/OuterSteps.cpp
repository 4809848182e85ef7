//===- OuterSteps.cpp - The outer steps of a run --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/OuterSteps.h"

#include "support/OuterEntries.h"

#include <fmt/format.h>
#include <utility>

namespace dtc::runtime {

std::unique_ptr<OuterSteps> OuterSteps::find(Session &session) {
  auto result = std::make_unique<OuterSteps>();
  result->all = session.findEntry(kOuterStepEntry);
  // The plan was verified, so that the names go together.
  result->schedule = *outerFragmentsOf(session.plan());
  for (const OuterFragments::Entries &each : result->schedule.entries)
    result->fragments.push_back({session.findEntry(each.take->entry()),
                                 session.findEntry(each.send->entry()),
                                 session.findEntry(each.apply->entry())});
  return result->all || !result->fragments.empty() ? std::move(result) : nullptr;
}

MaybeError OuterSteps::setEvery(int64_t every) {
  if (MaybeError error = checkOuterEvery(schedule, every))
    return error;
  steps = every;
  return std::nullopt;
}

bool OuterSteps::isDue(int64_t step) const {
  if (all)
    return step % steps == 0;
  for (int64_t k = 0; k < std::ssize(fragments); ++k)
    if (schedule.isSentAfter(k, step, steps) || isApplied(k, step))
      return true;
  return false;
}

/// Begins to send a fragment, one at a time.
void OuterSteps::start(int64_t fragment) {
  Session *send = fragments[static_cast<size_t>(fragment)].send;
  sender.start([send, fragment] {
    MaybeError error = send->step();
    return error ? error->inContext(fmt::format("sending fragment {}", fragment)) : error;
  });
}

MaybeError OuterSteps::run(int64_t step) {
  if (all)
    return all->step();
  if (!isDue(step))
    return std::nullopt;
  if (MaybeError error = settle())
    return error;
  for (int64_t k = 0; k < std::ssize(fragments); ++k) {
    const Fragment &fragment = fragments[static_cast<size_t>(k)];
    if (schedule.isSentAfter(k, step, steps)) {
      if (MaybeError error = fragment.take->step())
        return error->inContext(fmt::format("taking fragment {}", k));
      start(k);
    }
    if (!isApplied(k, step))
      continue;
    if (MaybeError error = schedule.delay == 0 ? settle() : std::nullopt)
      return error;
    if (MaybeError error = fragment.apply->step())
      return error->inContext(fmt::format("applying fragment {}", k));
  }
  return std::nullopt;
}

CommunicatorBytes OuterSteps::sent() const {
  if (all)
    return all->communicatorBytes();
  CommunicatorBytes total;
  for (const Fragment &fragment : fragments)
    for (const Session *part : {fragment.take, fragment.send, fragment.apply})
      total += part->communicatorBytes();
  return total;
}

std::optional<std::string> OuterSteps::describeEnd(int64_t step) const {
  if (!all)
    return "the outer steps of fragments take turns, so that replicas differ when the run ends; "
           "weights that are saved are those of the first replica";
  const int64_t after = step % steps;
  if (forgotten > 0 && step - after <= forgotten)
    return fmt::format(
        "the run ends {} step{} after step {}, since which it has other settings and "
        "has taken no outer step; weights that are saved are those of the first "
        "replica",
        step - forgotten, step - forgotten == 1 ? "" : "s", forgotten);
  if (after > 0)
    return fmt::format("the run ends {} step{} after its last outer step; weights that are saved "
                       "are those of the first replica",
                       after, after == 1 ? "" : "s");
  return std::nullopt;
}

} // namespace dtc::runtime
