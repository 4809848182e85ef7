//===- SavedBytesSearch.cpp - Search for the saved bytes of a device ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/SavedBytesSearch.h"

#include <algorithm>
#include <limits>

using namespace dtc;

void SavedBytesSearch::add(SavedBytesTrial plan) {
  auto it = std::lower_bound(
      plans.begin(), plans.end(), plan.kept,
      [](const SavedBytesTrial &known, int64_t kept) { return known.kept < kept; });
  if (it == plans.end() || it->kept != plan.kept) {
    plans.insert(it, plan);
    return;
  }
  it->bound = std::max(it->bound, plan.bound);
  it->arena = std::max(it->arena, plan.arena);
  it->seconds = std::max(it->seconds, plan.seconds);
}

const SavedBytesTrial *SavedBytesSearch::best() const {
  const SavedBytesTrial *best = nullptr;
  for (const SavedBytesTrial &plan : plans)
    if (fits(plan) && (!best || plan.seconds < best->seconds))
      best = &plan;
  return best;
}

std::optional<int64_t> SavedBytesSearch::next() const {
  constexpr int64_t kGrain = 64; // buffers are so aligned
  constexpr double kSteepest = 1;
  if (plans.empty())
    return std::numeric_limits<int64_t>::max();
  const SavedBytesTrial *found = best();
  std::optional<int64_t> bound;
  double least = kSteepest;
  for (size_t index = plans.size(); index-- > 0;) {
    const SavedBytesTrial &high = plans[index];
    if (found && found->seconds - high.seconds <= tolerance)
      continue;
    const SavedBytesTrial *low = index > 0 ? &plans[index - 1] : nullptr;
    int64_t from = low ? low->bound + 1 : 0, to = high.kept - 1;
    if (low && to / kGrain * kGrain < from)
      continue;
    if (to < from)
      continue; // it keeps nothing
    double width = double(to - from);
    double highOver = double(high.arena - limit);
    // How far above the limit the line along the gap is at its ends.
    double atTo = highOver, atFrom = highOver - width;
    if (low) {
      double lowOver = double(low->arena - limit);
      double slope = (highOver - lowOver) / double(high.kept - low->kept);
      atFrom = lowOver + slope * double(from - low->kept);
    }
    double distance = std::max(0.0, std::min(atFrom, atTo)) / std::max(width, 1.0);
    if (!low)
      distance = 0; // what the least needs is worth knowing
    if (distance >= least)
      continue;
    least = distance;
    double share = 0.5;
    if (atFrom <= 0 && atTo > 0)
      share = -atFrom / (atTo - atFrom);
    else if (!low)
      share = 0;
    // Where most of what is between the two leads to the lower one, the rest probably does too:
    // one plan at the end tells.
    if (low && 2 * (to - from) <= low->bound - low->kept)
      share = 1;
    bound = from + int64_t(width * share);
  }
  return bound;
}
