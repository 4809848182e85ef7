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

bool SavedBytesSearch::isHopeless() const {
  constexpr double kHopeless = 1.1;
  constexpr size_t kLargerTrials = 4;
  if (plans.empty() || best())
    return false;
  const SavedBytesTrial &least = plans.front();
  const bool keepsLeast = least.bound < least.kept || least.bound == 0;
  if (!keepsLeast)
    return false;
  const auto isLarger = [&](const SavedBytesTrial &plan) { return plan.arena >= least.arena; };
  return (plans.size() > kLargerTrials && std::all_of(plans.begin(), plans.end(), isLarger)) ||
         std::all_of(plans.begin(), plans.end(), [&](const SavedBytesTrial &plan) {
           return double(plan.arena) > kHopeless * double(limit);
         });
}

std::optional<int64_t> SavedBytesSearch::next() const {
  constexpr int64_t kGrain = 64; // buffers are so aligned
  constexpr double kSteepest = 1;
  constexpr double kLeastRest = 0.75; // of the least rest that was seen
  // A trial that uses this share of the limit leaves little to gain.
  constexpr double kUsed = 0.99, kToleranceOfUsed = 5;
  if (plans.empty())
    return std::numeric_limits<int64_t>::max();
  const SavedBytesTrial *found = best();
  // An arena holds the saved bytes, all at once when the backward pass begins, and at least this
  // rest beside them.
  int64_t rest = std::numeric_limits<int64_t>::max();
  for (const SavedBytesTrial &plan : plans)
    rest = std::min(rest, std::max<int64_t>(plan.arena - plan.kept, 0));
  int64_t reach = limit - int64_t(kLeastRest * double(rest));
  double tolerated = tolerance;
  if (found && double(found->arena) > kUsed * double(limit))
    tolerated *= kToleranceOfUsed;
  std::optional<int64_t> bound;
  double least = kSteepest;
  for (size_t index = plans.size(); index-- > 0;) {
    const SavedBytesTrial &high = plans[index];
    if (found && found->seconds - high.seconds <= tolerated)
      continue;
    const SavedBytesTrial *low = index > 0 ? &plans[index - 1] : nullptr;
    int64_t from = low ? low->bound + 1 : 0;
    int64_t to = std::min(high.kept - 1, low ? reach : std::numeric_limits<int64_t>::max());
    if (low && to / kGrain * kGrain < from)
      continue;
    if (to < from)
      continue; // it keeps nothing
    if (!low && high.bound < high.kept)
      continue; // nothing keeps less
    double width = double(to - from);
    double highOver = double(high.arena - limit);
    // How far above the limit the line along the gap is at its ends.
    double atTo = highOver - double(high.kept - to), atFrom = atTo - width;
    if (low) {
      double lowOver = double(low->arena - limit);
      double slope = (highOver - lowOver) / double(high.kept - low->kept);
      atFrom = lowOver + slope * double(from - low->kept);
      atTo = lowOver + slope * double(to - low->kept);
    }
    double distance = std::max(0.0, std::min(atFrom, atTo)) / std::max(width, 1.0);
    if (!low)
      distance = 0; // the memory of the least bound is worth knowing
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
